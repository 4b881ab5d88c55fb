// SPDX-License-Identifier: Apache-2.0
/// \file Advice on how many heads of what dimension to use under a budget, with its uncertainty.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/moments/jackknife.h"
#include "engine/run/session.h"
#include "engine/scenario/sweep.h"
#include "kernels/kernel_laws.h"
#include "validation/allocation/allocations.h"
#include "validation/allocation/tuning.h"

namespace headlab {

struct Condition;

/// How a selection came out.
enum class AdviceKind {
  best,         ///< one allocation is left
  within_zone,  ///< several may be best, but the one advised is shown to lie within the zone of it
  too_close,    ///< neither, with the replicates allowed
  unfinished    ///< time was up before it was decided
};

/// "best", "within zone", "too close to call", "unfinished".
const char* advice_name(AdviceKind kind);

/// One candidate with what was seen of it.
struct AllocationRow {
  int heads = 1;
  int k = 1;
  std::string subspaces;  ///< law of its heads
  KernelLaw kernel;       ///< with the width that the rule gave it
  Estimate mse = {};      ///< at the look it was last simulated for; NaN where there was none
  std::uint64_t replicates = 0;
  bool in_best_set = true;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("heads", heads, "number of heads H");
    visit("dim", k, "per-head dimension d_k");
    visit("subspaces", subspaces, "law of the subspaces");
    visit("bandwidth", std::visit([](const auto& law) { return law.length_scale(); }, kernel),
          "bandwidth of the kernel");
    if (const auto* softmax = std::get_if<SoftmaxKernel>(&kernel)) {
      visit("temperature", softmax->temperature, "temperature of the kernel");
    }
    visit("mse", mse, "mean squared error of the ensemble, averaged over queries");
    visit("replicates", replicates, "training sets simulated");
    visit("in_best_set", in_best_set, "may be the best");
  }
};

struct AllocationStudy;

/// What is advised, in one sentence.
std::string advice_text(const AllocationStudy& study);

/// What the advice holds for, in one sentence.
std::string advice_limits(const AllocationStudy& study);

/// A selection among the allocations of one budget at one n.
struct AllocationStudy {
  int budget = 1;
  std::uint64_t n = 1;
  bool fixed_design = false;  ///< one set of n points, not their law
  int queries = 1;
  std::uint64_t seed = 0;
  Parameters parameters = {};  ///< of the scenario
  BandwidthRule rule = BandwidthRule::fixed;
  SelectionGuarantee guarantee;
  std::vector<AllocationRow> rows;  ///< by k

  AdviceKind kind = AdviceKind::unfinished;
  std::optional<std::size_t> advised;  ///< the row of the best set with the least estimated MSE
  /// Upper bound of MSE(advised) - MSE(best), in units of the former.
  double largest_loss = std::numeric_limits<double>::infinity();
  /// Replicates that would decide if errors are what they look like, where it is too close.
  double replicates_needed = std::numeric_limits<double>::quiet_NaN();
  TuningCost tuning;  ///< no settings but under the rule `tuned`

  Machine machine;
  Outcome outcome;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("budget", budget, "budget D = H d_k");
    visit("n", n, "training points in one training set");
    visit("rule", rule_name(rule), "bandwidth rule");
    visit("complete", outcome.complete, "decided before time was up or a signal came");
    visit("alpha", guarantee.alpha, "chance that the set misses the best, at most");
    visit("zone", guarantee.zone, "share of the error that does not matter");
    visit("pilot", tuning.settings > 0 ? std::optional(tuning) : std::nullopt,
          "search for bandwidths");
    visit("allocations", rows, "candidates", {.item = "allocation"});
    visit("advice", Advice{*this}, "what is advised");
    visit("seconds", outcome.seconds, "wall time", {.unit = "s"});
  }

 private:
  struct Advice {
    const AllocationStudy& study;

    template <class Visitor>
    void fields(Visitor& visit) const {
      const AllocationRow* row = study.advised ? &study.rows[*study.advised] : nullptr;
      visit("heads", row ? std::optional(row->heads) : std::nullopt, "number of heads H");
      visit("dim", row ? std::optional(row->k) : std::nullopt, "per-head dimension d_k");
      visit("kind", advice_name(study.kind), "how sure it is");
      visit("text", advice_text(study), "in one sentence");
      visit("limits", advice_limits(study), "what it holds for");
      visit("largest_loss", study.largest_loss, "bound on the loss, a share of the error");
      visit("replicates_needed",
            study.kind == AdviceKind::too_close ? std::optional(study.replicates_needed)
                                                : std::nullopt,
            "training sets that would decide");
    }
  };
};

/// Selects among the allocations of `budget` for the design, truth, noise, queries and kernel of
/// `base`, its n and its seed. All candidates are simulated on common training sets to a first
/// look, those that screen() leaves to the next, until one is left
/// or the least is shown to lie within the zone of the best. Throws InvalidInput for what
/// allocation_scenarios() refuses, for too few replicates, for a backend that is not there and for
/// what does not fit in memory; RunFailed.
AllocationStudy allocate(const Condition& base, int budget, const Session& session = {},
                         const AllocateOptions& options = {});

}  // namespace headlab
