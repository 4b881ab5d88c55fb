// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/moments/estimates.h"
#include "engine/results/result.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/references.h"

namespace headlab {
namespace {

JackknifedEstimates averages_of(const ConditionResult& one) {
  const std::optional<ControlUse> use = control_use(one);
  return jackknifed_averages(one.tree, one.plan.head_weights, one.plan.truth, use ? &*use : nullptr,
                             UnseenEvents(one.plan), one.condition->measures);
}

/// Terms without numbers that have the measures of others.
template <class Number>
ErrorTerms<Estimate> empty_terms(const ErrorTerms<Number>& like) {
  ErrorTerms<Estimate> terms;
  for (const Measured<Number>& one : like.measures) terms.measures.push_back({.of = one.of});
  return terms;
}

/// Calls difference(i), which returns an estimate, for every number of a list.
template <class Difference>
ErrorTerms<Estimate> each_number(ErrorTerms<Estimate> terms, const Difference& difference) {
  const std::vector<Estimate*> numbers = all_numbers<Estimate>(terms);
  for (std::size_t i = 0; i < numbers.size(); ++i) *numbers[i] = difference(i);
  return terms;
}

/// A difference with its standard error, which without values left out would be that of a constant.
Estimate paired_figure(const Jackknifed& difference, bool has_error,
                       std::span<const double> counts) {
  if (!has_error || std::isnan(difference.value)) return {.value = difference.value};
  return difference.figure(counts);
}

ErrorTerms<Estimate> paired_difference(const JackknifedEstimates& one,
                                       const JackknifedEstimates& other,
                                       std::span<const double> counts) {
  const auto left = all_numbers<const Jackknifed>(one);
  const auto right = all_numbers<const Jackknifed>(other);
  return each_number(empty_terms(one), [&](std::size_t i) {
    return paired_figure(*left[i] - *right[i], !left[i]->leave_one_out.empty(), counts);
  });
}

ErrorTerms<Estimate> independent_difference(const ConditionEstimates& one,
                                            const ConditionEstimates& other) {
  const auto left = all_numbers<const Estimate>(one);
  const auto right = all_numbers<const Estimate>(other);
  return each_number(empty_terms(one), [&](std::size_t i) {
    return Estimate{left[i]->value - right[i]->value, std::hypot(left[i]->mcse, right[i]->mcse)};
  });
}

/// Differences of the metrics of layers, of as many rows as both have.
void set_layers(ConditionDifference& difference, const ConditionResult& one,
                const ConditionResult& other) {
  difference.listed = metrics_of(*one.plan.stack);
  const auto rows = std::min(one.layers->rows.size(), other.layers->rows.size());
  difference.layers.rows.resize(rows);
  if (!difference.paired) {
    for (std::size_t l = 0; l < rows; ++l) {
      const auto& left = one.layers->rows[l].metrics;
      const auto& right = other.layers->rows[l].metrics;
      for (std::size_t i = 0; i < left.size(); ++i) {
        difference.layers.rows[l].metrics.push_back(
            {left[i].value - right[i].value, std::hypot(left[i].mcse, right[i].mcse)});
      }
    }
    return;
  }
  const LayersOf<Jackknifed> left = jackknifed_layers(one.tree, one.plan.n);
  const LayersOf<Jackknifed> right = jackknifed_layers(other.tree, other.plan.n);
  for (std::size_t l = 0; l < rows; ++l) {
    for (std::size_t i = 0; i < left.rows[l].metrics.size(); ++i) {
      const Jackknifed& a = left.rows[l].metrics[i];
      const Jackknifed& b = right.rows[l].metrics[i];
      difference.layers.rows[l].metrics.push_back(
          paired_figure(a - b, !a.leave_one_out.empty(), one.estimates.node_counts));
    }
  }
}

}  // namespace

void set_differences(RunResult& result, const References& references) {
  if (references.of.empty()) return;
  result.difference_to = references.text;
  std::map<std::size_t, JackknifedEstimates> subtracted;  // those that were needed so far
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    ConditionResult& one = result.conditions[i];
    const auto made = std::make_shared<ConditionDifference>();
    one.difference = made;
    ConditionDifference& difference = *made;
    difference.reference = references.of.at(i);
    difference.terms = empty_terms(one.estimates);
    if (!difference.reference || *difference.reference >= result.conditions.size()) continue;
    const ConditionResult& other = result.conditions[*difference.reference];
    if (one.tree.count() == 0 || other.tree.count() == 0) continue;
    if (one.layers) {
      const bool same_seed = one.plan.seed == other.plan.seed;
      difference.paired = same_seed && one.tree.count() == other.tree.count();
      if (difference.paired || !same_seed) set_layers(difference, one, other);
      continue;
    }
    if (one.plan.seed != other.plan.seed) {
      difference.terms = independent_difference(one.estimates, other.estimates);
    } else if (one.tree.count() == other.tree.count()) {
      difference.paired = true;
      const auto [at, is_new] = subtracted.try_emplace(*difference.reference);
      if (is_new) at->second = averages_of(other);
      difference.terms = paired_difference(averages_of(one), at->second, one.estimates.node_counts);
    }
  }
}

}  // namespace headlab
