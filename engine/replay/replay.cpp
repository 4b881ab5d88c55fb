// SPDX-License-Identifier: Apache-2.0
#include "engine/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/run/learned_heads.h"
#include "engine/run/memory.h"
#include "engine/run/pilot.h"
#include "engine/scenario/condition.h"
#include "kernels/learning/worker.h"
#include "kernels/parallel_for.h"
#include "kernels/reference/ensemble.h"
#include "kernels/statistics/replicate_error.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

/// Throws InvalidInput unless the replicate, its kernel weights and the file with them fit.
void check_replay_memory(const Condition& condition, const Backend& backend) {
  check_memory(condition, backend, 1);
  const double d = dimension_of(condition);
  const double queries = query_count(condition);
  // Numbers of a point, kept, copied to be written, and as the bytes of the file, which may double
  // to make room.
  const double numbers = static_cast<double>(condition.n) * (d + 4 + queries * condition.heads);
  const double bytes = 4 * 8 * numbers + static_cast<double>(plan_bytes(condition));
  const bool by_queries = queries > 1 && queries * condition.heads > d;
  require_memory(static_cast<std::uint64_t>(std::min(bytes, 1e19)),
                 "for the kernel weights of a replicate", "data.n",
                 by_queries ? "or replay fewer queries" : "", source_location(condition, "data.n"));
}

/// The plan of the replicate; none where the session stops before it is known.
std::optional<Plan> plan_of(const Condition& condition, std::uint64_t replicate,
                            const Session& session) {
  std::optional<Preparation> found = learn_heads(condition, session);
  if (!found || !find_weights(condition, *found, session)) return std::nullopt;
  Plan plan = make_plan(condition, *found);
  if (plan.redraws) set_draw(plan, condition, replicate / leaf_replicates);
  return learned_plan(*session.backend, plan, replicate, session.stop_hook());
}

/// The replicate as a node of its own, by the session's backend.
Moments backend_node(const Plan& plan, std::uint64_t replicate, const Backend& backend) {
  Moments node;
  backend.worker(plan)->run({.first = replicate, .count = 1, .node = 1}, {&node, 1});
  return node;
}

/// Sets kernel weights, sample sizes and normalisation errors.
void weigh(Replay& replay, const Session& session) {
  const Plan& plan = replay.plan;
  const auto heads = static_cast<std::size_t>(plan.heads);
  const auto n = static_cast<std::size_t>(plan.n);
  const Merge& merge = plan.mechanism.merge;
  const TrainingSet tokens = tokens_of(plan, replay.training_set);
  replay.heads.resize(replay.queries.size() * heads);
  replay.kernel_weights.resize(replay.heads.size() * n);
  parallel_for(replay.heads.size(), thread_count(session.threads), [&](std::size_t i) {
    WindowCounts windows;
    const std::vector<double> weights =
        nw_weights(plan, tokens, static_cast<int>(i % heads), static_cast<int>(i / heads), windows);
    double sum = 0;
    for (const double weight : weights) sum += weight;
    replay.heads[i].sample_size = effective_sample_size(weights);
    replay.heads[i].normalisation_error = std::abs(sum - 1);
    // Of responses: a point has its share of its token.
    for (std::size_t point = 0; point < n; ++point) {
      const std::uint64_t token = point / merge.stride;
      const std::uint64_t points = std::min(merge.stride, plan.n - token * merge.stride);
      replay.kernel_weights[i * n + point] =
          weights[token] * (merge.off() ? 1.0 : merge.weight(points));
    }
  });
}

/// Sets what both backends estimate.
void set_estimates(Replay& replay, const Moments& node) {
  const Plan& plan = replay.plan;
  const MomentLayout layout = plan.layout();
  const std::vector<double>& by_backend = node.mean;  // of one replicate: its statistics
  const auto heads = static_cast<std::size_t>(plan.heads);
  const auto n = static_cast<std::size_t>(plan.n);
  const ReplicateError error(layout, plan.head_weights, plan.truth);
  std::vector<double> by_reference(layout.per_query());
  std::vector<std::vector<double>> weights(heads);
  for (std::size_t q = 0; q < replay.queries.size(); ++q) {
    for (std::size_t h = 0; h < heads; ++h) {
      const auto first =
          replay.kernel_weights.begin() + static_cast<std::ptrdiff_t>((q * heads + h) * n);
      weights[h].assign(first, first + static_cast<std::ptrdiff_t>(n));
    }
    query_statistics(plan, replay.training_set, weights, by_reference.data());
    const double* backend = &by_backend[q * layout.per_query()];
    for (std::size_t h = 0; h < heads; ++h) {
      replay.heads[q * heads + h].reference = by_reference[h];
      replay.heads[q * heads + h].backend = backend[h];
    }
    replay.queries[q] = {.reference = error.ensemble(by_reference.data()),
                         .backend = error.ensemble(backend),
                         .squared_error = error.at_query(q, backend)};
  }
  replay.squared_error = error(by_backend);
  const auto* sizes = node.extremes && node.extremes->min_sample_size
                          ? &node.extremes->min_sample_size->all()
                          : nullptr;
  if (sizes != nullptr && !sizes->empty()) replay.backend_sample_size = sizes->front().key;
}

}  // namespace

std::size_t Replay::narrowest() const {
  const auto least = std::ranges::min_element(heads, {}, &ReplayedHead::sample_size);
  return static_cast<std::size_t>(least - heads.begin());
}

Replay replay_replicate(const Condition& condition, std::uint64_t replicate,
                        const Session& session) {
  const Stopwatch watch;
  Replay replay;
  replay.replicate = replicate;
  replay.machine = session.machine();
  check_replay_memory(condition, *session.backend);
  bool complete = false;
  const StopScope scope(session.stop_hook());
  try {
    if (std::optional<Plan> plan = plan_of(condition, replicate, session)) {
      replay.plan = std::move(*plan);
      replay.training_set = draw_training_set(replay.plan, replicate);
      replay.queries.resize(replay.plan.truth.size());
      weigh(replay, session);
      set_estimates(replay, backend_node(replay.plan, replicate, *session.backend));
      complete = true;
    }
  } catch (const WorkStopped&) {
    // It is not complete.
  }
  replay.outcome = session.outcome(complete, watch);
  return replay;
}

}  // namespace headlab
