// SPDX-License-Identifier: Apache-2.0
/// \file What a claim sees of the world: its scenario, simulated to the look under way, and the
/// closed forms for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/moments/estimates.h"
#include "engine/moments/figure_name.h"
#include "engine/moments/layer_estimates.h"
#include "engine/run/session.h"
#include "engine/scenario/preparation.h"
#include "validation/theory/theory.h"

namespace headlab {

struct Condition;
struct Plan;
struct Scenario;

/// The [claim] section of a scenario of a built-in claim.
struct ClaimSection {
  std::string name;
  std::string form;
  std::vector<std::string> indices;   ///< empty where the form is about none
  std::vector<std::string> expected;  ///< verdicts fixed beforehand, one an index
  double margin = 0;                  ///< what still counts as equal, or as no order
  Value table = {};                   ///< as written
};

/// Reads the [claim] section of a scenario; throws InvalidInput where there is none or it is
/// incomplete.
ClaimSection read_claim_section(const Scenario& scenario);

/// s2/n: the noise variance of a mean of all n responses, and the noise covariance of two heads
/// that have nothing else in common. With noise that depends on x, s is that where it is least.
double noise_floor(const Condition& condition);

/// Thrown where no closed form covers a scenario well enough: the verdict is "limited by theory".
class ClosedFormDeclines : public InvalidInput {
 public:
  using InvalidInput::InvalidInput;
};

/// Thrown where time is up: the look under way is given up, those before it stand.
class TimeIsUp {};

/// Gives the closed forms of a scenario.
using ClosedForms = std::function<Theory(const Condition&, TheorySource)>;

/// What replaces parts of an experiment.
struct Substitutes {
  /// For tests: makes the world that is simulated differ from the one the claim speaks of.
  std::function<void(Plan&)> fault = {};
  /// Instead of compute_theory: computed once for many experiments, or false ones of a test.
  ClosedForms closed_forms = {};
};

/// One claim scenario, simulated further from look to look. Every condition shares its draws with
/// the others, replicate by replicate.
class Experiment {
 public:
  /// \param section  of a built-in claim; without a form: the scenario states its claims itself
  Experiment(Scenario scenario, ClaimSection section, Session session,
             Substitutes substitutes = {});
  ~Experiment();

  const Scenario& scenario() const { return *scenario_; }
  const ClaimSection& section() const { return section_; }
  double margin() const { return section_.margin; }
  const Session& session() const { return session_; }

  std::size_t conditions() const;
  const Condition& condition(std::size_t which = 0) const;
  /// The plan of a condition, as the claim understands it.
  const Plan& plan(std::size_t which = 0) const;

  /// The same as it is simulated, which a fault of a test may make another.
  const Plan& simulated(std::size_t which);

  /// Moves on to a look at `replicates` replicates, a multiple of 8 and at least 256. Throws
  /// TimeIsUp where the pilot of weights was stopped.
  void look_at(std::uint64_t replicates);
  std::uint64_t replicates() const { return replicates_; }

  /// The condition as simulated so far. Throws TimeIsUp.
  const JackknifedEstimates& observed(std::size_t which = 0);
  /// Any plan as simulated so far; `key` is its name within the experiment.
  const JackknifedEstimates& observed(const std::string& key, const Plan& plan);
  /// The same on a backend of the claim's own, which must live as long as the experiment.
  const JackknifedEstimates& observed(const std::string& key, const Plan& plan,
                                      const Backend& backend);

  /// The same of a study of depth.
  const LayersOf<Jackknifed>& observed_layers(std::size_t which = 0);
  const LayersOf<Jackknifed>& observed_layers(const std::string& key, const Plan& plan);

  /// A figure of a condition as simulated so far, or nullptr where the condition has none.
  const Jackknifed* figure(std::size_t which, const FigureName& name);

  /// Gives the fault of the experiment, if any, to a plan that is simulated past observed().
  void add_fault(Plan& plan) const;

  /// Closed forms of a condition, computed once.
  const Theory& theory(std::size_t which = 0, TheorySource source = TheorySource::automatic);

  /// Replicates of each node: the same for everything observed at this look.
  const std::vector<double>& node_counts();

 private:
  struct Observation;

  /// `condition` draws heads or queries again where the plan does.
  const Observation& observe(const std::string& key, const Plan& plan, const Backend& backend,
                             const Condition* condition);
  const Observation& observe(std::size_t which);

  /// Takes the tree of this look where the session has kept it.
  bool take_kept(const std::string& unit, MomentTree& tree) const;

  std::shared_ptr<const Scenario> scenario_;
  ClaimSection section_;
  Session session_;
  Substitutes substitutes_;
  std::vector<Preparation> found_;
  std::vector<Plan> plans_;
  bool stopped_ = false;
  std::uint64_t replicates_ = 0;
  std::map<std::string, std::unique_ptr<Observation>> observations_;
  std::map<std::pair<std::size_t, TheorySource>, Theory> theories_;
};

}  // namespace headlab
