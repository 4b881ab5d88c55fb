// SPDX-License-Identifier: Apache-2.0
// Attention heads start alike and are trained together. Claimed: training makes them specialise, so
// that their diversity grows while the error falls; and, which is another matter, that it pays to
// ask for diversity. Every replicate draws a training set, trains heads on it and is judged with
// them, so that the error has the variance of learning in it.
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "engine/files/document.h"
#include "engine/run/learned_heads.h"
#include "engine/run/simulate.h"
#include "engine/scenario/subspaces.h"
#include "kernels/kernel_laws.h"
#include "kernels/learning/worker.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/claims/figure_comparison.h"
#include "validation/diversity/indices.h"

namespace headlab {
namespace {

/// Replicates whose heads are looked at: an index differs little between fits.
constexpr std::uint64_t index_replicates = 512;

/// "a less than b by more than the margin of the claim", which the words name: what is allowed
/// beyond that is nothing.
/// \param room  b - a
Comparison less_by_more(const std::string& what, const Jackknifed& room,
                        const Experiment& experiment, std::span<const double> counts) {
  return at_least_zero(what + " by more than " + number_text(experiment.margin()),
                       room - experiment.margin(), 1, 0, counts);
}

/// Adds the relative fall of the error from condition 0 to condition 1, on the same training sets.
void add_error_falls(Experiment& experiment, const std::string& what, Finding& finding) {
  const Jackknifed& before = experiment.observed(0).mse;
  const Jackknifed& after = experiment.observed(1).mse;
  Comparison comparison =
      less_by_more(what + ", relative to the latter,", (before - after) / before, experiment,
                   experiment.node_counts());
  if (contradicts(comparison)) {
    finding.counterexamples.emplace(finding.comparisons.size(),
                                    counterexample_of(experiment, 1, 0));
  }
  comparison.observed = after.value;
  comparison.expected = before.value;
  finding.comparisons.push_back(std::move(comparison));
}

/// Mean of per-replicate values, with each of them left out.
Jackknifed mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  Jackknifed mean(sum / count);
  for (const double value : values) mean.leave_one_out.push_back((sum - value) / (count - 1));
  return mean;
}

/// Indices of the heads that each of the first replicates learns under a plan, by name.
using FittedIndices = std::map<std::string, std::vector<double>>;

FittedIndices indices_of(Experiment& experiment, Plan plan) {
  const Session& session = experiment.session();
  experiment.add_fault(plan);
  std::vector<std::vector<Index>> fitted(index_replicates);
  parallel_for(fitted.size(), thread_count(session.threads), [&](std::size_t r) {
    const auto gradients = session.backend->head_gradients(*plan.kernel, 1);
    // The fit of replicate r, as the run itself has it.
    const std::optional<Fit> fit = fit_heads(*plan.learning, r, fit_points(plan, r), *gradients,
                                             {.stop = session.stop_hook()});
    if (!fit) throw TimeIsUp();
    Subspaces frames({.d = plan.d, .heads = plan.heads, .k = plan.k});
    frames.assign(fit->heads.keys, {}, plan.learning->form == HeadMatrixKind::orthonormal);
    fitted[r] = subspace_indices(to_matrices(frames), std::nullopt, std::nullopt);
  });
  FittedIndices indices;
  for (const std::vector<Index>& of_replicate : fitted) {
    for (const Index& index : of_replicate) {
      if (index.value) indices[index.name].push_back(*index.value);
    }
  }
  return indices;
}

/// The values of one index, which has to be one of subspaces alone.
const std::vector<double>& values_of(const FittedIndices& indices, const std::string& name) {
  const auto at = indices.find(name);
  if (at == indices.end()) {
    throw InvalidInput("claim specialization knows no index \"" + name +
                       "\" (allowed: chordal, spectral)");
  }
  return at->second;
}

const Learning& learning_of(Experiment& experiment, std::size_t condition) {
  const std::optional<Learning>& learning = experiment.plan(condition).learning;
  if (!learning) {
    throw InvalidInput(
        "claim specialization needs subspaces { law = \"learned\", fit = "
        "\"per_replicate\" }");
  }
  return *learning;
}

/// Conditions: the start, the end of training.
std::vector<Finding> diversifies(Experiment& experiment) {
  const std::uint64_t steps = learning_of(experiment, 1).steps;
  learning_of(experiment, 0);
  const FittedIndices at_start = indices_of(experiment, experiment.plan(0));
  const FittedIndices at_end = indices_of(experiment, experiment.plan(1));
  std::vector<Finding> findings;
  for (const std::string& index : experiment.section().indices) {
    const std::vector<double>& before = values_of(at_start, index);
    std::vector<double> rise = values_of(at_end, index);
    const Jackknifed start = mean_of(before), end = mean_of(rise);
    for (std::size_t r = 0; r < rise.size(); ++r) rise[r] -= before[r];
    Finding finding{.index = index, .comparisons = {}};
    Comparison rises =
        less_by_more("index " + index + " at the start less than after training", mean_of(rise),
                     experiment, std::vector<double>(rise.size(), 1.0));
    rises.observed = start.value;
    rises.expected = end.value;
    finding.comparisons.push_back(std::move(rises));
    add_error_falls(experiment, "MSE after training less than MSE at the start", finding);
    std::ostringstream note;
    note.precision(3);
    note << "Mean " << index << " index " << start.value << " at the start, " << end.value
         << " after " << steps << " steps; MSE " << experiment.observed(0).mse.value << " and "
         << experiment.observed(1).mse.value << ".";
    finding.note = note.str();
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// Conditions: trained without, with a penalty on heads that are alike.
std::vector<Finding> pays(Experiment& experiment) {
  if (!(learning_of(experiment, 1).diversity > learning_of(experiment, 0).diversity)) {
    throw InvalidInput("the second condition must ask for more diversity than the first");
  }
  Finding finding;
  add_error_falls(experiment, "MSE with the penalty less than MSE without it", finding);
  std::ostringstream note;
  note.precision(3);
  note << "Mean chordal index "
       << mean_of(values_of(indices_of(experiment, experiment.plan(0)), "chordal")).value
       << " without, "
       << mean_of(values_of(indices_of(experiment, experiment.plan(1)), "chordal")).value
       << " with the penalty.";
  finding.note = note.str();
  return {std::move(finding)};
}

}  // namespace

Claim specialization_claim() {
  return {.name = "specialization",
          .forms = {{.name = "training diversifies", .examine = diversifies},
                    {.name = "diversity pays", .examine = pays}}};
}

}  // namespace headlab
