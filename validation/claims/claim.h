// SPDX-License-Identifier: Apache-2.0
/// \file A claim of the theory, as something that can come out wrong. To add one write a scenario
/// under scenarios/claims/ that states it (stated_claim.h), and test that a fault turns its
/// verdict. What a scenario cannot state is a file next to this one, listed in claims.cpp, with a
/// scenario for each of its forms.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validation/search/counterexample.h"
#include "validation/statistics/comparison.h"

namespace headlab {

class Experiment;

/// What an experiment says about one form of a claim, for one index where the form is about
/// indices: it is supported if all of its comparisons are, and refuted if one of them is.
struct Finding {
  std::string index = {};  ///< "chordal", ...; empty where the form is about none
  std::vector<Comparison> comparisons;
  bool identity = false;  ///< holds by algebra; only rounding is at stake
  std::string note =
      {};  ///< one sentence for the report, what was seen in addition to the comparisons
  std::optional<Counterexample> counterexample = {};  ///< the counterexample, where there is one
  /// Counterexamples of single comparisons, by their number: that of the comparison that refutes
  /// is reported.
  std::map<std::size_t, Counterexample> counterexamples = {};
};

/// One form of a claim: a theorem that is read before it is tested. Texts are one sentence or two.
struct ClaimForm {
  std::string name;         ///< as [claim] form names it
  std::string statement;    ///< what is claimed
  std::string assumptions;  ///< under which it is
  std::string refuted_by;   ///< what would refute it
  std::string origin = {};  ///< whose claim it is, where that is said
  /// The comparisons at the replicates simulated so far: the same ones, in the same order, at every
  /// look. Empty in claims() for a form that a scenario states.
  std::function<std::vector<Finding>(Experiment& experiment)> examine;
};

struct Claim {
  std::string name;
  std::vector<ClaimForm> forms;
};

/// All claims, in the order in which they are validated.
const std::vector<Claim>& claims();

/// The claim called `name`; throws InvalidInput with the nearest name for one that does not exist.
const Claim& find_claim(const std::string& name);

/// The form of a claim called `form`, which no scenario states; throws InvalidInput.
const ClaimForm& find_form(const Claim& claim, const std::string& form);

}  // namespace headlab
