// SPDX-License-Identifier: Apache-2.0
// A head-diversity index (HDI) is 0 for heads that look at one subspace. The claim is that more of
// it means less error, and it has three forms of very different strength:
//
// - output identity: with HDI_output = 1 - C/V,  MSE = B^2 + V (1 - (1 - 1/H) HDI_output).
//   That is algebra, and needs C and V of the very simulation it is to explain.
// - path: turn the heads apart so that every principal angle of every pair grows. Every index
//   grows, and noise alone makes every C_hl fall, at the centre and averaged over queries x ~ N(0,
//   I): a theorem (Hermite expansion). With a signal it need not hold, because bias depends on what
//   the heads look at.
// - between configurations: of any two head sets the one with the larger index has the smaller
//   error. An index is one number and C depends on all angles, so that there are pairs that
//   contradict it; the scenarios have them.
//
// What the index "overlap" gets wrong at a finite number of training points is the form near ties.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/subspaces.h"
#include "kernels/kernel_laws.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/claims/figure_comparison.h"
#include "validation/claims/near_ties.h"
#include "validation/claims/swept_conditions.h"
#include "validation/diversity/indices.h"

namespace headlab {
namespace {

std::vector<Finding> output_identity(Experiment& experiment) {
  Finding finding{.index = "output", .comparisons = {}, .identity = true};
  const SweptConditions conditions(experiment.scenario());
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const JackknifedEstimates& seen = experiment.observed(i);
    const double heads = experiment.condition(i).heads;
    const Jackknifed told = seen.bias_squared + seen.head_variance_mean / heads *
                                                    (heads - (heads - 1) * seen.output_index);
    finding.comparisons.push_back(equal_to(
        "MSE told by the index minus MSE at " + conditions.text(i) + ", relative to the latter",
        told - seen.mse, 0, seen.mse.value, experiment.margin(), experiment.node_counts()));
  }
  return {std::move(finding)};
}

/// Value of an index of the heads of a condition, by its name: chordal, spectral, overlap
/// (Gaussian) or qk (softmax). What rounding makes of 0 is 0.
double index_of(const std::string& name, const Condition& condition) {
  constexpr double rounding_of_index = 1e-12;
  std::optional<double> bandwidth, temperature;
  if (const auto* gaussian = std::get_if<GaussianKernel>(&*condition.kernel)) {
    bandwidth = gaussian->bandwidth;
  }
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&*condition.kernel)) {
    temperature = softmax->temperature;
  }
  for (const Index& index : subspace_indices(subspace_bases(condition), bandwidth, temperature)) {
    if (index.name == name && index.value)
      return *index.value < rounding_of_index ? 0 : *index.value;
  }
  throw InvalidInput("index " + name + " is not there, or undefined for these heads");
}

/// Two conditions by an index.
struct OrderedPair {
  std::size_t diverse;
  std::size_t plain;
  double higher;  ///< index of the former
  double lower;
};

OrderedPair ordered_pair(const Experiment& experiment, const std::string& index,
                         std::size_t diverse, std::size_t plain) {
  OrderedPair pair{diverse, plain, index_of(index, experiment.condition(diverse)),
                   index_of(index, experiment.condition(plain))};
  if (!(pair.higher > pair.lower)) {
    throw InvalidInput("the index " + index + " of " + numbered_condition(diverse) +
                       " is not above that of " + numbered_condition(plain));
  }
  return pair;
}

/// Adds "the more diverse has no larger MSE", relative to the plainer, with the counterexample
/// where the pair contradicts it.
void compare_pair(Experiment& experiment, const OrderedPair& pair, const std::string& what,
                  Finding& finding) {
  const Jackknifed& plain = experiment.observed(pair.plain).mse;
  finding.comparisons.push_back(at_least_zero(what, plain - experiment.observed(pair.diverse).mse,
                                              plain.value, experiment.margin(),
                                              experiment.node_counts()));
  if (!contradicts(finding.comparisons.back())) return;
  Counterexample counterexample = counterexample_of(experiment, pair.diverse, pair.plain);
  counterexample.closed_form = {{"index", {pair.higher, pair.lower}}};
  finding.counterexamples.emplace(finding.comparisons.size() - 1, std::move(counterexample));
}

/// The conditions turn all heads apart, step by step, for each number of heads.
std::vector<Finding> path(Experiment& experiment) {
  std::vector<Finding> findings;
  for (const std::string& index : experiment.section().indices) {
    Finding finding{.index = index, .comparisons = {}};
    for (std::size_t i = 0; i + 1 < experiment.conditions(); ++i) {
      const int heads = experiment.condition(i).heads;
      if (heads != experiment.condition(i + 1).heads) continue;  // another path begins
      const OrderedPair pair = ordered_pair(experiment, index, i + 1, i);
      std::ostringstream what;
      what << "MSE at index " << pair.higher << " less than MSE at index " << pair.lower << ", "
           << heads << " heads, relative to the latter";
      compare_pair(experiment, pair, what.str(), finding);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// The pairs of [claim] pairs, for each index those that speak most against it.
std::vector<Finding> between(Experiment& experiment) {
  const TableReader claim(experiment.section().table, "claim");
  const std::vector<std::string> notes = claim.words("note");
  const Value& pairs = claim.need("pairs", "conditions that are compared, for each index");
  const auto* pairs_of = std::get_if<Value::Array>(&pairs.data);
  const std::vector<std::string>& indices = experiment.section().indices;
  const auto is_condition = [&](double number) {
    return number >= 0 && number < static_cast<double>(experiment.conditions()) &&
           number == std::floor(number);
  };
  // All pairs are read before anything is simulated.
  std::vector<std::vector<OrderedPair>> ordered(indices.size());
  for (std::size_t f = 0; f < indices.size(); ++f) {
    const auto numbers = pairs_of != nullptr && pairs_of->size() == indices.size()
                             ? numbers_of((*pairs_of)[f])
                             : std::nullopt;
    if (!numbers || numbers->empty() || numbers->size() % 2 != 0 ||
        !std::ranges::all_of(*numbers, is_condition)) {
      reject(pairs.location, "claim.pairs",
             "needs an array for each index, of pairs of conditions, counted from 0");
    }
    for (std::size_t i = 0; i < numbers->size(); i += 2) {
      ordered[f].push_back(ordered_pair(experiment, indices[f],
                                        static_cast<std::size_t>((*numbers)[i]),
                                        static_cast<std::size_t>((*numbers)[i + 1])));
    }
  }
  std::vector<Finding> findings;
  for (std::size_t f = 0; f < indices.size(); ++f) {
    Finding finding{.index = indices[f], .comparisons = {}};
    if (f < notes.size()) finding.note = notes[f];
    for (const OrderedPair& pair : ordered[f]) {
      const Condition& diverse = experiment.condition(pair.diverse);
      std::ostringstream what;
      what << "MSE at index " << pair.higher << " less than MSE at index " << pair.lower << ", "
           << diverse.heads << " heads, d_k = " << diverse.k << ", relative to the latter";
      compare_pair(experiment, pair, what.str(), finding);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// The conditions have several head sets for each n.
std::vector<Finding> near_ties(Experiment& experiment) {
  const double bandwidth = std::get<GaussianKernel>(*experiment.condition().kernel).bandwidth;
  std::map<std::uint64_t, std::vector<Matrices>> head_sets;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Condition& condition = experiment.condition(i);
    head_sets[condition.n].push_back(subspace_bases(condition));
  }
  Finding finding{.index = "overlap", .comparisons = {}};
  std::ostringstream note;
  note << "Largest inversions, three heads of one dimension, exact:";
  double before_n = 0, before_gap = 0;
  for (const auto& [n, sets] : head_sets) {
    const NearTies ties = overlap_near_ties(n, bandwidth, sets);
    const bool first = before_n == 0;
    note << (first ? " " : "; ") << "n = " << n << ": MSE " << 100 * ties.error_gap << " %, index "
         << ties.index_gap;
    if (!first) {
      // The power of 1/n by which the largest inversion shrank.
      const double power =
          std::log(before_gap / ties.error_gap) / std::log(static_cast<double>(n) / before_n);
      const bool last = n == head_sets.rbegin()->first;
      finding.comparisons.push_back(
          {.what = "power of 1/n by which the largest inversion shrinks to n = " +
                   std::to_string(n) + (last ? " minus 1" : ""),
           .statement = last ? Statement::equal : Statement::at_least,
           .effect = {last ? power - 1 : power, 0},
           .df = 1,
           .margin = last ? experiment.margin() : 0});
    }
    before_n = static_cast<double>(n);
    before_gap = ties.error_gap;
  }
  finding.note = note.str() + ".";
  return {std::move(finding)};
}

}  // namespace

Claim hdi_claim() {
  return {.name = "hdi",
          .forms = {{.name = "output identity", .examine = output_identity},
                    {.name = "path", .examine = path},
                    {.name = "path, with a signal", .examine = path},
                    {.name = "between configurations", .examine = between},
                    {.name = "near ties", .examine = near_ties}}};
}

}  // namespace headlab
