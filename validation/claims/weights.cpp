// SPDX-License-Identifier: Apache-2.0
// The best weights of sum 1 are a* = M^-1 1 / (1^T M^-1 1), M = C + B B^T. Estimated from R
// replicates they flatter themselves: on the replicates they were fitted to their error is
// (R - H)/(R - 1) of the optimum's, on fresh ones 1 + (H - 1)/(R - H - 1) times it. (Both are
// expectations under a Wishart law: exact for normal errors without bias.) So weights are judged on
// fresh replicates.
#include <Eigen/Core>

#include "engine/run/pilot.h"
#include "kernels/decompositions.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/claims/replicate_backend.h"

namespace headlab {
namespace {

/// Replicates that each set of weights is fitted to.
constexpr std::uint64_t fitted_to = 40;

/// A worker whose replicate is a whole pilot study of `fitted_to` training sets. Its two
/// "estimates" are the variance of the fitted ensemble on the pilot itself and on fresh training
/// sets, both in units of the best ensemble's.
class FittingWorker : public ReplicateWorker {
 public:
  FittingWorker(const MomentLayout& layout, const Backend& backend, const Plan& pilot,
                const Eigen::MatrixXd& covariance)
      : ReplicateWorker({layout}),
        pilot_(pilot),
        worker_(backend.worker(pilot_)),
        covariance_(covariance) {
    const Eigen::VectorXd ones = Eigen::VectorXd::Ones(covariance.rows());
    best_ = 1 / ones.dot(Cholesky(covariance).solve(ones));
  }

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts>) override {
    const Block block{.first = number * fitted_to, .count = fitted_to};
    std::vector<Moments> nodes(block.nodes());
    worker_->run(block, nodes);
    const MomentLayout layout = pilot_.layout();
    for (std::size_t i = 1; i < nodes.size(); ++i) merge_moments(layout, nodes[0], nodes[i]);
    const auto heads = static_cast<Eigen::Index>(layout.heads);
    Eigen::MatrixXd sample(heads, heads);
    for (Eigen::Index h = 0; h < heads; ++h) {
      for (Eigen::Index l = h; l < heads; ++l) {
        sample(h, l) = sample(l, h) =
            nodes[0]
                .comoment[layout.pair(static_cast<std::size_t>(h), static_cast<std::size_t>(l))] /
            static_cast<double>(fitted_to - 1);
      }
    }
    const std::vector<double> fitted = optimal_weights(sample);
    const Eigen::Map<const Eigen::VectorXd> a(fitted.data(), heads);
    statistics[0][0] = a.dot(sample * a) / best_;
    statistics[0][1] = a.dot(covariance_ * a) / best_;
  }

 private:
  const Plan& pilot_;
  std::unique_ptr<Worker> worker_;
  const Eigen::MatrixXd& covariance_;
  double best_ = 1;
};

/// C of the ensemble's heads at its one query, from theory.
Eigen::MatrixXd true_covariance(Experiment& experiment) {
  const auto& query = experiment.theory(0).figures.queries.at(0);
  const auto heads = static_cast<Eigen::Index>(query.head_bias.size());
  Eigen::MatrixXd c(heads, heads);
  for (Eigen::Index i = 0; i < heads * heads; ++i) {
    c(i / heads, i % heads) = query.head_covariance.at(static_cast<std::size_t>(i)).value;
  }
  return c;
}

std::vector<Finding> optimism(Experiment& experiment) {
  const Eigen::MatrixXd covariance = true_covariance(experiment);
  const Backend& inner = *experiment.session().backend;
  Plan fitted = experiment.plan();
  experiment.add_fault(fitted);
  const ReplicateBackend backend(inner, [&](const Plan& plan) {
    return std::make_unique<FittingWorker>(plan.layout(), inner, fitted, covariance);
  });
  // Two estimates a replicate, of which the means are wanted.
  Plan pilots;
  pilots.heads = 2;
  pilots.head_weights = {0.5, 0.5};
  pilots.truth = {0.0};
  pilots.estimator = Estimator::plain;
  const JackknifedEstimates& seen = experiment.observed("pilots", pilots, backend);
  const std::vector<Jackknifed>& ratios = seen.queries.at(0).head_bias;

  const double heads = experiment.plan().heads;
  const auto r = static_cast<double>(fitted_to);
  Finding finding;
  finding.comparisons = {
      equal_to("variance of weights fitted to 40 replicates, on these replicates, over the "
               "optimum, minus (R - H)/(R - 1)",
               ratios.at(0), (r - heads) / (r - 1), 1, experiment.margin(), seen.node_counts),
      equal_to("the same on fresh replicates, minus 1 + (H - 1)/(R - H - 1)", ratios.at(1),
               1 + (heads - 1) / (r - heads - 1), 1, experiment.margin(), seen.node_counts)};
  return {std::move(finding)};
}

/// Condition 0 has uniform weights, condition 1 those of a pilot with draws of its own.
std::vector<Finding> gain(Experiment& experiment) {
  const Jackknifed& uniform = experiment.observed(0).mse;
  const Jackknifed& optimal = experiment.observed(1).mse;
  Finding finding;
  finding.comparisons.push_back(at_least_zero(
      "MSE with uniform minus MSE with optimal weights, relative to the former", uniform - optimal,
      uniform.value, experiment.margin(), experiment.node_counts()));
  return {std::move(finding)};
}

}  // namespace

Claim weights_claim() {
  return {.name = "weights",
          .forms = {{.name = "optimism", .examine = optimism}, {.name = "gain", .examine = gain}}};
}

}  // namespace headlab
