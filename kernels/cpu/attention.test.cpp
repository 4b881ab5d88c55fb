// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/testing/every_target.h"
#include "kernels/testing/known_layers.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using nlohmann::json;

constexpr double of_double = 1e-12, of_float = 2e-6;

std::vector<std::uint32_t> all_rows(const AttentionShape& shape) {
  std::vector<std::uint32_t> rows(shape.queries);
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

/// W W^T of every head.
std::vector<MatrixXd> metrics_of(const json& maps) {
  std::vector<MatrixXd> all;
  for (const json& map : maps) {
    const std::vector<double> w = flat(map);
    const Eigen::Map<const ByRows> rows(w.data(), static_cast<Index>(map.size()),
                                        static_cast<Index>(map[0].size()));
    all.emplace_back(rows * rows.transpose());
  }
  return all;
}

std::vector<double> numbers_of(const ByRows& matrix, double factor) {
  std::vector<double> all(matrix.data(), matrix.data() + matrix.size());
  for (double& number : all) number *= factor;
  return all;
}

/// [H][T][e] of one sequence.
template <class T>
std::vector<double> by_heads(const Attended<T>& of, const AttentionShape& shape) {
  std::vector<double> all;
  for (std::size_t h = 0; h < shape.heads; ++h) {
    for (std::size_t t = 0; t < shape.queries; ++t) {
      for (std::size_t i = 0; i < shape.e; ++i) {
        const T z = of.z(static_cast<Index>(t), static_cast<Index>(h * shape.e + i));
        all.push_back(static_cast<double>(z));
      }
    }
  }
  return all;
}

template <class T>
void expect_known_weights(const std::string& name, double tolerance) {
  SCOPED_TRACE(name);
  const json known = known_layer_case(name);
  const json& given = known["given"];
  const AttentionRule rule = rule_of(given);
  for (std::size_t b = 0; b < given["q"].size(); ++b) {
    const AttentionSequence<T> sequence = sequence_of<T>(given, b);
    const auto rows = all_rows(sequence.shape);
    std::vector<double> weights;
    for (std::size_t h = 0; h < sequence.shape.heads; ++h) {
      const std::vector<T> own = attention_weights(rule, sequence, h, rows);
      weights.insert(weights.end(), own.begin(), own.end());
    }
    std::vector<double> expected = flat(known["expected"]["weights"][b]);
    for (double& weight : expected) weight = std::max(weight, 0.0);  // -1: no key is seen
    EXPECT_LE(relative_distance(weights, expected), tolerance);
    if (!known["expected"].contains("z")) continue;
    const Attended<T> found = attend(rule, sequence, rows, false, 1);
    EXPECT_LE(relative_distance(by_heads(found, sequence.shape), flat(known["expected"]["z"][b])),
              tolerance);
  }
}

TEST(Attention, HasTheKnownWeightsAndValues) {
  for (const char* name :
       {"attention_causal", "attention_full", "attention_window", "attention_softcap",
        "attention_sink", "attention_bias", "attention_padded", "attention_leave_one_out",
        "attention_custom", "attention_queries_at_the_end", "attention_causal_leave_one_out"}) {
    test::on_every_target([&] {
      expect_known_weights<double>(name, of_double);
      expect_known_weights<float>(name, of_float);
    });
  }
}

template <class T>
void expect_known_pairs(double tolerance) {
  for (const char* name : {"noise", "pairs"}) {
    const json known = known_layer_case(name);
    const json &given = known["given"], &expected = known["expected"];
    const std::vector<MatrixXd> metrics = metrics_of(given["W_O"]);
    HeadPairSums sums(given["q"][0].size());
    ExchangeSums exchanges(given["q"][0].size());
    for (std::size_t b = 0; b < given["q"].size(); ++b) {
      const AttentionSequence<T> sequence = sequence_of<T>(given, b);
      const auto rows = all_rows(sequence.shape);
      const std::vector<double> ones(rows.size(), 1.0);
      const Attended<T> found =
          attend(rule_of(given), sequence, rows, true, 2, {rows, ones, metrics});
      sums.add(found.pairs);
      exchanges.add(found.exchange);
    }
    EXPECT_EQ(exchanges.queries, sums.queries);
    const double each = 1 / sums.queries;
    if (expected.contains("omega")) {
      EXPECT_LE(relative_distance(numbers_of(sums.overlap, each), flat(expected["omega"])),
                tolerance);
      continue;
    }
    EXPECT_LE(
        relative_distance(numbers_of(sums.variation, each), flat(expected["total_variation"])),
        tolerance);
    EXPECT_LE(
        relative_distance(numbers_of(exchanges.squares, each), flat(expected["exchange_error"])),
        tolerance);
  }
}

TEST(Attention, HasTheKnownSumsOverPairs) {
  test::on_every_target([] {
    expect_known_pairs<double>(of_double);
    expect_known_pairs<float>(of_float);
  });
}

/// Longer than a block of a product and than a tile.
template <class T>
AttentionSequence<T> long_sequence() {
  AttentionSequence<T> out;
  out.shape = {.heads = 6, .groups = 3, .queries = 290, .keys = 301, .k = 5, .e = 7};
  out.q = scattered<T>(6 * 290 * 5, 1);
  out.k = scattered<T>(3 * 301 * 5, 2);
  out.v = scattered<T>(3 * 301 * 7, 3);
  return out;
}

/// The definition: one query of one head, S exponentials and their sums, all in double.
double plain_value(const AttentionRule& rule, const AttentionSequence<double>& of, std::size_t h,
                   std::size_t t, std::size_t i) {
  const AttentionShape& shape = of.shape;
  const std::size_t g = h / (shape.heads / shape.groups), p = t + shape.keys - shape.queries;
  double sum = 0, value = 0;
  for (std::size_t s = 0; s <= p; ++s) {
    if (rule.window > 0 && s + rule.window <= p) continue;
    double u = 0;
    for (std::size_t j = 0; j < shape.k; ++j) {
      u += of.q[(h * shape.queries + t) * shape.k + j] * of.k[(g * shape.keys + s) * shape.k + j];
    }
    const double behind = static_cast<double>(s) - static_cast<double>(p);
    u = rule.softcap * std::tanh(rule.scale * u / rule.softcap) + rule.alibi[h] * behind;
    sum += std::exp(u);
    value += std::exp(u) * of.v[(g * shape.keys + s) * shape.e + i];
  }
  return value / (sum + std::exp(rule.sink[h]));
}

AttentionRule busy_rule() {
  return {.scale = 3,
          .softcap = 2.5,
          .window = 280,
          .alibi = {0, 0.01, 0.1, -0.003, 0.5, 1},
          .sink = {0, 1, -2, 3, 0.5, 0}};
}

TEST(Attention, OfLongSequencesIsTheDefinition) {
  const AttentionRule rule = busy_rule();
  const auto doubles = long_sequence<double>();
  const auto rows = all_rows(doubles.shape);
  std::vector<double> expected;
  for (std::size_t h = 0; h < 6; ++h) {
    for (std::size_t t = 0; t < 290; ++t) {
      for (std::size_t i = 0; i < 7; ++i) expected.push_back(plain_value(rule, doubles, h, t, i));
    }
  }
  test::on_every_target([&] {
    const Attended<double> exact = attend(rule, doubles, rows, false, 1);
    EXPECT_LE(relative_distance(by_heads(exact, doubles.shape), expected), of_double);
    const Attended<float> single = attend(rule, long_sequence<float>(), rows, false, 1);
    EXPECT_LE(relative_distance(by_heads(single, doubles.shape), expected), of_float);
  });
}

TEST(Attention, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto sequence = long_sequence<float>();
  const auto rows = all_rows(sequence.shape);
  const std::vector<MatrixXd> metrics(6, MatrixXd::Identity(7, 7));
  const std::vector<double> ones(rows.size(), 1.0);
  const ExchangedQueries all{rows, ones, metrics};
  const Attended<float> one = attend(busy_rule(), sequence, rows, true, 1, all);
  const Attended<float> three = attend(busy_rule(), sequence, rows, true, 3, all);
  EXPECT_EQ(one.z, three.z);
  EXPECT_EQ(one.log_sums, three.log_sums);
  EXPECT_EQ(one.pairs.overlap, three.pairs.overlap);
  EXPECT_EQ(one.pairs.variation, three.pairs.variation);
  EXPECT_EQ(one.exchange.squares, three.exchange.squares);
}

TEST(Attention, LeavesOutQueriesThatSeeNoKey) {
  const json given = known_layer_case("attention_causal_leave_one_out")["given"];
  const auto sequence = sequence_of<double>(given, 0);
  std::vector<std::uint32_t> rows = all_rows(sequence.shape);
  Attended<double> found = attend(rule_of(given), sequence, rows, true, 1);
  EXPECT_EQ(found.pairs.queries, sequence.shape.queries - 1);
  EXPECT_EQ(found.log_sums(0, 0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(found.log_sums.rightCols(found.log_sums.cols() - 1).allFinite());
  EXPECT_EQ(found.pairs.self.maxCoeff(), 0);
  found.leave_out_blind(rows);
  EXPECT_EQ(rows.front(), 1U);
  EXPECT_EQ(rows.size(), sequence.shape.queries - 1);
  EXPECT_TRUE(found.log_sums.allFinite());
}

TEST(Attention, LeavesOutAQueryThatOneHeadHasNoKeyFor) {
  auto sequence = long_sequence<double>();
  sequence.unseen.assign(6 * 290 * 301, 0);
  std::fill_n(sequence.unseen.begin() + (1 * 290 + 5) * 301, 301, 1);
  const std::vector<std::uint32_t> one = {5};
  AttentionRule rule = busy_rule();
  rule.window = 0;
  rule.causal = false;
  const Attended<double> found = attend(rule, sequence, one, true, 1);
  EXPECT_EQ(found.pairs.queries, 0);
  EXPECT_EQ(found.pairs.overlap.cwiseAbs().maxCoeff(), 0);
  EXPECT_EQ(found.z.cwiseAbs().maxCoeff(), 0);
  EXPECT_EQ(found.log_sums(1, 0), -std::numeric_limits<double>::infinity());

  std::vector<std::uint32_t> three = {4, 5, 6};
  Attended<double> some = attend(rule, sequence, three, true, 1);
  const MatrixXd last = some.z.row(2);
  some.leave_out_blind(three);
  EXPECT_EQ(three, (std::vector<std::uint32_t>{4, 6}));
  ASSERT_EQ(some.z.rows(), 2);
  EXPECT_EQ(MatrixXd(some.z.row(1)), last);
  EXPECT_GT(last.cwiseAbs().maxCoeff(), 0);
}

TEST(Attention, CountsAnExchangeAsOftenAsItsQueryStandsForOthers) {
  const auto sequence = long_sequence<double>();
  const std::vector<MatrixXd> metrics(6, MatrixXd::Identity(7, 7));
  const std::vector<std::uint32_t> both = {40, 200}, first = {40}, second = {200};
  const std::vector<double> weights = {1, 3}, one = {1};
  const auto rows = all_rows(sequence.shape);
  const auto exchange = [&](const ExchangedQueries& at) {
    return attend(busy_rule(), sequence, rows, false, 1, at).exchange;
  };
  const ExchangeSums all = exchange({both, weights, metrics});
  ExchangeSums apart = exchange({first, one, metrics});
  const ExchangeSums last = exchange({second, one, metrics});
  for (int i = 0; i < 3; ++i) apart.add(last);
  EXPECT_EQ(all.queries, 4);
  EXPECT_LE((all.squares - apart.squares).cwiseAbs().maxCoeff(),
            of_double * apart.squares.maxCoeff());
}

TEST(Attention, OfSomeQueriesIsThatOfAll) {
  const auto sequence = long_sequence<double>();
  const Attended<double> all = attend(busy_rule(), sequence, all_rows(sequence.shape), false, 1);
  const std::vector<std::uint32_t> some = {0, 17, 100, 289};
  const Attended<double> few = attend(busy_rule(), sequence, some, false, 1);
  for (std::size_t i = 0; i < some.size(); ++i) {
    // Sums begin at another key where a tile begins there.
    const auto off = all.z.row(some[i]) - few.z.row(static_cast<Index>(i));
    EXPECT_LE(off.cwiseAbs().maxCoeff(), of_double);
  }
}

TEST(Attention, NeedsNoOtherQueriesThanThoseAskedFor) {
  const auto sequence = long_sequence<double>();
  auto held = sequence;
  held.held = {0, 17, 100, 289};
  held.q.clear();
  for (std::size_t h = 0; h < 6; ++h) {
    for (const std::size_t t : held.held) {
      const auto row = std::span(sequence.q).subspan((h * 290 + t) * 5, 5);
      held.q.insert(held.q.end(), row.begin(), row.end());
    }
  }
  const std::vector<std::uint32_t> some = {17, 289};
  EXPECT_EQ(attend(busy_rule(), held, some, true, 1).z,
            attend(busy_rule(), sequence, some, true, 1).z);
}

}  // namespace
}  // namespace headlab
