// SPDX-License-Identifier: Apache-2.0
/// \file A claim of the theory, as something that can come out wrong. To add one write a scenario
/// under scenarios/claims/ that states it (stated_claim.h), and test that a fault turns its
/// verdict. What a comparison of figures cannot state is a function in a file next to this one,
/// listed in claims.cpp; a scenario says in words what the function examines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/fields.h"
#include "engine/moments/jackknife.h"
#include "validation/statistics/comparison.h"

namespace headlab {

class Experiment;

/// Two figures of one scenario that contradict a claim: the first is the lesser, or equal, by the
/// claim and not by the simulation.
struct Counterexample {
  std::string scenario;  ///< text of a scenario file that has the conditions of both
  std::uint64_t seed = 0;
  std::uint64_t replicates = 0;
  std::array<std::string, 2> figures = {"mse", "mse"};  ///< as FigureName::text writes them
  std::array<std::size_t, 2> conditions = {0, 1};       ///< of the scenario, from 0
  Estimate first;
  Estimate second;
  Estimate difference;  ///< first - second, on the same draws
  double z = 0;         ///< difference in units of its MCSE
  std::string replay =
      {};  ///< command that gives the same bits; empty: the scenario is not a file yet
  /// Closed-form figures of the two, by name: index, correlation, ...
  std::vector<std::pair<std::string, std::pair<double, double>>> closed_form = {};

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("scenario", scenario, "text of a scenario that has the conditions of both");
    visit("seed", seed, "seed");
    visit("replicates", replicates, "training sets of each");
    visit("figures", figures, "names of the two figures");
    visit("conditions", conditions, "their conditions in the scenario, from 0");
    visit("values", std::array{first, second}, "the two figures");
    visit("difference", difference, "first minus second");
    visit("z", z, "difference in units of its standard error");
    visit("closed_form", by_name(closed_form), "figures of the two from closed forms");
    visit("replay", replay.empty() ? std::nullopt : std::optional(replay),
          "command that gives the same bits");
  }
};

/// What an experiment says about one form of a claim, for one index where the form is about
/// indices: it is supported if all of its comparisons are, and refuted if one of them is.
struct Finding {
  std::string index = {};  ///< "chordal", ...; empty where the form is about none
  std::vector<Comparison> comparisons;
  bool identity = false;  ///< holds by algebra; only rounding is at stake
  std::string note =
      {};  ///< one sentence for the report, what was seen in addition to the comparisons
  /// Counterexamples of single comparisons, by their number: that of the comparison that refutes
  /// is reported.
  std::map<std::size_t, Counterexample> counterexamples = {};
};

/// One form of a claim: a theorem that is read before it is tested. Texts are one sentence or two,
/// from a scenario of the form.
struct ClaimForm {
  std::string name;              ///< as [claim] form names it
  std::string statement = {};    ///< what is claimed
  std::string assumptions = {};  ///< under which it is
  std::string refuted_by = {};   ///< what would refute it
  std::string origin = {};       ///< whose claim it is, where that is said
  /// The comparisons at the replicates simulated so far: the same ones, in the same order, at every
  /// look. Empty in claims() for a form that a scenario states.
  std::function<std::vector<Finding>(Experiment& experiment)> examine;
};

struct Claim {
  std::string name;
  std::vector<ClaimForm> forms;
};

}  // namespace headlab
