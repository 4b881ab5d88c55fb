// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "engine/files/words.h"
#include "validation/statistics/comparison.h"
#include "validation/verdicts/calibration_worlds.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

/// Two queries that mirror each other: without a signal their figures are equal, and not the same
/// numbers in any run.
constexpr const char* mirrored_queries = R"([sweep]
"queries.points" = [[[0.6, -0.4]], [[-0.6, 0.4]]]
)";

std::string relative(double margin) {
  return "margin = { relative = " + formatted("%.17g", margin) + " }\n";
}

/// The MSE of the condition with a value of a swept key; of the only condition without a key.
std::string mse_at(const std::string& key = "", const std::string& value = "") {
  return "{ figure = \"mse\"" +
         (key.empty() ? std::string() : ", at = { \"" + key + "\" = " + value + " }") + " }";
}

std::string mse_at_angle(const char* angle) {
  return mse_at("heads.subspaces.angle", angle);
}

}  // namespace

std::string stating_scenario(const std::string& world, std::uint64_t replicates,
                             const std::vector<std::string>& claims, const std::string& run) {
  std::string text =
      world + "[run]\nseed = 0\nreplicates = " + std::to_string(replicates) + "\n" + run;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    text += "[[claim.compare]]\nname = \"claim " + std::to_string(i + 1) + "\"\n" + claims[i];
  }
  return text;
}

CalibrationStudy stated_study(const std::string& scenario, const BackendChoice& backend,
                              std::vector<CalibrationRate> rates, const ClosedForms& closed_forms) {
  CalibrationStudy study{.rates = rates, .trials = study_trials};
  study.trial = [=](std::uint64_t seed) {
    const Validation validation =
        validate_scenario(scenario, {.backend = backend, .threads = 1},
                          {.seed = seed, .substitutes = Substitutes{.closed_forms = closed_forms}});
    std::vector<bool> outcome;
    for (const CalibrationRate& rate : rates) {
      if (rate.measured == RateKind::decided) {
        outcome.push_back(std::ranges::all_of(validation.rows, &VerdictRow::as_expected));
        continue;
      }
      const Verdict counted =
          rate.measured == RateKind::false_support ? Verdict::supported : Verdict::refuted;
      outcome.push_back(std::ranges::any_of(
          validation.rows, [&](const VerdictRow& row) { return row.verdict == counted; }));
    }
    return outcome;
  };
  return study;
}

std::vector<CalibrationStudy> stated_claim_studies(const Session& session) {
  const BackendChoice& backend = session.backend;
  const Theory gaussian = exact_theory(gaussian_world, session.threads);
  const double mse = gaussian.figures.mse.value;
  const std::string path = noise_world + path_of_angles;
  const std::string mirrored = noise_world + mirrored_queries;
  const double at_small = exact_theory(path, session.threads, 0).figures.mse.value;
  const double at_middle = exact_theory(path, session.threads, 1).figures.mse.value;
  const double at_large = exact_theory(path, session.threads, 2).figures.mse.value;
  const double at_mirrored = exact_theory(mirrored, session.threads).figures.mse.value;
  const double noise_mse = exact_theory(noise_world, session.threads).figures.mse.value;
  // By how much the smaller angle has the larger error, as a share of the other: the claims below
  // say the opposite, or that the error falls from the larger angle to the smaller.
  const double reversed = at_middle / at_large - 1;

  const auto number = [](double value) { return formatted("%.17g", value) + "\n"; };
  const std::string left = mse_at("queries.points", "[[0.6, -0.4]]");
  const std::string right = mse_at("queries.points", "[[-0.6, 0.4]]");
  const std::string tie_less = "less = " + left + "\nthan = " + right + "\n" + relative(no_margin);
  const std::string tie_equal = "equal = [" + left + ", " + right + "]\n" + relative(no_margin);
  const std::string less =
      "less = " + mse_at_angle("0.9") + "\nthan = " + mse_at_angle("1.3") + "\n";
  // The same of the first step, which is the larger one.
  const double first_reversed = at_small / at_middle - 1;
  const std::string rises =
      "monotone = { figure = \"mse\", in = \"heads.subspaces.angle\", direction = "
      "\"increasing\" }\n";
  const std::string argmin =
      "argmin = { figure = \"mse\", over = \"heads.subspaces.angle\", is = 0.9 }\n";

  const std::string letter = "true, no margin";
  const std::string name = "stated: ";
  const std::string equals_name = name + "MSE equals a number";
  const std::string less_name = name + "MSE less than another";
  const std::string monotone_name = name + "MSE monotone in the angle";
  const std::string edge = "off by the margin, " + share_text(edge_margin);
  const std::string pair_edge = "off by the margin, " + share_text(reversed);
  const std::string step_edge = "one step off by the margin, " + share_text(first_reversed);
  const std::string by_margin = ", margin " + share_text(fault_margin);

  std::vector<CalibrationStudy> all;
  const auto add = [&](const std::string& world, std::uint64_t replicates,
                       const std::vector<std::string>& claims, std::vector<CalibrationRate> rates,
                       const ClosedForms& closed_forms = {}) {
    all.push_back(stated_study(stating_scenario(world, replicates, claims), backend,
                               std::move(rates), closed_forms));
  };
  const auto add_small = [&](const std::string& world, const std::string& claim,
                             std::vector<CalibrationRate> rates) {
    add(world, smallest_scenario, {claim}, std::move(rates));
  };
  const std::string of = "of = " + mse_at() + "\nequals = ";
  add_small(gaussian_world, of + number(mse) + relative(no_margin),
            {alarm_rate(equals_name, letter)});
  add_small(mirrored, tie_equal, {alarm_rate(name + "MSE equal to another", letter)});
  add_small(mirrored, tie_less, {alarm_rate(less_name, letter)});
  add_small(path,
            "ratio = [" + mse_at_angle("0.5") + ", " + mse_at_angle("1.3") +
                "]\nequals = " + number(at_small / at_large) + relative(no_margin),
            {alarm_rate(name + "ratio of two MSEs equals a number", letter)});
  add(mirrored, smallest_scenario,
      {tie_equal, tie_less, "less = " + right + "\nthan = " + left + "\n" + relative(no_margin),
       "of = " + left + "\nat_most = " + number(at_mirrored) + relative(no_margin),
       "ratio = [" + right + ", " + left + "]\nequals = 1\n" + relative(no_margin)},
      {alarm_rate(name + "any of five in one file", letter)});

  add_small(gaussian_world, of + number(mse / (1 + edge_margin)) + relative(edge_margin),
            {alarm_rate(equals_name, edge), support_rate(equals_name, edge)});
  add_small(path, less + relative(reversed),
            {alarm_rate(less_name, pair_edge), support_rate(less_name, pair_edge)});
  add_small(path, rises + relative(first_reversed),
            {alarm_rate(monotone_name, step_edge), support_rate(monotone_name, step_edge)});

  add(noise_world, 32768, {of + number(noise_mse / 1.05) + relative(fault_margin)},
      {power_rate(equals_name, "5 %" + by_margin)});
  add_small(path, less + relative(fault_margin),
            {power_rate(less_name, share_text(reversed) + by_margin)});
  add_small(path, rises + relative(fault_margin),
            {power_rate(monotone_name, share_text(first_reversed) + " in one step" + by_margin)});
  add_small(path, argmin + relative(fault_margin),
            {power_rate(name + "MSE least at the wrong angle", share_text(reversed) + by_margin)});
  // A closed form cannot be misquoted in a file, so that it is given falsely.
  add(gaussian_world, smallest_scenario,
      {"of = " + mse_at() + "\nequals_theory = \"exact\"\n" + relative(fault_margin)},
      {power_rate(
          name + "MSE equals its closed form, covariance term dropped",
          "C/V " + formatted("%.2f", gaussian.figures.output_correlation.value) + by_margin)},
      always(without_covariance(gaussian)));
  return all;
}

}  // namespace headlab
