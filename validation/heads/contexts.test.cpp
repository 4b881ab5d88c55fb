// SPDX-License-Identifier: Apache-2.0
// Terms across contexts and predictions with the own key left out: known answers, identities, and
// what they need.
#include "validation/heads/contexts.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"
#include "kernels/testing/known_layers.h"
#include "validation/heads/leave_one_out.h"
#include "validation/heads/measure.h"
#include "validation/heads/targets.h"
#include "validation/heads/testing/made_layer.h"

namespace headlab {
namespace {

using Eigen::Index;
using nlohmann::json;

TokenRows rows_of(const json& array) {
  const std::vector<double> numbers = flat(array);
  const auto count = static_cast<Index>(array.size());
  return Eigen::Map<const TokenRows>(numbers.data(), count,
                                     static_cast<Index>(numbers.size()) / count);
}

const HeadFigure& figure(const std::vector<HeadFigure>& all, const std::string& name) {
  for (const HeadFigure& one : all) {
    if (one.name == name) return one;
  }
  throw std::out_of_range(name);
}

/// Not further off than `tolerance` times `size`; false for NaN.
testing::AssertionResult near(double a, double b, double tolerance, double size) {
  if (std::abs(a - b) <= tolerance * size) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " for " << b;
}

/// Names of the answers, and of the figures.
const std::map<std::string, std::string> context_names = {
    {"bias2", "contexts_bias_squared"},         {"variance_term", "contexts_variance"},
    {"covariance_term", "contexts_covariance"}, {"target_variance", "contexts_target_variance"},
    {"alignment", "contexts_alignment"},        {"mse", "contexts_mse"},
    {"tokens_used", "contexts_tokens_used"}};

class KnownContexts : public testing::TestWithParam<const char*> {};

TEST_P(KnownContexts, HaveTheKnownTermsAndErrors) {
  const json known = known_layer_case(GetParam());
  const json &given = known["given"], &expected = known["expected"];
  ContextCells cells;
  for (std::size_t i = 0; i < given["target"].size(); ++i) {
    const TokenRows heads = rows_of(given["heads"][i]), target = rows_of(given["target"][i]);
    TokenRows token(heads.rows() + 1, heads.cols());
    token.topRows(heads.rows()) = heads;
    token.row(heads.rows()) = target.transpose();
    cells.add(given["stratum"][i], given["document"][i], token);
  }
  const std::vector<HeadFigure> found = cells.figures(2);
  const double mse = expected["mse"];
  for (const auto& [answer, name] : context_names) {
    EXPECT_TRUE(near(figure(found, name).values[0], expected[answer], 1e-12, mse)) << name;
    EXPECT_TRUE(
        near(figure(found, name).errors[0], expected["standard_errors"][answer], 1e-11, mse))
        << name;
  }
  double sum = 0;
  for (const char* term :
       {"bias_squared", "variance", "covariance", "target_variance", "alignment"})
    sum += figure(found, std::string("contexts_") + term).values[0];
  EXPECT_TRUE(near(sum, figure(found, "contexts_mse").values[0], 1e-12, mse));
  EXPECT_TRUE(cells.figures(100)[0].errors.empty());
}

INSTANTIATE_TEST_SUITE_P(All, KnownContexts, testing::Values("contexts", "contexts_no_strata"),
                         [](const auto& one) {
                           return std::string(one.param) == "contexts" ? "Strata" : "NoStrata";
                         });

TEST(KnownPredictions, HaveTheKnownAmbiguity) {
  const json known = known_layer_case("ambiguity");
  const json& expected = known["expected"];
  const std::size_t heads = known["given"]["predictions"][0].size();
  PredictionSums sums(heads);
  for (std::size_t i = 0; i < known["given"]["target"].size(); ++i) {
    const TokenRows own = rows_of(known["given"]["predictions"][i]);
    TokenRows all = TokenRows::Zero(own.rows() + 1, own.cols());
    all.topRows(own.rows()) = own;
    sums.add(all, rows_of(known["given"]["target"][i]).transpose());
  }
  // Best weights fitted to and measured on the same numbers, as in the answers.
  const std::vector<HeadFigure> found = prediction_figures({sums, sums}, false);
  const double mse = expected["mean_head_mse"];
  EXPECT_TRUE(near(figure(found, "loo_mse").values[0], expected["mse"], 1e-12, mse));
  EXPECT_TRUE(near(figure(found, "loo_mean_head_mse").values[0], mse, 1e-12, mse));
  EXPECT_TRUE(near(figure(found, "loo_ambiguity").values[0], expected["ambiguity"], 1e-12, mse));
  EXPECT_TRUE(
      near(figure(found, "loo_weighted_mse").values[0], expected["best_weights_mse"], 1e-12, mse));
  const std::vector<double> weights = flat(expected["best_weights"]),
                            errors = flat(expected["error_matrix"]);
  for (std::size_t h = 0; h < heads; ++h) {
    EXPECT_TRUE(near(figure(found, "loo_weight").values[h], weights[h], 1e-9, 1)) << h;
    EXPECT_TRUE(near(figure(found, "loo_head_mse").values[h], errors[h * heads + h], 1e-12, mse));
    for (std::size_t l = 0; l < heads; ++l) {
      EXPECT_TRUE(near(figure(found, "loo_error").values[h * heads + l], errors[h * heads + l],
                       1e-12, mse));
    }
  }
}

/// The made layer with tokens of 5 kinds, one after the last query.
std::shared_ptr<test::ArraysInMemory> with_tokens(std::size_t more = 1) {
  const test::MadeLayer made;
  const auto file = made.arrays();
  std::vector<double> tokens;
  for (std::size_t i = 0; i < made.sequences * (made.tokens + more); ++i) {
    tokens.push_back(static_cast<double>((i * i * 7 + i / 3) % 5) * 100);
  }
  file->put("tokens", {made.sequences, made.tokens + more}, tokens, NumberKind::whole);
  return file;
}

MeasuredLayer layer_measured(const std::shared_ptr<ArrayFile>& file, const HeadSetting& setting,
                             int threads = 2) {
  return measure_heads(file, {}, setting, threads).layers.at(0);
}

double value(const MeasuredLayer& layer, const std::string& name) {
  return figure(layer.figures, name).values[0];
}

TEST(Contexts, OfTheOutputHaveNoErrorAndItsVariances) {
  for (const char* strata : {"token", "none"}) {
    const MeasuredLayer layer =
        layer_measured(with_tokens(), {.exact = true, .target = "output", .strata = strata});
    const double variance = value(layer, "contexts_variance");
    EXPECT_GT(variance, 0);
    EXPECT_TRUE(near(value(layer, "contexts_mse"), 0, 1e-12, variance)) << strata;
    EXPECT_TRUE(near(value(layer, "contexts_bias_squared"), 0, 1e-12, variance)) << strata;
    const double sum = variance + value(layer, "contexts_covariance");
    EXPECT_TRUE(near(value(layer, "contexts_target_variance"), sum, 1e-12, variance)) << strata;
    EXPECT_TRUE(near(value(layer, "contexts_alignment"), -2 * sum, 1e-12, variance)) << strata;
  }
}

TEST(Contexts, OfTheNextTokenAreTheBrierScoreOfARidgeRegression) {
  const auto file = with_tokens();
  const MeasuredLayer layer =
      layer_measured(file, {.exact = true, .target = "next_token", .strata = "none"});
  // The same by least squares, where the ridge is rows that ask for a map of 0.
  const LayerActivations of(file, 0);
  const HeadSetting exact{.exact = true};
  Eigen::MatrixXd f[2], y[2];
  for (const std::size_t fold : {0, 1}) {
    std::vector<Eigen::RowVectorXd> outputs, targets;
    for (std::size_t b = fold; b < of.sequences(); b += 2) {
      const SequenceValues own = values_of(of, b, of.tokens(b), exact, 1);
      const std::vector<double> tokens = file->read("tokens", b, 1);
      for (const std::uint32_t t : own.tokens) {
        outputs.emplace_back(own.z.row(t) * of.output_map());
        targets.emplace_back(Eigen::RowVectorXd::Zero(5));
        targets.back()(static_cast<Index>(tokens[t + 1] / 100)) = 1;
      }
    }
    f[fold].resize(static_cast<Index>(outputs.size()), outputs[0].size());
    y[fold].resize(static_cast<Index>(outputs.size()), 5);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      f[fold].row(static_cast<Index>(i)) = outputs[i];
      y[fold].row(static_cast<Index>(i)) = targets[i];
    }
  }
  const Eigen::RowVectorXd f_mean = f[0].colwise().mean(), y_mean = y[0].colwise().mean();
  const Eigen::MatrixXd centred = f[0].rowwise() - f_mean;
  Eigen::MatrixXd squares = centred.transpose() * centred / static_cast<double>(f[0].rows());
  squares.diagonal().array() += 1e-3 * squares.trace() / static_cast<double>(squares.rows());
  const Eigen::MatrixXd right =
      centred.transpose() * (y[0].rowwise() - y_mean) / static_cast<double>(f[0].rows());
  // Conjugate gradients end after as many steps as there are columns.
  Eigen::MatrixXd map = Eigen::MatrixXd::Zero(right.rows(), right.cols());
  for (Index c = 0; c < right.cols(); ++c) {
    Eigen::VectorXd rest = right.col(c), step = rest;
    for (Index i = 0; i < 4 * right.rows(); ++i) {
      const double before = rest.squaredNorm();
      if (before < 1e-30) break;
      const Eigen::VectorXd product = squares * step;
      const double length = before / step.dot(product);
      map.col(c) += length * step;
      rest -= length * product;
      step = rest + (rest.squaredNorm() / before) * step;
    }
  }
  const Eigen::MatrixXd off = (y[1].rowwise() - y_mean) - (f[1].rowwise() - f_mean) * map;
  const double mse = off.squaredNorm() / static_cast<double>(off.rows());
  EXPECT_TRUE(near(value(layer, "contexts_mse"), mse, 1e-9, mse));
  double sum = 0;
  for (const char* term :
       {"bias_squared", "variance", "covariance", "target_variance", "alignment"})
    sum += value(layer, std::string("contexts_") + term);
  EXPECT_TRUE(near(sum, mse, 1e-9, mse));
  // The terms are of six documents, too few for standard errors.
  EXPECT_TRUE(figure(layer.figures, "contexts_mse").errors.empty());
}

TEST(LeaveOneOut, PredictsByTheWeightsOfOtherKeys) {
  const auto file = with_tokens(0);
  const MeasuredLayer layer = layer_measured(file, {.leave_one_out = true});
  const LayerActivations of(file, 0);
  AttentionRule rule = of.rule();
  rule.leave_own_out = true;
  double single = 0, mean = 0, uniform = 0, count = 0;
  for (std::size_t b = 0; b < of.sequences(); ++b) {
    const AttentionSequence<double> sequence = of.sequence<double>(b);
    const std::vector<double> tokens = file->read("tokens", b, 1);
    for (std::uint32_t t = 8; t + 1 < 40; ++t) {
      const auto error = [&](const std::vector<double>& weights) {
        Eigen::VectorXd f = Eigen::VectorXd::Zero(5);
        for (std::size_t s = 0; s < t; ++s)
          f(static_cast<Index>(tokens[s + 1] / 100)) += weights[s];
        f(static_cast<Index>(tokens[t + 1] / 100)) -= 1;
        return f.squaredNorm();
      };
      std::vector<double> all(40);
      for (std::size_t h = 0; h < 6; ++h) {
        const std::vector<std::uint32_t> row = {t};
        const std::vector<double> weights = attention_weights(rule, sequence, h, row);
        single += error(weights) / 6;
        for (std::size_t s = 0; s < 40; ++s) all[s] += weights[s] / 6;
      }
      mean += error(all);
      uniform += error(std::vector<double>(40, 1.0 / t));
      ++count;
    }
  }
  EXPECT_TRUE(near(value(layer, "loo_mse"), mean / count, 1e-12, 1));
  EXPECT_TRUE(near(value(layer, "loo_mean_head_mse"), single / count, 1e-12, 1));
  EXPECT_TRUE(near(value(layer, "loo_uniform_mse"), uniform / count, 1e-12, 1));
  EXPECT_TRUE(near(value(layer, "loo_ambiguity"), (single - mean) / count, 1e-12, 1));
}

TEST(LeaveOneOut, OfNumbersIsThatOfTheTokensTheyStandFor) {
  const auto file = with_tokens();
  const MeasuredLayer of_tokens = layer_measured(file, {.leave_one_out = true});
  const std::vector<double> tokens = file->read("tokens", 0, 12);
  std::vector<double> target;
  for (std::size_t b = 0; b < 12; ++b) {
    for (std::size_t t = 0; t < 40; ++t) {
      for (int c = 0; c < 5; ++c) target.push_back(tokens[b * 41 + t + 1] == 100 * c ? 1 : 0);
    }
  }
  file->remove("tokens");
  file->put("target", {12, 40, 5}, target);
  for (const int threads : {1, 3}) {
    const MeasuredLayer of_numbers = layer_measured(file, {.leave_one_out = true}, threads);
    for (const HeadFigure& one : of_tokens.figures) {
      if (!one.name.starts_with("loo_")) continue;
      EXPECT_EQ(figure(of_numbers.figures, one.name).values, one.values) << one.name;
      EXPECT_EQ(figure(of_numbers.figures, one.name).errors, one.errors) << one.name;
    }
  }
}

TEST(Contexts, AndPredictionsSayWhatTheyNeed) {
  const auto refused = [](const std::shared_ptr<ArrayFile>& file, const HeadSetting& setting) {
    return refusal_line([&] { layer_measured(file, setting); });
  };
  const auto bare = test::MadeLayer().arrays();
  EXPECT_NE(refused(bare, {.target = "next_token"}).find("has no tokens"), std::string::npos);
  EXPECT_NE(refused(bare, {.leave_one_out = true}).find("has no tokens"), std::string::npos);
  EXPECT_NE(refused(bare, {.target = "array", .strata = "none"}).find("has no array target"),
            std::string::npos);
  EXPECT_EQ(refused(bare, {.target = "output", .strata = "none"}), "accepted");
  EXPECT_NE(refused(with_tokens(2), {.target = "output"}).find("has 42 tokens"), std::string::npos);
}

}  // namespace
}  // namespace headlab
