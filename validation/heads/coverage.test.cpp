// SPDX-License-Identifier: Apache-2.0
// Intervals from standard errors over documents cover the truth as often as they say.
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "validation/heads/contexts.h"
#include "validation/heads/measure.h"
#include "validation/heads/testing/arrays_in_memory.h"
#include "validation/heads/testing/made_layer.h"

namespace headlab {
namespace {

using test::ArraysInMemory;

constexpr std::size_t documents = 16, of_document = 3, tokens = 4, e = 8;
/// Of Student's t with 15 degrees of freedom, two-sided 5 %.
constexpr double quantile = 2.1314;

/// One head of z = a + u, a of the document and u of the token, both N(0, I): energy 2 e.
std::shared_ptr<ArraysInMemory> simulated(std::uint64_t set, bool grouped) {
  const std::size_t sequences = documents * of_document;
  const std::vector<double> common = test::normals(documents * e, 2 * set + 100);
  std::vector<double> z = test::normals(sequences * tokens * e, 2 * set + 101);
  std::vector<double> document;
  for (std::size_t b = 0; b < sequences; ++b) {
    for (std::size_t i = 0; i < tokens * e; ++i) {
      z[b * tokens * e + i] += common[b / of_document * e + i % e];
    }
    document.push_back(static_cast<double>(grouped ? b / of_document : b));
  }
  auto file = std::make_shared<ArraysInMemory>();
  file->put("z", {sequences, 1, tokens, e}, z);
  std::vector<double> identity(e * e);
  for (std::size_t i = 0; i < e; ++i) identity[i * e + i] = 1;
  file->put("W_O", {1, e, e}, identity);
  file->put("document", {sequences}, document, NumberKind::whole);
  return file;
}

constexpr int sets = 1000;

/// Share of the sets whose interval has the true energy.
double coverage(bool grouped) {
  int covered = 0;
  for (int set = 0; set < sets; ++set) {
    const auto file = simulated(static_cast<std::uint64_t>(set), grouped);
    const MeasuredLayer layer = measure_heads(file, {}, {}, 1).layers.at(0);
    const HeadFigure& figure = *layer.find("energy");
    if (std::abs(figure.values[0] - 2.0 * e) <= quantile * figure.errors[0]) ++covered;
  }
  return covered / static_cast<double>(sets);
}

// 92 to 97 % is accepted of intervals of 95 %, as sums of squares of few documents are skew; a
// share of 1000 sets is within three standard errors of its own,
// 0.026 and 0.016 there.
TEST(StandardErrors, CoverTheTruthWhereDocumentsAreTheReplicates) {
  const double share = coverage(true);
  EXPECT_GE(share, 0.92 - 0.026);
  EXPECT_LE(share, 0.97 + 0.016);
}

TEST(StandardErrors, OfSequencesThatShareADocumentAreTooSmall) {
  EXPECT_LT(coverage(false), 0.88);
}

// ---- The terms across contexts ----

/// Three heads and a target in two dimensions. In document i and stratum c head h says
/// a_h(c) + shared_h g_i + own g_ih + noise, and the target is that of the heads' means plus +-1 in
/// each dimension, plus its own share of g_i, effect and noise.
struct MadeContexts {
  static constexpr std::size_t texts = 24, of_text = 12, heads = 3, p = 2, strata = 4;
  static constexpr std::array<double, heads> shared = {0.5, 0.4, -0.3};
  static constexpr double own = 0.5, of_target = 0.6;

  static std::map<std::string, double> truth() {
    double variance = 0, sum = 0, squares = 0;
    for (const double share : shared) {
      variance += share * share + own * own + 1;
      sum += share;
      squares += share * share;
    }
    std::map<std::string, double> terms = {
        {"contexts_bias_squared", p},
        {"contexts_variance", p * variance},
        {"contexts_covariance", p * (sum * sum - squares)},
        {"contexts_target_variance", p * (of_target * of_target + own * own + 1)},
        {"contexts_alignment", -2.0 * p * of_target * sum}};
    double mse = 0;
    for (const auto& [_, term] : terms) mse += term;
    terms["contexts_mse"] = mse;
    return terms;
  }

  /// \param halves each document is taken for two
  static std::vector<HeadFigure> simulated(std::uint64_t set, bool halves) {
    constexpr std::size_t of_effects = (heads + 2) * p, of_token = (heads + 1) * p + 1;
    const std::vector<double> effects = test::normals(texts * of_effects, 2 * set + 10'000);
    const std::vector<double> noise = test::normals(texts * of_text * of_token, 2 * set + 10'001);
    ContextCells cells;
    for (std::size_t i = 0; i < texts; ++i) {
      for (std::size_t t = 0; t < of_text; ++t) {
        const double* const e_t = noise.data() + (i * of_text + t) * of_token;
        // A stratum that more tokens are in, and less.
        const double drawn = std::erf(e_t[of_token - 1] / std::sqrt(2.0));
        const auto c = static_cast<std::int64_t>(std::abs(drawn) * std::abs(drawn) * strata);
        TokenRows token = TokenRows::Zero(heads + 1, p);
        for (std::size_t j = 0; j < p; ++j) {
          const double* const g = effects.data() + i * of_effects + j;
          const auto column = static_cast<Eigen::Index>(j);
          double& target = token(heads, column);
          for (std::size_t h = 0; h < heads; ++h) {
            const double mean = std::sin(static_cast<double>(c) + static_cast<double>(3 * h + j));
            token(static_cast<Eigen::Index>(h), column) =
                mean + shared[h] * g[0] + own * g[(h + 1) * p] + e_t[h * p + j];
            target += mean;
          }
          target += (c % 2 == 0 ? 1 : -1) + of_target * g[0] + own * g[(heads + 1) * p] +
                    e_t[heads * p + j];
        }
        cells.add(c, halves ? 2 * i + t % 2 : i, token);
      }
    }
    return cells.figures(8);
  }
};

/// Of 1000 sets, for each term.
struct TermRates {
  double covered = 0, mean = 0, squares = 0;
};
std::map<std::string, TermRates> rates_of_terms(bool halves) {
  // Of Student's t with 23 and 47 degrees of freedom.
  const double limit = halves ? 2.0117 : 2.0687;
  const auto truth = MadeContexts::truth();
  std::map<std::string, TermRates> rates;
  for (int set = 0; set < sets; ++set) {
    for (const HeadFigure& one : MadeContexts::simulated(static_cast<std::uint64_t>(set), halves)) {
      if (!truth.contains(one.name)) continue;
      const double off = one.values[0] - truth.at(one.name);
      TermRates& to = rates[one.name];
      to.covered += std::abs(off) <= limit * one.errors[0] ? 1.0 / sets : 0;
      to.mean += off / sets;
      to.squares += off * off / sets;
    }
  }
  return rates;
}

/// Standard errors of the mean that a term is off by.
double bias_of(const TermRates& of) {
  return of.mean / std::sqrt((of.squares - of.mean * of.mean) / (sets - 1));
}

TEST(ContextTerms, CoverTheTruthAndAreUnbiased) {
  const auto rates = rates_of_terms(false);
  ASSERT_EQ(rates.size(), 6U);
  for (const auto& [name, of] : rates) {
    RecordProperty(name, std::to_string(of.covered) + " covered, off by " +
                             std::to_string(bias_of(of)) + " standard errors");
    EXPECT_GE(of.covered, 0.92 - 0.026) << name;
    EXPECT_LE(of.covered, 0.97 + 0.016) << name;
    // One of 6 would be beyond four in 2,600 studies.
    EXPECT_LE(std::abs(bias_of(of)), 4) << name;
  }
}

TEST(ContextTerms, OfHalvesOfDocumentsTakenForDocumentsAreBiased) {
  const auto rates = rates_of_terms(true);
  EXPECT_GT(std::abs(bias_of(rates.at("contexts_variance"))), 4);
}

}  // namespace
}  // namespace headlab
