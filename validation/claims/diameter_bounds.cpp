// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/diameter_bounds.h"

#include <cmath>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "kernels/decompositions.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/worker.h"
#include "validation/claims/stack_examples.h"
#include "validation/theory/depth/contraction_bounds.h"

namespace headlab {
namespace {

std::vector<HeadNorms> norms_of(const Stack& stack, const StackDraws& draws, Eigen::Index d) {
  std::vector<HeadNorms> norms;
  for (int h = 0; h < stack.heads; ++h) {
    norms.push_back({.query_key = spectral_norm(query_key_map(stack, draws, 0, h, d)),
                     .value = spectral_norm(value_map(stack, draws, 0, h, d))});
  }
  return norms;
}

}  // namespace

std::vector<Finding> within_diameter_bounds(Experiment& experiment) {
  constexpr double rounding = 1e-9;  // of a logarithm
  const Plan& claimed = experiment.plan();
  const Stack& stack = *claimed.stack;
  Plan world = claimed;
  experiment.add_fault(world);
  std::uint64_t within = 0;
  std::uint64_t contracting = 0;
  for (std::uint64_t r = 0; r < experiment.replicates(); ++r) {
    const StackDraws draws{.seed = claimed.seed, .replicate = r};
    const Eigen::MatrixXd tokens = stack_tokens(world, r);
    const std::vector<LayerMetrics> seen = stack_metrics(*world.stack, draws, tokens);
    const std::vector<HeadNorms> norms = norms_of(stack, draws, tokens.cols());
    const double diameter = seen[0].diameter;
    const double c = contraction_constant(norms, stack.branch, stack.temperature);
    if (c * diameter * diameter < 1) ++contracting;
    const std::vector<double> bounds =
        stack.memory > 0 ? log_diameter_upper_bounds({.norms = norms[0],
                                                      .branch = stack.branch,
                                                      .temperature = stack.temperature,
                                                      .memory = stack.memory},
                                                     diameter, stack.layers)
                         : log_diameter_upper_bounds(c, diameter, stack.layers);
    bool bounded = true;
    for (std::size_t l = 0; l < bounds.size(); ++l) {
      bounded = bounded && std::log(seen[l].diameter) <= bounds[l] + rounding;
    }
    if (bounded) ++within;
  }
  Finding finding;
  const auto all = static_cast<double>(experiment.replicates());
  finding.comparisons.push_back(at_least_zero("replicates within their bound, less all replicates",
                                              static_cast<double>(within) - all, 1, 0,
                                              experiment.node_counts()));
  finding.note = "c D_0^2 < 1 in " + std::to_string(contracting) + " of " +
                 std::to_string(experiment.replicates()) + " replicates.";
  return {std::move(finding)};
}

}  // namespace headlab
