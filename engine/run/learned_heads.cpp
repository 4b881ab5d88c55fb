// SPDX-License-Identifier: Apache-2.0
#include "engine/run/learned_heads.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "engine/run/pilot.h"
#include "engine/scenario/condition.h"
#include "kernels/learning/worker.h"
#include "kernels/parallel_for.h"
#include "kernels/signed_qr.h"

namespace headlab {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The plan whose replicate 0 is the sample of the fit.
Plan sample_plan(const Scenario& scenario, const LearnedSubspaces& law) {
  Scenario sampled = scenario;
  sampled.subspaces = AlignedSubspaces{};
  sampled.weights = UniformWeights{};
  sampled.estimator = Estimator::plain;
  sampled.seed = law.seed;
  sampled.n = law.points.value_or(scenario.n);
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

HeadFrames frames_of(const HeadParameters& heads, HeadForm form) {
  HeadFrames frames({.d = heads.d, .heads = heads.heads, .k = heads.k});
  frames.assign(heads.keys, heads.queries, form != HeadForm::free);
  return frames;
}

}  // namespace

bool resolve_heads(Scenario& scenario, const Session& session,
                   const std::function<void(const FitCheck&)>& check) {
  if (!heads_to_learn(scenario)) return true;
  auto& law = std::get<LearnedSubspaces>(scenario.subspaces);
  const Stopwatch watch;
  try {
    const Learning learning = make_learning(scenario);
    const TrainingPoints points = training_points(sample_plan(scenario, law), 0);
    const auto gradients =
        session.backend->head_gradients(scenario.kernel, thread_count(session.threads));
    std::optional<Fit> fit =
        fit_heads(learning, 0, points, *gradients,
                  {.stop = session.stop_hook(), .check = check, .keeps_course = true});
    if (!fit) return false;
    HeadParameters heads = fit->heads;
    if (learning.form == HeadForm::query_key) orthonormalise_keys(heads);
    if (auto* weights = std::get_if<LearnedWeights>(&scenario.weights)) {
      weights->resolved = heads.weights;
    }
    law.resolved = std::make_shared<LearnedHeads>(
        LearnedHeads{.frames = frames_of(heads, learning.form),
                     .fit = std::move(*fit),
                     .points = points.y.size(),
                     .held_out = held_out_points(learning, points.y.size()),
                     .seconds = watch.seconds()});
  } catch (const std::invalid_argument& error) {
    reject(scenario, "heads.subspaces", std::string("law \"learned\": ") + error.what());
  }
  return true;
}

}  // namespace headlab
