// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/result_notes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

#include "engine/files/document.h"
#include "engine/scenario/setup_laws.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

/// Windows that held too little weight, where there are any.
std::string windows_text(const RunResult& result) {
  std::uint64_t empty = 0, narrow = 0;
  double all = 0;
  for (const ConditionResult& one : result.conditions) {
    empty += one.estimates.windows.empty;
    narrow += one.estimates.windows.narrow;
    all += static_cast<double>(one.estimates.replicates) * one.plan.queries * one.plan.heads;
  }
  auto line = [&](std::uint64_t count, const char* what) {
    if (count == 0) return std::string();
    return "warning: " + std::to_string(count) + " of " + number_text(all) + " windows (" +
           short_number(100 * static_cast<double>(count) / all) + " %) held " + what + "\n";
  };
  return line(empty, "no weight") +
         (empty > 0
              ? "such a head takes the value of the nearest key: its figures are of the nearest "
                "neighbour\n"
              : "") +
         line(narrow, "fewer than two effective points");
}

std::string speed_text(const RunResult& result) {
  double seconds = 0, weights = 0;
  for (const ConditionResult& one : result.conditions) {
    seconds += one.seconds;
    if (std::isfinite(one.weights_per_second)) {
      weights += one.weights_per_second * one.seconds;
    }
  }
  std::string text = duration_text(seconds);
  if (seconds > 0) text += ", " + short_number(weights / seconds) + " kernel weights a second";
  return text + "\n";
}

/// What was drawn before the simulation, so that no standard error covers the draw.
std::string drawn_once_text(const RunResult& result) {
  bool heads = false, queries = false;
  for (const ConditionResult& one : result.conditions) {
    const SubspaceLaw& law = one.condition->subspaces;
    heads |= std::holds_alternative<HaarSubspaces>(law) ||
             std::holds_alternative<CoordinateSubspaces>(law) ||
             (std::holds_alternative<LearnedSubspaces>(law) && !one.plan.learning);
    queries |= std::holds_alternative<DesignQueries>(one.condition->queries);
  }
  if (!heads && !queries) return "";
  return std::string(heads && queries ? "heads and queries were"
                     : heads          ? "heads were"
                                      : "queries were") +
         " drawn once: standard errors do not cover that draw\n";
}

/// Where squared biases are so near 0 that their estimates are not normal: there bias² is a square
/// of about one standard error less its mean.
std::string bias_text(const RunResult& result) {
  constexpr double near = 4;
  const bool any = std::ranges::any_of(result.conditions, [](const ConditionResult& one) {
    const Estimate& bias = one.estimates.bias_squared;
    return bias.mcse > 0 && std::abs(bias.value) < near * bias.mcse;
  });
  return any ? "bias² below 4 standard errors is not normal: at 0 the error is 40 % too large, and "
               "2 of them cover 84 %, not 95 %\n"
             : "";
}

}  // namespace

std::string result_notes(const RunResult& result, bool compact) {
  return windows_text(result) + bias_text(result) + speed_text(result) +
         (compact ? "in parentheses: one Monte Carlo standard error, in units of the last digit; a "
                    "heading /1e-3 gives the unit\n"
                  : "± is one Monte Carlo standard error\n") +
         drawn_once_text(result);
}

}  // namespace headlab::tools
