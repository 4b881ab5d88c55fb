// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/maps.h"

#include <cmath>
#include <variant>
#include <vector>

#include "kernels/draws.h"
#include "kernels/stack/subset_sum.h"

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;

namespace {

constexpr int max_layers = 4096;

/// Number of a head's draws; with shared weights all layers have those of layer
/// 0.
std::uint64_t place(const Stack& stack, int layer, int head) {
  const auto l = static_cast<std::uint64_t>(stack.shared_weights ? 0 : layer);
  return l * static_cast<std::uint64_t>(stack.heads) + static_cast<std::uint64_t>(head);
}

/// Replaces the entries of a d x d map, the first or the second of its head, by
/// subset sums.
void prune(const GaussianMaps& maps, const StackDraws& draws, std::uint64_t point, int which,
           MatrixXd& map) {
  const auto m = static_cast<std::uint64_t>(maps.samples);
  const auto d = static_cast<std::uint64_t>(map.cols());
  const std::uint64_t quads = d * d * m;  // two maps, two uniforms a product
  const std::uint64_t stream = subsequence(Purpose::pruning_samples, draws.replicate);
  std::vector<double> products(m);
  for (std::uint64_t row = 0; row < d; ++row) {
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

}  // namespace

MatrixXd normal_matrix(const StackDraws& draws, Purpose purpose, std::uint64_t point, Index rows,
                       Index columns, double sd) {
  std::vector<float> normals(static_cast<std::size_t>(rows * columns));
  const std::uint64_t quads = (normals.size() + 3) / 4;
  draws.arithmetic->normals(draws.seed, subsequence(purpose, draws.replicate), point * quads,
                            normals);
  // Row by row.
  return sd * Eigen::Map<const Eigen::MatrixXf>(normals.data(), columns, rows)
                  .transpose()
                  .cast<double>();
}

MatrixXd query_key_map(const Stack& stack, const StackDraws& draws, int layer, int head, Index d) {
  if (const auto* given = std::get_if<ExplicitMaps>(&stack.maps)) {
    return given->query_key[static_cast<std::size_t>(head)];
  }
  const auto& maps = std::get<GaussianMaps>(stack.maps);
  const std::uint64_t point = place(stack, layer, head);
  const double sd = std::sqrt(maps.query_key / static_cast<double>(d));
  MatrixXd map = draws.arithmetic->product(
      normal_matrix(draws, Purpose::query_weights, point, d, maps.k, sd),
      normal_matrix(draws, Purpose::key_weights, point, d, maps.k, sd).transpose());
  if (maps.samples > 0) prune(maps, draws, point, 0, map);
  return map;
}

MatrixXd value_map(const Stack& stack, const StackDraws& draws, int layer, int head, Index d) {
  if (stack.averaged) head = 0;
  if (const auto* given = std::get_if<ExplicitMaps>(&stack.maps)) {
    return given->value[static_cast<std::size_t>(head)];
  }
  const auto& maps = std::get<GaussianMaps>(stack.maps);
  const std::uint64_t point = place(stack, layer, head);
  const int summed = stack.averaged || stack.alternating ? 1 : stack.heads;
  const double sd = std::sqrt(maps.value / static_cast<double>(d));
  const double output_sd = 1 / std::sqrt(static_cast<double>(summed) * maps.value_dim);
  MatrixXd map = draws.arithmetic->product(
      normal_matrix(draws, Purpose::value_weights, point, d, maps.value_dim, sd),
      normal_matrix(draws, Purpose::output_weights, point, maps.value_dim, d, output_sd));
  if (maps.samples > 0) prune(maps, draws, point, 1, map);
  return map;
}

Mlp layer_mlp(const Stack& stack, const StackDraws& draws, int layer, Index d) {
  if (const auto* given = std::get_if<Mlp>(&*stack.mlp)) return *given;
  const auto& mlp = std::get<GaussianMlp>(*stack.mlp);
  const std::uint64_t point = place(stack, layer, 0);
  const double input_sd = 1 / std::sqrt(static_cast<double>(d));
  const double output_sd = mlp.scale * std::sqrt(2.0 / mlp.width);
  return {.input = normal_matrix(draws, Purpose::mlp_input, point, d, mlp.width, input_sd),
          .bias = normal_matrix(draws, Purpose::mlp_bias, point, 1, mlp.width, mlp.bias),
          .output = normal_matrix(draws, Purpose::mlp_output, point, mlp.width, d, output_sd)};
}

MatrixXd independent_logits(const Stack& stack, const StackDraws& draws, int layer, int head,
                            Index n) {
  const double shared = stack.logit_correlation;
  auto logits = [&](int l, int h, double variance) {
    const auto point = static_cast<std::uint64_t>(l) * static_cast<std::uint64_t>(stack.heads) +
                       static_cast<std::uint64_t>(h);
    return normal_matrix(draws, Purpose::logits, point, n, n, stack.logit_sd * std::sqrt(variance));
  };
  MatrixXd own = logits(layer, head, 1 - shared);
  if (shared > 0) own += logits(max_layers + layer, 0, shared);
  return own;
}

}  // namespace headlab
