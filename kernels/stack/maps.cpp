// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/maps.h"

#include <cmath>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/draws.h"
#include "kernels/stack/subset_sum.h"
#include "kernels/statistics/stopping.h"

namespace headlab {

using Eigen::Index;

namespace {

/// Number of a head's draws; with shared weights all layers have those of layer
/// 0.
std::uint64_t place(const Stack& stack, int layer, int head) {
  const auto l = static_cast<std::uint64_t>(stack.shared_weights ? 0 : layer);
  return l * static_cast<std::uint64_t>(stack.heads) + static_cast<std::uint64_t>(head);
}

/// Replaces the entries of a d x d map, the first or the second of its head, by
/// subset sums.
void prune(const GaussianMaps& maps, const StackDraws& draws, std::uint64_t point, int which,
           RowsOut map) {
  const auto m = static_cast<std::uint64_t>(maps.samples);
  const auto d = static_cast<std::uint64_t>(map.cols());
  const std::uint64_t quads = d * d * m;  // two maps, two uniforms a product
  const std::uint64_t stream = subsequence(Purpose::pruning_samples, draws.replicate);
  std::vector<double> products(m);
  for (std::uint64_t row = 0; row < d; ++row) {
    stop_point();
    for (std::uint64_t column = 0; column < d; ++column) {
      const std::uint64_t entry = (static_cast<std::uint64_t>(which) * d + row) * d + column;
      for (std::uint64_t s = 0; s < m; ++s) {
        const std::uint64_t first = 2 * (entry * m + s);
        const Words words = philox(draws.seed, stream, point * quads + first / 4);
        products[s] = static_cast<double>(uniform_symmetric(words.w[first % 4])) *
                      static_cast<double>(uniform_symmetric(words.w[first % 4 + 1]));
      }
      double& target = map(static_cast<Index>(row), static_cast<Index>(column));
      target = nearest_subset_sum(products, target);
    }
  }
}

/// Draws the entries [count][rows][columns] of the points from `first` on.
void draw_points(const StackDraws& draws, Purpose purpose, std::uint64_t first, int count,
                 Index rows, Index columns, double sd, RowMatrix& out) {
  out.resize(count * rows, columns);
  const auto size = static_cast<std::size_t>(rows * columns);
  const std::uint64_t quads = (size + 3) / 4;
  const std::uint64_t stream = subsequence(purpose, draws.replicate);
  const std::span<double> all(out.data(), static_cast<std::size_t>(out.size()));
  if (size % 4 == 0) {  // one point after the other
    draws.arithmetic->normals(draws.seed, stream, first * quads, sd, all);
    return;
  }
  for (std::size_t p = 0; p < static_cast<std::size_t>(count); ++p) {
    draws.arithmetic->normals(draws.seed, stream, (first + p) * quads, sd,
                              all.subspan(p * size, size));
  }
}

/// Matrices one below the other, over a divisor.
void put_below(const Matrices& matrices, HeadRange range, double divisor, RowMatrix& out) {
  const Index d = matrices.at(0).rows();
  out.resize(range.count * d, d);
  for (int h = 0; h < range.count; ++h) {
    out.middleRows(h * d, d) = matrices[static_cast<std::size_t>(range.first + h)] / divisor;
  }
}

/// Makes first second (or first second^T) of every head its first factor, pruned.
void prune_all(const GaussianMaps& maps, const StackDraws& draws, std::uint64_t point, int count,
               int which, double divisor, RowMatrix& first, const RowMatrix& second) {
  const Index heads = count;
  const Index d = first.rows() / heads;
  RowMatrix full(first.rows(), d);
  for (Index h = 0; h < heads; ++h) {
    auto map = full.middleRows(h * d, d);
    const auto left = first.middleRows(h * d, d);
    const Index inner = second.rows() / heads;
    const auto right = second.middleRows(h * inner, inner);
    if (which == 0) {
      draws.arithmetic->product_transposed(left, right, map);
    } else {
      draws.arithmetic->product(left, right, map);
    }
    prune(maps, draws, point + static_cast<std::uint64_t>(h), which, map);
  }
  first = full / divisor;
}

}  // namespace

RowMatrix normal_matrix(const StackDraws& draws, Purpose purpose, std::uint64_t point, Index rows,
                        Index columns, double sd) {
  RowMatrix out;
  draw_points(draws, purpose, point, 1, rows, columns, sd, out);
  return out;
}

MapScales map_scales(const Stack& stack, Index d) {
  const auto& maps = std::get<GaussianMaps>(stack.maps);
  const int summed = stack.averaged || stack.alternating ? 1 : stack.heads;
  return {.query_key = std::sqrt(maps.query_key / static_cast<double>(d)),
          .value = std::sqrt(maps.value / static_cast<double>(d)),
          .output = 1 / std::sqrt(static_cast<double>(summed) * maps.value_dim)};
}

MlpScales mlp_scales(const GaussianMlp& mlp, Index d) {
  return {.input = 1 / std::sqrt(static_cast<double>(d)),
          .bias = mlp.bias,
          .output = mlp.scale * std::sqrt(2.0 / mlp.width)};
}

void draw_maps(const Stack& stack, const StackDraws& draws, int layer, HeadRange scored,
               HeadRange used, Index d, LayerMaps& out) {
  if (stack.averaged) used = {};
  if (const auto* given = std::get_if<ExplicitMaps>(&stack.maps)) {
    if (scored.count > 0) put_below(given->query_key, scored, stack.temperature, out.query);
    put_below(given->value, used, 1, out.output);
    out.key.resize(0, 0);
    out.value.resize(0, 0);
    return;
  }
  const auto& maps = std::get<GaussianMaps>(stack.maps);
  const MapScales scales = map_scales(stack, d);
  const bool pruned = maps.samples > 0;
  if (scored.count > 0) {
    const std::uint64_t point = place(stack, layer, scored.first);
    const double divisor = pruned ? 1 : stack.temperature;
    draw_points(draws, Purpose::query_weights, point, scored.count, d, maps.k,
                scales.query_key / divisor, out.query);
    draw_points(draws, Purpose::key_weights, point, scored.count, d, maps.k, scales.query_key,
                out.key);
    if (pruned) {
      prune_all(maps, draws, point, scored.count, 0, stack.temperature, out.query, out.key);
      out.key.resize(0, 0);
    }
  }
  const std::uint64_t point = place(stack, layer, used.first);
  draw_points(draws, Purpose::value_weights, point, used.count, d, maps.value_dim, scales.value,
              out.value);
  draw_points(draws, Purpose::output_weights, point, used.count, maps.value_dim, d, scales.output,
              out.output);
  if (pruned) {
    prune_all(maps, draws, point, used.count, 1, 1, out.value, out.output);
    std::swap(out.value, out.output);
    out.value.resize(0, 0);
  }
}

Mlp layer_mlp(const Stack& stack, const StackDraws& draws, int layer, Index d) {
  if (const auto* given = std::get_if<Mlp>(&*stack.mlp)) return *given;
  const auto& mlp = std::get<GaussianMlp>(*stack.mlp);
  const std::uint64_t point = place(stack, layer, 0);
  const MlpScales scales = mlp_scales(mlp, d);
  return {.input = normal_matrix(draws, Purpose::mlp_input, point, d, mlp.width, scales.input),
          .bias = normal_matrix(draws, Purpose::mlp_bias, point, 1, mlp.width, scales.bias),
          .output = normal_matrix(draws, Purpose::mlp_output, point, mlp.width, d, scales.output)};
}

RowMatrix independent_logits(const Stack& stack, const StackDraws& draws, int layer, int head,
                             Index n) {
  const double shared = stack.logit_correlation;
  auto logits = [&](int l, int h, double variance) {
    const auto point = static_cast<std::uint64_t>(l) * static_cast<std::uint64_t>(stack.heads) +
                       static_cast<std::uint64_t>(h);
    return normal_matrix(draws, Purpose::logits, point, n, n, stack.logit_sd * std::sqrt(variance));
  };
  RowMatrix own = logits(layer, head, 1 - shared);
  if (shared > 0) own += logits(stack::max_layers + layer, 0, shared);
  return own;
}

}  // namespace headlab
