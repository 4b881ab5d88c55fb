// SPDX-License-Identifier: Apache-2.0
#include "engine/run/pilot.h"

#include <limits>
#include <string>
#include <variant>

#include "engine/moments/estimates.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/decompositions.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

/// Mean over the queries of C + B B^T [H][H].
Eigen::MatrixXd mean_squared_errors(const ConditionEstimates& estimates, int heads) {
  Eigen::MatrixXd m = Eigen::MatrixXd::Zero(heads, heads);
  for (const QueryEstimates& query : estimates.queries) {
    for (int h = 0; h < heads; ++h) {
      for (int l = 0; l < heads; ++l) {
        const double covariance =
            query.head_covariance[static_cast<std::size_t>(h * heads + l)].value;
        const double b_h = query.head_bias[static_cast<std::size_t>(h)].value;
        const double b_l = query.head_bias[static_cast<std::size_t>(l)].value;
        m(h, l) += covariance + b_h * b_l;
      }
    }
  }
  return m / static_cast<double>(estimates.queries.size());
}

[[noreturn]] void undefined(const std::string& problem) {
  throw ParameterError("", problem + " - use weights = { law = \"uniform\" }");
}

}  // namespace

std::vector<double> optimal_weights(const Eigen::MatrixXd& m) {
  const Eigen::Index heads = m.rows();
  const Eigen::VectorXd squared_errors = m.diagonal();
  if (!m.allFinite()) undefined("the pilot's mean squared errors are not finite");
  if (!(squared_errors.minCoeff() > 0)) {
    undefined("a head has no error at all, so there is nothing to weigh");
  }

  // Heads of very different error are no singularity: scaled to a unit diagonal, only near-equal
  // heads are. The eigenvalues tell how near.
  const Eigen::VectorXd scale = squared_errors.cwiseSqrt().cwiseInverse();
  const Eigen::MatrixXd scaled = scale.asDiagonal() * m * scale.asDiagonal();
  const double smallest = symmetric_eigenvalues(scaled).values(0);
  if (!(smallest > static_cast<double>(heads) * std::numeric_limits<float>::epsilon())) {
    undefined("some heads estimate the same (aligned subspaces?), so no weights are best");
  }
  const Eigen::VectorXd solved = scale.asDiagonal() * Cholesky(scaled).solve(scale);
  const Eigen::VectorXd a = solved / solved.sum();
  return {a.begin(), a.end()};
}

Plan drawn_from(Plan plan, const Streams& streams) {
  const Streams run = plan.streams;
  plan.streams = streams;
  if (plan.fixed_design_seed) {
    plan.streams.design = run.design;
    plan.streams.design_choice = run.design_choice;
  }
  return plan;
}

Plan pilot_plan(const Condition& condition, const Preparation& found) {
  const auto& law = std::get<OptimalWeights>(*condition.weights);
  Condition pilot = condition;
  pilot.weights = UniformWeights{};
  pilot.estimator = Estimator::conditional;
  pilot.moments = MomentMode::pairwise;
  pilot.seed = law.seed;
  return drawn_from(make_plan(pilot, {.heads = found.heads}), pilot_streams);
}

bool find_weights(const Condition& condition, Preparation& found, const Session& session) {
  const auto* law = std::get_if<OptimalWeights>(&*condition.weights);
  if (law == nullptr) return true;
  if (condition.heads == 1) {
    found.head_weights = {1.0};
    return true;
  }
  const Plan plan = pilot_plan(condition, found);
  const MomentTree tree = simulate(plan, *session.backend, session.threads, law->replicates,
                                   {.stop = session.stop_hook()});
  if (tree.count() < law->replicates) return false;
  const ConditionEstimates estimates = estimate(tree, plan);
  try {
    found.head_weights = optimal_weights(mean_squared_errors(estimates, plan.heads));
  } catch (const ParameterError& error) {
    reject(condition, "heads.weights", std::string("law \"optimal\": ") + error.what());
  }
  return true;
}

}  // namespace headlab
