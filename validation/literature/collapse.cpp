// SPDX-License-Identifier: Apache-2.0
// Attention alone makes tokens equal. With D the largest distance of two tokens, |.| spectral norms
// and c = |b| sum_h |V_h| |M_h|/(4t),
//   D_L <= c^(-1/2) (c^(1/2) D_0)^(3^L),
// which is doubly exponential where c D_0^2 < 1. Scores may remember those of the layers before,
// score_l = a score_(l-1) + (1-a) now_l. Diameters of one head then have the bound
//   D_l <= |V| tanh(B_l/4) D_(l-1),  B_1 = |M| D_0^2/t,  B_l = a B_(l-1) + (1-a) |M| D_(l-1)^2/t,
// which falls at least linearly. On the simplex, for 0 < a < 1, log residuals fall like
// -(L^2/2) log(1/a), so that their second differences tend to log a; for a = 1 these are 0. The
// other forms are in the scenarios.
#include <cmath>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "kernels/counted.h"
#include "kernels/decompositions.h"
#include "kernels/plan.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/worker.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/literature/stack_examples.h"
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

/// Compares the diameters of all layers in each replicate so far with the bound for the maps and
/// tokens drawn in it: with the memory of one head where there is one, else the doubly exponential
/// one. The conditions are softmax stacks with shared Gaussian maps, without skip, norm and MLP.
std::vector<Finding> within_diameter_bounds(Experiment& experiment) {
  constexpr double rounding = 1e-9;  // of a logarithm
  const Plan& claimed = experiment.plan();
  const Stack& stack = *claimed.stack;
  const Plan world = faulty_plan(experiment, 0);
  std::uint64_t within = 0;
  std::uint64_t contracting = 0;
  for (std::uint64_t r = 0; r < experiment.replicates(); ++r) {
    const StackDraws draws{.seed = claimed.seed, .replicate = r};
    const Eigen::MatrixXd tokens = stack_tokens(world, r);
    const std::vector<LayerMetrics> seen = stack_metrics(*world.stack, draws, tokens);
    const std::vector<HeadNorms> norms = norms_of(stack, draws, tokens.cols());
    const double diameter = seen[0].diameter;
    const double c = contraction_constant(norms, stack.branch, stack.temperature);
    const std::vector<double> bounds =
        stack.memory > 0 ? log_diameter_upper_bounds({.norms = norms[0],
                                                      .branch = stack.branch,
                                                      .temperature = stack.temperature,
                                                      .memory = stack.memory},
                                                     diameter, stack.layers)
                         : log_diameter_upper_bounds(c, diameter, stack.layers);
    if (stack.memory > 0 ? bounds[1] < bounds[0] : c * diameter * diameter < 1) ++contracting;
    bool bounded = true;
    for (std::size_t l = 0; l < bounds.size(); ++l) {
      bounded = bounded && std::log(seen[l].diameter) <= bounds[l] + rounding;
    }
    if (bounded) ++within;
  }
  Finding finding;
  const auto all = static_cast<double>(experiment.replicates());
  finding.comparisons.push_back(at_least_zero("replicates within their bound minus all replicates",
                                              static_cast<double>(within) - all, 1, 0,
                                              experiment.node_counts()));
  // Where it holds the bound falls: doubly exponentially, or with a memory at least linearly.
  finding.note = std::string(stack.memory > 0 ? "|V| tanh(B_1/4) < 1" : "c D_0^2 < 1") + " in " +
                 std::to_string(contracting) + " of " +
                 counted(experiment.replicates(), "replicate") + ".";
  return {std::move(finding)};
}

std::vector<Finding> is_linear(Experiment& experiment) {
  const auto& rows = experiment.observed_layers().rows;
  const std::size_t last = rows.size() - 1;
  const auto log_residual = [&](std::size_t layer) {
    return rows[layer].metrics[layer_metric("log_residual")];
  };
  const Jackknifed second =
      log_residual(last) - Jackknifed(2) * log_residual(last - 1) + log_residual(last - 2);
  Finding finding;
  finding.comparisons.push_back(
      equal_to("second difference of log residuals in layer " + std::to_string(last), second, 0, 1,
               experiment.margin(), experiment.node_counts()));
  return {std::move(finding)};
}

}  // namespace

Claim collapse_claim() {
  return {.name = "collapse", .forms = {{.name = "bound", .examine = within_diameter_bounds}}};
}

Claim hidden_state_claim() {
  return {.name = "hidden_state",
          .forms = {{.name = "bound", .examine = within_diameter_bounds},
                    {.name = "linear rate", .examine = is_linear}}};
}

}  // namespace headlab
