// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/calibration_worlds.h"

#include <utility>

#include "engine/files/words.h"
#include "engine/scenario/scenario.h"
#include "validation/statistics/comparison.h"

namespace headlab {

std::string share_text(double share) {
  return formatted("%.2g", 100 * share) + " %";
}

std::string claim_scenario(const std::string& world, std::uint64_t replicates, double margin) {
  return world + "[run]\nseed = 0\nreplicates = " + std::to_string(replicates) +
         "\n[claim]\nname = \"calibration\"\nform = \"\"\nexpected = \"supported\"\nmargin = " +
         formatted("%.17g", margin) + "\n";
}

Theory exact_theory(const std::string& world, int threads, std::size_t which) {
  const Scenario scenario =
      parse_scenario(claim_scenario(world, smallest_scenario, 0), "calibration");
  return compute_theory(scenario.conditions.at(which), TheorySource::exact, threads);
}

ClosedForms always(Theory theory) {
  return [theory = std::move(theory)](const Condition&, TheorySource) { return theory; };
}

Theory without_covariance(Theory theory) {
  auto& figures = theory.figures;
  figures.mse.value -= figures.covariance_term.value;
  figures.covariance_term.value = figures.head_covariance_mean.value = 0;
  for (auto& query : figures.queries) {
    const std::size_t heads = query.head_bias.size();
    query.mse.value = figures.mse.value;  // one query
    for (std::size_t i = 0; i < heads * heads; ++i) {
      if (i % (heads + 1) != 0) query.head_covariance[i].value = 0;
    }
  }
  return theory;
}

CalibrationRate alarm_rate(std::string what, std::string effect) {
  return {.measured = RateKind::false_alarm, .what = std::move(what), .effect = std::move(effect)};
}
CalibrationRate support_rate(std::string what, std::string effect) {
  return {
      .measured = RateKind::false_support, .what = std::move(what), .effect = std::move(effect)};
}
CalibrationRate power_rate(std::string what, std::string effect) {
  return {.measured = RateKind::power, .what = std::move(what), .effect = std::move(effect)};
}

CalibrationRate decided_rate(std::string what, std::string effect) {
  return {.measured = RateKind::decided, .what = std::move(what), .effect = std::move(effect)};
}

}  // namespace headlab
