// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <stdexcept>
#include <utility>

#include "engine/files/words.h"
#include "engine/run/simulate.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/subspaces.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/diversity/indices.h"
#include "validation/statistics/comparison.h"
#include "validation/verdicts/calibration.h"
#include "validation/verdicts/calibration_worlds.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

/// Repeats one claim through the whole machinery of verdicts; every rate counts its own verdict.
CalibrationStudy verdicts(const ClaimForm& form, const std::string& scenario,
                          const ClosedForms& closed_forms, const BackendChoice& backend,
                          std::vector<CalibrationRate> rates) {
  CalibrationStudy study{.rates = rates, .trials = study_trials};
  study.trial = [=](std::uint64_t seed) {
    const Validation validation =
        validate_form(form, scenario, {.backend = backend, .threads = 1},
                      {.seed = seed, .substitutes = Substitutes{.closed_forms = closed_forms}});
    const VerdictRow& row = validation.rows.at(0);
    if (row.verdict == Verdict::limited_by_theory) {
      throw std::logic_error("calibration: a closed form is not exact enough: " + row.note);
    }
    std::vector<bool> outcome;
    for (const CalibrationRate& rate : rates) {
      const Verdict counted =
          rate.measured == RateKind::false_support ? Verdict::supported : Verdict::refuted;
      outcome.push_back(row.verdict == counted);
    }
    return outcome;
  };
  return study;
}

/// The closed form with every variance times `factor`.
Theory with_variances_times(Theory theory, double factor) {
  auto& figures = theory.figures;
  figures.mse.value += (factor - 1) * figures.variance_term.value;
  figures.variance_term.value *= factor;
  for (auto& query : figures.queries) {
    const std::size_t heads = query.head_bias.size();
    query.mse.value = figures.mse.value;  // one query
    for (std::size_t h = 0; h < heads; ++h) query.head_covariance[h * (heads + 1)].value *= factor;
  }
  return theory;
}

/// The closed form with an MSE such that the simulation's exceeds it by the share `margin` of it.
Theory with_mse_at_edge(Theory theory, double margin) {
  theory.figures.mse.value /= 1 + margin;
  for (auto& query : theory.figures.queries) query.mse.value /= 1 + margin;
  return theory;
}

/// The closed form with a covariance of the first two heads off by `margin` in sqrt(V_1 V_2).
Theory with_covariance_at_edge(Theory theory, double margin) {
  for (auto& query : theory.figures.queries) {
    const std::size_t heads = query.head_bias.size();
    auto& c = query.head_covariance;
    const double off = margin * std::sqrt(c[0].value * c[heads + 1].value);
    c[1].value += off;
    c[heads].value += off;
  }
  return theory;
}

/// Says of any two of the conditions that the one with the greater index has the lesser MSE, up to
/// the margin; with `flipped` the last two have each other's sign.
Finding index_orders(Experiment& experiment, bool flipped) {
  Finding finding;
  std::vector<double> index;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    index.push_back(*chordal_index(subspace_bases(experiment.condition(i))).value);
  }
  for (std::size_t i = 0; i < index.size(); ++i) {
    for (std::size_t j = i + 1; j < index.size(); ++j) {
      const bool turned = flipped && i + 2 == index.size();
      const bool first_is_better = (index[i] > index[j]) != turned;
      const std::size_t better = first_is_better ? i : j;
      const std::size_t worse = first_is_better ? j : i;
      finding.comparisons.push_back(
          at_least_zero("MSE of " + numbered_condition(worse) + " over that of #" +
                            std::to_string(better) + " minus 1",
                        experiment.observed(worse).mse / experiment.observed(better).mse - 1, 1,
                        experiment.margin(), experiment.node_counts()));
    }
  }
  return finding;
}

std::vector<Finding> ordered(Experiment& experiment) {
  return {index_orders(experiment, false)};
}

std::vector<Finding> ordered_but_for_one(Experiment& experiment) {
  return {index_orders(experiment, true)};
}

ClaimForm ordering(std::vector<Finding> (*examine)(Experiment&)) {
  return {.name = "path",
          .statement = "Along a path on which all angles grow the MSE falls.",
          .assumptions = "Noise alone, at the centre.",
          .refuted_by = "A pair in the other order, beyond the margin.",
          .examine = examine};
}

const std::vector<std::string> figure_names = {"MSE",
                                               "bias of head 0",
                                               "bias squared, corrected",
                                               "variance term",
                                               "covariance term",
                                               "mean variance of the heads",
                                               "mean covariance of the heads",
                                               "output correlation"};

/// The figures of `figure_names`.
template <class Number>
std::vector<Number> named_figures(const ErrorTerms<Number>& estimates) {
  return {estimates.mse,
          estimates.queries.at(0).head_bias.at(0),
          estimates.bias_squared,
          estimates.variance_term,
          estimates.covariance_term,
          estimates.head_variance_mean,
          estimates.head_covariance_mean,
          estimates.output_correlation};
}

/// Repeats one run and asks which intervals hold the true figures: each figure by itself, then one
/// figure a run, each in turn. With `controls` also with an MCSE 30 % too small.
CalibrationStudy intervals(const std::string& name, const std::string& world,
                           const std::string& estimator, const Theory& theory,
                           const BackendChoice& backend, bool controls) {
  const Scenario parsed = parse_scenario(claim_scenario(world, smallest_scenario, 0), "calibration",
                                         {"run.estimator=\"" + estimator + "\""});
  const Plan plan = make_plan(parsed.conditions.at(0));
  std::vector<double> truth;
  for (const Remainder& figure : named_figures(theory.figures)) truth.push_back(figure.value);

  CalibrationStudy study{.trials = study_trials};
  const std::string which = name + ", " + estimator + ": ";
  for (const std::string& figure : figure_names) {
    study.rates.push_back({.measured = RateKind::coverage, .what = which + figure});
  }
  study.rates.push_back({.measured = RateKind::coverage, .what = which + "each in turn"});
  for (std::size_t i = 0; controls && i < figure_names.size(); ++i) {
    study.rates.push_back({.measured = RateKind::control,
                           .what = which + figure_names[i],
                           .effect = "MCSE 30 % too small"});
  }
  study.trial = [=](std::uint64_t seed) {
    Plan world_of_seed = plan;
    world_of_seed.seed = seed;
    const MomentTree tree = simulate(world_of_seed, *backend, 1, smallest_scenario);
    const ConditionEstimates seen = estimate(tree, plan);
    const double t = student_quantile(0.975, seen.nodes() - 1);
    const std::vector<Estimate> figures = named_figures(seen);
    std::vector<bool> covered, understated;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const double error = std::abs(figures[i].value - truth[i]);
      covered.push_back(error <= t * figures[i].mcse);
      understated.push_back(error <= t * 0.7 * figures[i].mcse);
    }
    covered.push_back(covered[seed % figures.size()]);
    if (controls) covered.insert(covered.end(), understated.begin(), understated.end());
    return covered;
  };
  return study;
}

std::vector<CalibrationStudy> all_studies(const Session& session) {
  const BackendChoice& backend = session.backend;
  const int threads = session.threads;
  const ClaimForm& closed_form = find_form(find_claim("decomposition"), "exact finite n");
  const Theory gaussian = exact_theory(gaussian_world, threads);
  const Theory softmax = exact_theory(softmax_world, threads);
  const Theory noise = exact_theory(noise_world, threads);
  const std::string path = noise_world + path_of_angles;
  const double mse_before = exact_theory(path, threads, 1).figures.mse.value;
  const double mse_after = exact_theory(path, threads, 2).figures.mse.value;
  // What the flipped pair's ratio less 1 is in truth.
  const double flipped_effect = mse_after / mse_before - 1;

  const std::string gaussian_name = "decomposition, Gaussian kernel, signal";
  const std::string softmax_name = "decomposition, softmax, signal";
  const std::string path_name = "index orders a path, noise alone";
  const std::string edge = "off by the margin, " + share_text(edge_margin);
  const std::string path_edge = "one pair off by the margin, " + share_text(-flipped_effect);
  const std::string margin = ", margin " + share_text(fault_margin);

  auto closed = [&](const std::string& world, std::uint64_t replicates, double allowed,
                    const Theory& theory, std::vector<CalibrationRate> rates) {
    return verdicts(closed_form, claim_scenario(world, replicates, allowed), always(theory),
                    backend, std::move(rates));
  };
  auto along_path = [&](bool flipped, std::uint64_t replicates, double allowed,
                        std::vector<CalibrationRate> rates) {
    return verdicts(ordering(flipped ? ordered_but_for_one : ordered),
                    claim_scenario(path, replicates, allowed), {}, backend, std::move(rates));
  };

  std::vector<CalibrationStudy> all;
  all.push_back(closed(gaussian_world, smallest_scenario, no_margin, gaussian,
                       {alarm_rate(gaussian_name, "true, no margin")}));
  all.push_back(closed(softmax_world, smallest_scenario, no_margin, softmax,
                       {alarm_rate(softmax_name, "true, no margin")}));
  all.push_back(
      along_path(false, smallest_scenario, no_margin, {alarm_rate(path_name, "true, no margin")}));
  // At its edge a claim is just true and just false: neither error may be more frequent than alpha.
  all.push_back(closed(
      gaussian_world, smallest_scenario, edge_margin, with_mse_at_edge(gaussian, edge_margin),
      {alarm_rate(gaussian_name, "MSE " + edge), support_rate(gaussian_name, "MSE " + edge)}));
  all.push_back(closed(
      softmax_world, smallest_scenario, edge_margin, with_covariance_at_edge(softmax, edge_margin),
      {alarm_rate(softmax_name, "C " + edge), support_rate(softmax_name, "C " + edge)}));
  all.push_back(along_path(true, smallest_scenario, -flipped_effect,
                           {alarm_rate(path_name, path_edge), support_rate(path_name, path_edge)}));

  all.push_back(
      closed(gaussian_world, smallest_scenario, fault_margin, without_covariance(gaussian),
             {power_rate(
                 "covariance term dropped, Gaussian kernel",
                 "C/V " + formatted("%.2f", gaussian.figures.output_correlation.value) + margin)}));
  all.push_back(closed(
      softmax_world, smallest_scenario, fault_margin, without_covariance(softmax),
      {power_rate("covariance term dropped, softmax",
                  "C/V " + formatted("%.2f", softmax.figures.output_correlation.value) + margin)}));
  all.push_back(closed(noise_world, 32768, fault_margin, with_variances_times(noise, 1.02),
                       {power_rate("V off by 2 %, Gaussian kernel, noise alone", "2 %" + margin)}));
  all.push_back(along_path(true, smallest_scenario, fault_margin,
                           {power_rate("sign of one pair flipped in an index",
                                       share_text(-flipped_effect) + " in the MSE" + margin)}));

  for (const char* estimator : {"conditional", "plain"}) {
    const bool controls = std::string(estimator) == "conditional";
    all.push_back(
        intervals("Gaussian kernel", gaussian_world, estimator, gaussian, backend, controls));
    all.push_back(intervals("softmax", softmax_world, estimator, softmax, backend, false));
  }
  // Last, so that the studies before keep their seeds.
  for (const auto& more : {stated_claim_studies, doubtful_studies}) {
    for (CalibrationStudy& study : more(session)) all.push_back(std::move(study));
  }
  return all;
}

}  // namespace

std::vector<CalibrationStudy> calibration_studies(const Session& session) {
  const StopScope scope(session.stop_hook());
  try {
    return all_studies(session);
  } catch (const WorkStopped&) {
    return {};
  }
}

}  // namespace headlab
