// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/worked_examples.h"

#include <cmath>
#include <random>

#include <Eigen/Core>

#include "engine/files/error.h"
#include "validation/theory/depth/simplex.h"
#include "validation/theory/depth/walks.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using IntegerRow = Eigen::Matrix<std::int64_t, 1, Eigen::Dynamic>;

/// Integers in [-1000, 1000]: generic, but for a chance of about 1e-3 an equation.
class IntegerDraws {
 public:
  explicit IntegerDraws(std::uint64_t seed) : random_(seed) {}
  IntegerMatrix operator()(Index rows, Index columns) {
    IntegerMatrix a(rows, columns);
    for (std::int64_t& x : a.reshaped()) x = static_cast<std::int64_t>(random_() % 2001) - 1000;
    return a;
  }

 private:
  std::mt19937_64 random_;
};

/// Rows p + t_i q.
IntegerMatrix on_a_line(const IntegerMatrix& p, const IntegerMatrix& q,
                        const std::vector<std::int64_t>& t) {
  IntegerMatrix tokens(static_cast<Index>(t.size()), p.cols());
  for (std::size_t i = 0; i < t.size(); ++i) tokens.row(static_cast<Index>(i)) = p + t[i] * q;
  return tokens;
}

NormedShares normed_shares(SimplexStack stack) {
  const auto shares = [&] {
    std::vector<double> all;
    for (const SimplexLayer& layer : simplex_layers(stack)) {
      all.push_back(layer.residual_share.value_or(0));
    }
    return all;
  };
  NormedShares both;
  both.without = shares();
  stack.norm.place = SimplexNorm::Place::post;
  both.with_norm = shares();
  return both;
}

}  // namespace

HeadChannels head_channels(int n, int heads, int dim, std::uint64_t seed) {
  if (n < 1 || heads < 1 || dim < 1) throw InvalidInput("head channels: sizes must be at least 1");
  IntegerDraws draws(seed);
  const int d = heads * dim;
  const IntegerMatrix generic = draws(d, d);
  const IntegerMatrix read_out = draws(d, dim);
  const IntegerMatrix blocks = draws(d, dim);
  const IntegerMatrix row_space = draws(dim, d);
  return {n * (heads - 1) * dim, output_projection_nullity(n, generic * read_out),
          output_projection_nullity(n, blocks * row_space), output_projection_nullity(n, generic)};
}

LayerNormExamples layer_norm_examples(std::uint64_t seed) {
  constexpr Index d = 8;
  IntegerDraws draws(seed);
  LayerNormExamples examples;
  examples.few = normed_ranks(draws(8, d), NormKind::layer);
  examples.many = normed_ranks(draws(12, d), NormKind::layer);
  const IntegerMatrix point = draws(1, d);
  const IntegerMatrix shifted = on_a_line(point, IntegerMatrix::Ones(1, d), {0, 1, 5, -3});
  examples.shifted = normed_ranks(shifted, NormKind::layer);
  examples.shifted_gently = normed_ranks(shifted, NormKind::layer, {1000000, 7});
  const IntegerMatrix direction = draws(1, d);
  examples.collinear = normed_ranks(on_a_line(point, direction, {0, 1, 5, -3}), NormKind::layer);
  return examples;
}

NormedShares norm_protects(int layers) {
  return normed_shares({.n = 4,
                        .rho = 4,
                        .mu = 4,
                        .query_key = {1},
                        .value = {0.5},
                        .mean_value = {0.1},
                        .layers = layers,
                        .norm = {.dim = 8}});
}

NormedShares norm_contributes(int layers) {
  // mu/rho = .05, |x|^2 = d = 1.05 after each norm; d is a number of features in no other place.
  constexpr double ratio = 0.05;
  SimplexStack stack = {.n = 2,
                        .rho = 1,
                        .mu = ratio,
                        .query_key = {1},
                        .value = {1},
                        .layers = layers,
                        .skip = 1,
                        .norm = {.dim = 1}};
  stack.norm.gain = std::sqrt(1 + ratio);
  return normed_shares(stack);
}

SpanExamples span_examples(std::uint64_t seed) {
  IntegerDraws draws(seed);
  SpanExamples examples;
  // Rows of attention times 60.
  IntegerMatrix attention = IntegerMatrix::Zero(6, 6);
  for (Index i = 0; i < 6; ++i) attention.row(i).head(i + 1).setConstant(60 / (i + 1));
  const IntegerMatrix low_rank = draws(6, 2) * draws(2, 5);
  const IntegerMatrix full_rank = draws(6, 5);
  const IntegerMatrix values = draws(5, 5);
  examples.identity_values = dimensions_outside_span(low_rank, 3 * attention * low_rank);
  examples.tokens_span_all = dimensions_outside_span(full_rank, attention * full_rank * values);
  examples.general_values = dimensions_outside_span(low_rank, attention * low_rank * values);

  constexpr Index d = 8, width = 64;
  const IntegerMatrix direction = draws(1, d);
  const std::vector<std::int64_t> along = {-7, -5, -3, -1, 1, 3, 5, 7};
  const IntegerMatrix line = on_a_line(draws(1, d), direction, along);
  const IntegerMatrix ray = on_a_line(IntegerMatrix::Zero(1, d), direction, along);
  const IntegerMatrix input = draws(d, width);
  const IntegerMatrix output = draws(width, d);
  const IntegerRow bias = IntegerRow::Zero(width);
  examples.line = exact_rank(line);
  examples.line_after_mlp = exact_rank(integer_mlp(line, input, bias, output));
  examples.ray = exact_rank(ray);
  examples.ray_after_mlp = exact_rank(integer_mlp(ray, input, bias, output));
  return examples;
}

Matrices complementary_walks(int half, double slow) {
  MatrixXd first = line_walk(2 * half, slow);
  MatrixXd second = first;
  const MatrixXd fast = line_walk(2 * half, 1);
  first.topRows(half) = fast.topRows(half);
  second.bottomRows(half + 1) = fast.bottomRows(half + 1);
  return {first, second};
}

Matrices antagonistic_walks() {
  Matrices walks(2, MatrixXd::Zero(4, 4));
  for (MatrixXd& walk : walks) walk(2, 3) = walk(3, 3) = 1;
  walks[0](0, 3) = walks[0](1, 2) = 1;
  walks[1](0, 1) = walks[1](1, 3) = 1;
  return walks;
}

std::vector<GraphEdges> antagonistic_graphs() {
  return {{{0, 1}, {0, 2}, {1, 3}, {2, 3}}, {{0, 1}, {1, 2}, {2, 3}}};
}

double subset_error_rate(SampleLaw law, double target, int from, int to) {
  if (from >= to) throw InvalidInput("subset sums: needs from < to");
  const auto log_error = [&](int count) {
    return std::log(RandomEnergyForm(count, law).median_error(target)) -
           std::log(static_cast<double>(count)) / 2;
  };
  return (log_error(from) - log_error(to)) / (to - from);
}

}  // namespace headlab
