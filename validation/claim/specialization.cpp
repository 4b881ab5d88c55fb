// SPDX-License-Identifier: Apache-2.0
// Attention heads start alike and are trained together. Claimed: training makes them specialise, so
// that their diversity grows while the error falls; and, which is another matter, that it pays to
// ask for diversity. Every replicate draws a training set, trains heads on it and is judged with
// them, so that the error has the variance of learning in it.
#include <algorithm>
#include <sstream>
#include <variant>
#include <vector>

#include "engine/learned_heads.h"
#include "engine/subspaces.h"
#include "kernels/deal.h"
#include "kernels/learning/worker.h"
#include "validation/claim/certificate_of.h"
#include "validation/claim/claim.h"
#include "validation/claim/experiment.h"
#include "validation/indices.h"

namespace headlab {
namespace {

/// Replicates whose heads are looked at: an index differs little between fits.
constexpr std::uint64_t index_replicates = 256;

/// "The change is more than the margin": what lies within the margin of twice the margin counts as
/// neither more nor less.
Comparison more_than_margin(std::string what, const Sampled& change, const Experiment& experiment,
                            std::span<const double> counts) {
  return at_least_zero(std::move(what), change - 2 * experiment.margin(), 1, experiment.margin(),
                       counts);
}

/// Relative fall of the error from condition 0 to condition 1, on the same training sets.
Comparison error_falls(Experiment& experiment, const std::string& what) {
  const Sampled& before = experiment.observed(0).mse;
  const Sampled& after = experiment.observed(1).mse;
  return more_than_margin(what, (before - after) / before, experiment, experiment.node_counts());
}

/// Mean of per-replicate values, with each of them left out.
Sampled mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  Sampled mean(sum / count);
  for (const double value : values) mean.left_out.push_back((sum - value) / (count - 1));
  return mean;
}

/// Index `name` of the heads that each of the first replicates learns under a plan.
std::vector<double> indices_of(Experiment& experiment, const std::string& name, Plan plan) {
  const Laboratory& laboratory = experiment.laboratory();
  if (laboratory.planted) laboratory.planted(plan);
  std::vector<double> values(index_replicates);
  deal(values.size(), thread_count(laboratory.threads), [&](std::size_t r) {
    if (laboratory.stop && laboratory.stop()) throw TimeIsUp();
    const auto gradients = laboratory.backend->head_gradients(plan.kernel, 1);
    // The fit of replicate r, as the run itself has it.
    const HeadParameters heads =
        fit_heads(*plan.learning, r, training_points(plan, r), *gradients).value().heads;
    HeadFrames frames({.d = heads.d, .heads = heads.heads, .k = heads.k});
    frames.assign(heads.keys, heads.queries, plan.learning->form != HeadForm::free);
    for (const Index& index : subspace_indices(to_matrices(frames), std::nullopt, std::nullopt)) {
      if (index.name == name) values[r] = index.value.value();
    }
  });
  return values;
}

const Learning& learning_of(Experiment& experiment, std::size_t condition) {
  const std::optional<Learning>& learning = experiment.plan(condition).learning;
  if (!learning) {
    throw Refused(
        "claim specialization needs subspaces { law = \"learned\", fit = "
        "\"per_replicate\" }");
  }
  return *learning;
}

/// Conditions: the start, the end of training.
std::vector<Finding> diversifies(Experiment& experiment) {
  const std::uint64_t steps = learning_of(experiment, 1).steps;
  learning_of(experiment, 0);
  std::vector<Finding> findings;
  for (const std::string& index : experiment.section().indices) {
    const std::vector<double> at_start = indices_of(experiment, index, experiment.plan(0));
    std::vector<double> rise = indices_of(experiment, index, experiment.plan(1));
    const Sampled start = mean_of(at_start), end = mean_of(rise);
    for (std::size_t r = 0; r < rise.size(); ++r) rise[r] -= at_start[r];
    Finding finding{.index = index, .comparisons = {}};
    finding.comparisons.push_back(
        more_than_margin("rise of the index " + index + " over training, less twice the margin",
                         mean_of(rise), experiment, std::vector<double>(rise.size(), 1.0)));
    finding.comparisons.push_back(
        error_falls(experiment, "relative fall of the MSE over training, less twice the margin"));
    std::ostringstream note;
    note.precision(3);
    note << "Mean " << index << " index " << start.value << " at the start, " << end.value
         << " after " << steps << " steps; MSE " << experiment.observed(0).mse.value << " and "
         << experiment.observed(1).mse.value << ".";
    finding.note = note.str();
    finding.certificate = certificate_of(experiment, 1, 0);
    finding.certificate->closed_form = {{"mean index", {end.value, start.value}}};
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// Conditions: trained without, with a penalty on heads that are alike.
std::vector<Finding> pays(Experiment& experiment) {
  if (!(learning_of(experiment, 1).diversity > learning_of(experiment, 0).diversity)) {
    throw Refused("the second condition must ask for more diversity than the first");
  }
  Finding finding;
  finding.comparisons.push_back(
      error_falls(experiment, "relative fall of the MSE by the penalty, less twice the margin"));
  std::ostringstream note;
  note.precision(3);
  note << "Mean chordal index "
       << mean_of(indices_of(experiment, "chordal", experiment.plan(0))).value << " without, "
       << mean_of(indices_of(experiment, "chordal", experiment.plan(1))).value
       << " with the penalty.";
  finding.note = note.str();
  finding.certificate = certificate_of(experiment, 1, 0);
  return {std::move(finding)};
}

}  // namespace

Claim specialization_claim() {
  return {
      .name = "specialization",
      .forms = {
          {.name = "training diversifies",
           .statement =
               "Training heads that start nearly alike raises their diversity index by more "
               "than the margin, and lowers the MSE by more than this share.",
           .assumptions = "Adam on the squared error with each point's own value left out; every "
                          "replicate learns on its own training set, all from one start.",
           .refuted_by =
               "An index that rises by less, or an MSE that falls by less, beyond the zone.",
           .examine = diversifies},
          {.name = "diversity pays",
           .statement = "A penalty on heads that are alike lowers the MSE of trained heads by more "
                        "than the margin.",
           .assumptions = "The same start, steps and batches with and without the penalty.",
           .refuted_by = "An MSE that falls by less, or grows, beyond the zone.",
           .examine = pays}}};
}

}  // namespace headlab
