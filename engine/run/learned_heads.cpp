// SPDX-License-Identifier: Apache-2.0
#include "engine/run/learned_heads.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>

#include <Eigen/Core>

#include "engine/run/pilot.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/decompositions.h"
#include "kernels/kernel_laws.h"
#include "kernels/learning/worker.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The plan whose replicate 0 is the sample of the fit, and replicate 1 fresh keys.
Plan sample_plan(const Condition& condition, const LearnedSubspaces& law) {
  Condition sampled = condition;
  sampled.subspaces = AlignedSubspaces{};
  sampled.weights = UniformWeights{};
  sampled.estimator = Estimator::plain;
  sampled.seed = law.seed;
  sampled.n = law.points.value_or(condition.n);
  return drawn_from(make_plan(sampled), learning_streams);
}

/// W_K = Q R; keys Q and queries W_Q R^T have the logits of W_K and W_Q.
void orthonormalise_keys(HeadParameters& heads) {
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(heads.d) * heads.k;
  for (int h = 0; h < heads.heads; ++h) {
    Eigen::Map<RowMajor> keys(heads.keys.data() + h * size, heads.d, heads.k);
    Eigen::Map<RowMajor> queries(heads.queries.data() + h * size, heads.d, heads.k);
    const Eigen::MatrixXd q = signed_qr(keys).q;
    const Eigen::MatrixXd r = q.transpose() * keys;
    keys = q;
    queries = (queries * r.transpose()).eval();
  }
}

Subspaces subspaces_of(const HeadParameters& heads, HeadMatrixKind form) {
  Subspaces subspaces({.d = heads.d, .heads = heads.heads, .k = heads.k});
  subspaces.assign(heads.keys, heads.queries, form != HeadMatrixKind::free);
  return subspaces;
}

}  // namespace

Subspaces learned_subspaces(const Condition& condition, HeadParameters heads) {
  const Learning learning = make_learning(condition);
  if (learning.form == HeadMatrixKind::query_key) orthonormalise_keys(heads);
  return subspaces_of(heads, learning.form);
}

std::optional<Preparation> learn_heads(const Condition& condition, const Session& session,
                                       const std::function<void(const FitCheck&)>& check) {
  if (!learns_heads_once(condition)) return Preparation{};
  const auto& law = std::get<LearnedSubspaces>(*condition.subspaces);
  const Stopwatch watch;
  const StopScope scope(session.stop_hook());
  try {
    const Learning learning = make_learning(condition);
    const Plan sample = sample_plan(condition, law);
    const FitPoints points = fit_points(sample, 0);
    const auto gradients =
        session.backend->head_gradients(*condition.kernel, thread_count(session.threads));
    std::optional<Fit> fit =
        fit_heads(learning, 0, points, *gradients,
                  {.stop = session.stop_hook(), .check = check, .keeps_history = true});
    if (!fit) return std::nullopt;
    const std::optional<double> fresh_key_error =
        error_at_fresh_keys(learning, fit->heads, points, fit_points(sample, 1), *gradients);
    Preparation found;
    if (learning.learns_weights) found.head_weights = fit->heads.weights;
    found.heads = std::make_shared<LearnedHeads>(
        LearnedHeads{.subspaces = learned_subspaces(condition, fit->heads),
                     .fit = std::move(*fit),
                     .points = points.y.size(),
                     .held_out = held_out_points(learning, points.y.size()),
                     .fresh_key_error = fresh_key_error,
                     .seconds = watch.seconds()});
    return found;
  } catch (const WorkStopped&) {
    return std::nullopt;
  } catch (const std::invalid_argument& error) {
    reject(condition, "heads.subspaces", std::string("law \"learned\": ") + error.what());
  }
}

}  // namespace headlab
