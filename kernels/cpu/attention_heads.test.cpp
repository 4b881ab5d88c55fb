// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_heads.h"

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/testing/every_target.h"
#include "kernels/testing/known_layers.h"

namespace headlab {
namespace {

/// Two sequences of four heads in two groups, whose numbers lie in one row after another with a
/// gap.
struct Problem {
  AttentionRule rule = {};
  bool distances = false, masked = true;
  AttentionShape shape = {.heads = 4, .groups = 2, .queries = 63, .keys = 71, .k = 5, .e = 3};
  std::size_t sequences = 2;
  std::vector<double> q = scattered<double>(2 * 4 * 63 * 7, 1),
                      k = scattered<double>(2 * 2 * 71 * 5, 2),
                      v = scattered<double>(2 * 2 * 71 * 3, 3),
                      bias = scattered<double>(4 * 63 * 71, 4),
                      upstream = scattered<double>(2 * 4 * 63 * 3, 5),
                      by_log_sums = scattered<double>(2 * 4 * 63, 6);
  std::vector<unsigned char> unseen = std::vector<unsigned char>(63 * 71, 0);

  Problem() {
    for (std::size_t i = 0; i < unseen.size(); i += 7) unseen[i] = 1;
  }

  template <class T>
  struct Found {
    std::vector<T> z, q, k, v, bias;
    std::vector<double> sums, sink, alibi, softcap;

    /// All, in double.
    std::map<std::string, std::vector<double>> named() const {
      const auto doubles = [](const auto& from) {
        return std::vector<double>(from.begin(), from.end());
      };
      return {{"z", doubles(z)}, {"q", doubles(q)},       {"k", doubles(k)},
              {"v", doubles(v)}, {"bias", doubles(bias)}, {"sums", sums},
              {"sink", sink},    {"alibi", alibi},        {"softcap", softcap}};
    }
  };

  template <class T>
  Found<T> run(int threads = 1) const {
    const auto numbers = [](const std::vector<double>& from) {
      return std::vector<T>(from.begin(), from.end());
    };
    const auto own_q = numbers(q), own_k = numbers(k), own_v = numbers(v), own_bias = numbers(bias),
               g = numbers(upstream);
    AttentionBatch<T> batch{
        .rule = rule, .shape = shape, .sequences = sequences, .distances = distances};
    batch.head = [&](std::size_t b, std::size_t h) {
      const std::size_t group = b * shape.groups + shape.group(h);
      AttentionHead<T> head{
          .q = {own_q.data() + (b * shape.heads + h) * shape.queries * 7, shape.queries, shape.k,
                7},
          .k = {own_k.data() + group * shape.keys * shape.k, shape.keys, shape.k, shape.k}};
      if (!v.empty()) {
        head.v = {own_v.data() + group * shape.keys * shape.e, shape.keys, shape.e, shape.e};
      }
      if (!masked) return head;
      head.bias = {own_bias.data() + h * shape.queries * shape.keys, shape.queries, shape.keys,
                   shape.keys};
      head.unseen = {unseen.data(), shape.queries, shape.keys, shape.keys};
      return head;
    };
    const std::size_t windows = sequences * shape.heads * shape.queries;
    Found<T> out;
    out.z.resize(windows * shape.e);
    out.sums.resize(windows);
    attend_heads(batch, threads, nullptr, out.z.data(), out.sums.data());
    out.q.resize(windows * shape.k);
    out.k.resize(k.size());
    out.v.resize(v.size());
    out.bias.resize(windows * shape.keys);
    out.sink.resize(sequences * shape.heads);
    out.alibi.resize(sequences * shape.heads);
    out.softcap.resize(sequences * shape.heads);
    AttentionGradients<T> to{.q = out.q.data(),
                             .k = out.k.data(),
                             .v = v.empty() ? nullptr : out.v.data(),
                             .bias = out.bias.data(),
                             .softcap = out.softcap.data()};
    if (!rule.sink.empty()) to.sink = out.sink.data();
    if (!rule.alibi.empty()) to.alibi = out.alibi.data();
    attend_heads_backward(batch, {g.data(), by_log_sums.data()}, threads, nullptr, to);
    return out;
  }

  double objective() const {
    const Found<double> found = run<double>();
    double sum = 0;
    for (std::size_t i = 0; i < found.z.size(); ++i) sum += found.z[i] * upstream[i];
    for (std::size_t i = 0; i < found.sums.size(); ++i) sum += found.sums[i] * by_log_sums[i];
    return sum;
  }

  /// The derivative by a number of this problem, of which a central difference of fourth order is
  /// right to (step^4 / 30) times the fifth derivative and the rounding of the sums over the step.
  double by(double& number, double step) const {
    const double before = number;
    const auto at = [&](double x) {
      number = before + x * step;
      const double found = objective();
      number = before;
      return found;
    };
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
  }
};

void expect_derivatives(Problem problem) {
  const Problem::Found<double> found = problem.run<double>();
  // `unit`: how much less a number has to change for logits to change as much.
  const auto expect = [&](double gradient, double& number, const char* name, std::size_t i,
                          double unit = 1) {
    EXPECT_LE(std::abs(gradient - problem.by(number, 1e-3 / unit)), 1e-9 * unit)
        << name << " " << i;
  };
  const AttentionShape& shape = problem.shape;
  for (std::size_t i = 0; i < found.q.size(); i += 499) {
    expect(found.q[i], problem.q[i / shape.k * 7 + i % shape.k], "q", i);
  }
  for (std::size_t i = 0; i < found.k.size(); i += 301) expect(found.k[i], problem.k[i], "k", i);
  for (std::size_t i = 0; i < found.v.size(); i += 211) expect(found.v[i], problem.v[i], "v", i);
  if (problem.masked) {
    for (std::size_t i = 0; i < problem.bias.size(); i += 4001) {
      expect(found.bias[i] + found.bias[i + problem.bias.size()], problem.bias[i], "bias", i);
    }
  }
  for (std::size_t h = 0; h < problem.rule.sink.size(); ++h) {
    expect(found.sink[h] + found.sink[h + shape.heads], problem.rule.sink[h], "sink", h);
    expect(found.alibi[h] + found.alibi[h + shape.heads], problem.rule.alibi[h], "alibi", h,
           static_cast<double>(problem.rule.window));
  }
  if (problem.rule.softcap > 0) {
    const double by_all = std::accumulate(found.softcap.begin(), found.softcap.end(), 0.0);
    expect(by_all, problem.rule.softcap, "softcap", 0);
  }
}

Problem busy() {
  Problem problem;
  problem.rule = {.scale = 1.3,
                  .softcap = 1.5,
                  .window = 40,
                  .alibi = {0.1, 0.02, -0.05, 0.03},
                  .sink = {0.5, -1, 2, 0}};
  return problem;
}

Problem distant() {
  Problem problem;
  problem.rule = {.scale = -0.5, .causal = false, .leave_own_out = true};
  problem.distances = true;
  problem.masked = false;
  return problem;
}

TEST(AttentionHeads, HaveTheDerivativesOfTheirValues) {
  expect_derivatives(busy());
  expect_derivatives(distant());
}

/// Sums of up to 63 queries and 71 keys of numbers below 1, each rounded in float32.
constexpr double of_singles = 1e-5, of_doubles = 1e-13;

TEST(AttentionHeads, AreTheSameInEveryInstructionSetAndType) {
  for (const Problem& problem : {busy(), distant()}) {
    const auto expected = problem.run<double>().named();
    const auto expect = [&](const auto& found, double tolerance) {
      for (const auto& [name, numbers] : found.named()) {
        EXPECT_LE(relative_distance(numbers, expected.at(name)),
                  name == "alibi" ? 71 * tolerance : tolerance)
            << name;
      }
    };
    test::on_every_target([&] {
      expect(problem.run<double>(), of_doubles);
      expect(problem.run<float>(), of_singles);
    });
  }
}

TEST(AttentionHeads, HaveTheSameBitsOnAnyNumberOfThreads) {
  EXPECT_EQ(busy().run<float>(1).named(), busy().run<float>(3).named());
}

TEST(AttentionHeads, WithoutValuesAreTheWeights) {
  Problem ones = busy();
  const std::size_t keys = ones.shape.keys;
  ones.shape.e = keys;
  ones.upstream = scattered<double>(2 * 4 * 63 * keys, 5);
  ones.v.assign(2 * 2 * keys * keys, 0);
  for (std::size_t i = 0; i < 2 * 2 * keys; ++i) ones.v[i * keys + i % keys] = 1;
  Problem bare = ones;
  bare.v.clear();
  const Problem::Found<float> found = bare.run<float>(), expected = ones.run<float>();
  EXPECT_EQ(found.z, expected.z);
  EXPECT_EQ(found.q, expected.q);
  EXPECT_EQ(found.k, expected.k);
  EXPECT_EQ(found.bias, expected.bias);
  double sum = 0;
  for (std::size_t s = 0; s < keys; ++s) sum += static_cast<double>(found.z[s]);
  EXPECT_GT(sum, 0);
}

TEST(AttentionHeads, SeeKeysFarAwayByTheirDistance) {
  Problem problem = distant();
  for (double& number : problem.q) number += 1e5;
  for (const double sum : problem.run<double>().sums) EXPECT_LT(sum, unseen_logit);
  for (const double z : problem.run<double>().z) EXPECT_NE(z, 0);
}

}  // namespace
}  // namespace headlab
