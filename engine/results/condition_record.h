// SPDX-License-Identifier: Apache-2.0
/// \file What files say of one condition, simulated or computed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/fields.h"
#include "engine/files/json_writer.h"
#include "engine/results/computed.h"
#include "engine/results/result.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"

namespace headlab {

inline const char* name_of(Estimator estimator) {
  return estimator == Estimator::conditional ? "conditional" : "plain";
}

inline const char* name_of(MomentMode moments) {
  return moments == MomentMode::pairwise    ? "pairwise"
         : moments == MomentMode::aggregate ? "aggregate"
                                            : "separate";
}

/// What is drawn again for every leaf, in words.
inline const char* redrawn_text(const Condition& condition) {
  return !redraws(*condition.queries)     ? "heads"
         : !redraws(*condition.subspaces) ? "queries"
                                          : "heads and queries";
}

/// One query with its terms.
template <class Number>
struct QueryRecord {
  std::vector<double> x;
  double truth = 0;
  QueryErrorTerms<Number> terms;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("x", shaped(x), "query points", {.axes = "coordinate"});
    visit("truth", truth, "regression function m(x)");
    terms.fields(visit);
  }
};

/// How heads were learned.
struct LearnedRecord {
  const LearnedHeads* once;  ///< nullptr where every replicate learns its own

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("fit", once ? "once" : "per_replicate", "what the heads are fitted to");
    if (once == nullptr) return;
    visit("points", once->points, "points of the training set");
    visit("held_out", once->held_out, "points held out");
    visit("steps", once->fit.steps, "steps to the heads that are kept");
    visit("steps_taken", once->fit.history.back().step, "steps taken");
    visit("held_out_error", once->fit.held_out_error, "squared error over the points held out");
    visit("fresh_key_error", once->fresh_key_error,
          "squared error over the points held out, with keys of another training set");
    visit("seconds", once->seconds, "wall time", {.unit = "s"});
  }
};

/// One condition. What only a simulation has is unknown for closed forms.
template <class Number>
struct ConditionRecord {
  const Condition& condition;
  const Plan& plan;
  const ErrorTerms<Number>& terms;
  const IndicesOf<Number>& indices;
  std::optional<WindowCounts> windows;
  double seconds;
  // Of a simulation.
  std::optional<std::uint64_t> replicates = {};
  std::optional<double> weights_per_second = {};
  const LearnedHeads* learned = nullptr;
  const ControlReport* controls = nullptr;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("parameters", JsonText{to_json(condition.parameters.tree())},
          "scenario after --set and sweep");
    visit("replicates", replicates, "training sets simulated");
    visit("n", plan.n, "training points in one training set");
    visit("estimator",
          replicates ? std::optional<std::string>(name_of(plan.estimator)) : std::nullopt,
          "how the noise enters");
    visit("head_weights", shaped(plan.head_weights), "head weights a_h", {.axes = "head"});
    if (plan.redraws) {
      visit("redraw", std::string(redrawn_text(condition)), "drawn again for every 8 replicates");
    }
    if (controls) visit("controls", *controls, "exact controls");
    error_fields(visit);
    visit("weights_per_second", weights_per_second, "kernel weights evaluated in a second",
          {.unit = "s-1"});
    if (learned || plan.learning)
      visit("learned", LearnedRecord{learned}, "how heads were learned");
  }

  /// The part that is not the same for a simulation and closed forms of one condition.
  template <class Visitor>
  void error_fields(Visitor& visit) const {
    terms.fields(visit, std::holds_alternative<DesignQueries>(*condition.queries));
    visit("indices", by_name(indices), "diversity index", {.item = "index"});
    visit("queries", query_records(), "figures at each query", {.item = "query"});
    // Softmax windows are never empty.
    const bool counts_empty = windows && !is_softmax(plan);
    visit("empty_windows", counts_empty ? std::optional(windows->empty) : std::nullopt,
          "windows without a kernel value above 2^-126 (softmax: not counted)");
    visit("narrow_windows", windows ? std::optional(windows->narrow) : std::nullopt,
          "windows of effective sample size below 2");
    visit("seconds", seconds, "wall time of the simulation", {.unit = "s"});
  }

 private:
  std::vector<QueryRecord<Number>> query_records() const {
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    std::vector<QueryRecord<Number>> records(plan.truth.size());
    const auto d = static_cast<std::size_t>(plan.d);
    for (std::size_t q = 0; q < records.size(); ++q) {
      const auto x = plan.query_points.begin() + static_cast<std::ptrdiff_t>(q * d);
      records[q].x.assign(x, x + plan.d);
      records[q].truth = plan.truth[q];
      if (q < terms.queries.size()) {
        records[q].terms = terms.queries[q];
      } else {
        // Stopped before its first replicate, or heads or queries are drawn again and again.
        records[q].terms.head_bias.resize(static_cast<std::size_t>(plan.heads));
      }
      if (redraws(*condition.queries)) {
        std::ranges::fill(records[q].x, undefined);
        records[q].truth = undefined;
      }
    }
    return records;
  }
};

/// Rows of layers as a list.
template <class Number>
std::vector<LayerMetricsRecord<Number>> layer_records(const LayersOf<Number>& layers,
                                                      const std::vector<std::size_t>& listed) {
  std::vector<LayerMetricsRecord<Number>> records;
  for (const LayerRowOf<Number>& row : layers.rows) records.push_back({row, listed});
  return records;
}

/// One condition of a study of depth.
template <class Number>
struct DepthRecord {
  const Condition& condition;
  const LayersOf<Number>& layers;
  std::vector<std::size_t> listed;  ///< numbers of metrics
  double seconds;
  std::optional<std::uint64_t> replicates = {};  ///< of a simulation

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("parameters", JsonText{to_json(condition.parameters.tree())},
          "scenario after --set and sweep");
    visit("replicates", replicates, "replicates simulated");
    visit("n", condition.n, "tokens");
    visit("layers", layer_records(layers, listed), "metrics of each layer", {.item = "layer"});
    visit("seconds", seconds, "wall time of the simulation", {.unit = "s"});
  }
};

inline ConditionRecord<Estimate> record_of(const ConditionResult& one,
                                           const ConditionIndices& indices) {
  return {.condition = *one.condition,
          .plan = one.plan,
          .terms = one.estimates,
          .indices = indices,
          .windows = one.estimates.windows,
          .seconds = one.seconds,
          .replicates = one.estimates.replicates,
          .weights_per_second = one.weights_per_second,
          .learned = one.found.heads.get(),
          .controls = one.controls.get()};
}

/// Visits the fields of a condition that was simulated.
template <class Visitor>
void visit_condition(const ConditionResult& one, const ConditionIndices& indices, Visitor& visit) {
  if (!one.layers) {
    record_of(one, indices).fields(visit);
    return;
  }
  DepthRecord<Estimate>{.condition = *one.condition,
                        .layers = *one.layers,
                        .listed = metrics_of(*one.plan.stack),
                        .seconds = one.seconds,
                        .replicates = one.estimates.replicates}
      .fields(visit);
}

inline ConditionRecord<Remainder> record_of(const ComputedCondition& computed) {
  const TheoryResult& closed = computed.result;
  return {.condition = *computed.condition,
          .plan = *closed.plan,
          .terms = closed.figures,
          .indices = computed.indices,
          .windows = closed.windows,
          .seconds = closed.seconds};
}

/// Visits the fields of a condition that was computed.
template <class Visitor>
void visit_condition(const ComputedCondition& computed, Visitor& visit) {
  if (!computed.condition->stack) {
    record_of(computed).fields(visit);
    return;
  }
  DepthRecord<Remainder>{.condition = *computed.condition,
                         .layers = computed.result.layers,
                         .listed = computed.result.listed,
                         .seconds = computed.result.seconds}
      .fields(visit);
}

}  // namespace headlab
