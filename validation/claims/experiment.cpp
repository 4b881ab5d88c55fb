// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/experiment.h"

#include <limits>
#include <utility>

#include "engine/files/document.h"
#include "engine/run/message_bytes.h"
#include "engine/run/pilot.h"
#include "engine/run/simulate.h"
#include "engine/run/units.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/law/weights/uniform.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/scenario.h"
#include "kernels/counted.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab {

ClaimSection read_claim_section(const Scenario& scenario) {
  const Value parameters = scenario.conditions.at(0).parameters.tree();
  const Value* table = parameters.find("claim");
  if (table == nullptr)
    reject(parameters.location, "claim",
           "is missing - state what is claimed in a table [[claim.compare]]");
  const TableReader reader(*table, "claim");
  ClaimSection section{.table = *table};
  reader.required("name", section.name, "the claim");
  reader.required("form", section.form,
                  "that of a claim in the program; one of your own has [[claim.compare]]");
  reader.optional("margin", section.margin, at_least(0), "what still counts as equal");
  section.indices = reader.words("index");
  section.expected = reader.words("expected");
  const std::size_t verdicts = section.indices.empty() ? 1 : section.indices.size();
  if (section.expected.size() != verdicts) {
    reject(table->location, "claim.expected",
           "has " + counted(section.expected.size(), "verdict") + ", needs " +
               std::to_string(verdicts));
  }
  return section;
}

double noise_floor(const Condition& condition) {
  const double sd = constant_noise_sd(*condition.noise).value();
  return sd * sd / static_cast<double>(condition.n);
}

struct Experiment::Observation {
  Plan plan;
  MomentTree tree;
  JackknifedEstimates estimates;     ///< of a study of depth the nodes alone
  LayersOf<Jackknifed> layers = {};  ///< of a study of depth
};

Experiment::Experiment(Scenario scenario, ClaimSection section, Session session,
                       Substitutes substitutes)
    : scenario_(std::make_shared<const Scenario>(std::move(scenario))),
      section_(std::move(section)),
      session_(std::move(session)),
      substitutes_(std::move(substitutes)) {
  for (const Condition& condition : scenario_->conditions) {
    if (!section_.form.empty()) {
      require_one_draw(condition, "this claim is about given heads and queries");
    }
    Preparation& found = found_.emplace_back();
    if (!find_weights(condition, found, session_)) {
      // Stopped in the pilot: the plan is there for its sizes, and nobody looks at it.
      stopped_ = true;
      found.head_weights = UniformWeights{}.values(sizes_of(condition));
    }
    plans_.push_back(make_plan(condition, found));
  }
}

Experiment::~Experiment() = default;

std::size_t Experiment::conditions() const {
  return scenario_->conditions.size();
}

const Condition& Experiment::condition(std::size_t which) const {
  return scenario_->conditions.at(which);
}

const Plan& Experiment::plan(std::size_t which) const {
  return plans_.at(which);
}

void Experiment::look_at(std::uint64_t replicates) {
  if (stopped_) throw TimeIsUp();
  replicates_ = replicates;
}

const Experiment::Observation& Experiment::observe(std::size_t which) {
  return observe("condition " + std::to_string(which), plan(which), *session_.backend,
                 &condition(which));
}

const Plan& Experiment::simulated(std::size_t which) {
  return observe(which).plan;
}

const JackknifedEstimates& Experiment::observed(std::size_t which) {
  return observe(which).estimates;
}

const JackknifedEstimates& Experiment::observed(const std::string& key, const Plan& plan) {
  return observed(key, plan, *session_.backend);
}

const JackknifedEstimates& Experiment::observed(const std::string& key, const Plan& plan,
                                                const Backend& backend) {
  return observe(key, plan, backend, nullptr).estimates;
}

const LayersOf<Jackknifed>& Experiment::observed_layers(std::size_t which) {
  return observe(which).layers;
}

const LayersOf<Jackknifed>& Experiment::observed_layers(const std::string& key, const Plan& plan) {
  return observe(key, plan, *session_.backend, nullptr).layers;
}

const Jackknifed* Experiment::figure(std::size_t which, const FigureName& name) {
  return name.layer ? find_figure<Jackknifed>(observed_layers(which), name)
                    : find_figure<Jackknifed>(observed(which), name);
}

const Experiment::Observation& Experiment::observe(const std::string& key, const Plan& plan,
                                                   const Backend& backend,
                                                   const Condition* condition) {
  std::unique_ptr<Observation>& at = observations_[key];
  if (!at) {
    at = std::make_unique<Observation>(Observation{plan, MomentTree(plan.kept_layout()), {}});
    add_fault(at->plan);
  }
  if (at->tree.count() != replicates_) {
    SimulationHooks hooks{.stop = session_.stop_hook()};
    if (plan.redraws && condition != nullptr) {
      hooks.set_draw = [&](Plan& drawn, std::size_t, std::uint64_t draw) {
        set_draw(drawn, *condition, draw);
      };
    }
    const std::string unit = session_.unit + ", " + key + ", " + std::to_string(replicates_);
    if (!take_kept(unit, at->tree)) {
      at->tree = continue_simulation(std::move(at->tree), at->plan, backend, session_.threads,
                                     replicates_, hooks);
      if (at->tree.count() != replicates_) throw TimeIsUp();
      if (session_.units) session_.units->keep(unit, bytes_of(at->tree));
    }
    if (at->plan.stack) {
      at->layers = jackknifed_layers(at->tree, at->plan.n);
      at->estimates.node_counts = counts_of_layers(at->tree).node_counts;
    } else {
      at->estimates =
          jackknifed_estimates(at->tree, at->plan, condition ? condition->measures : Measures());
      // Estimates of float32 agree with those of `reference` to four roundings.
      const double eps = backend.name() == "reference" ? 64 * std::numeric_limits<double>::epsilon()
                                                       : 4 * std::numeric_limits<float>::epsilon();
      if (!plan.redraws) set_digits(at->estimates, plan.truth, eps);
    }
  }
  return *at;
}

bool Experiment::take_kept(const std::string& unit, MomentTree& tree) const {
  if (!session_.units) return false;
  const std::optional<std::string> bytes = session_.units->find(unit);
  if (!bytes) return false;
  MomentTree kept = tree_of(tree.layout(), *bytes);
  if (kept.count() != replicates_) return false;
  tree = std::move(kept);
  return true;
}

void Experiment::add_fault(Plan& plan) const {
  if (substitutes_.fault) substitutes_.fault(plan);
}

const Theory& Experiment::theory(std::size_t which, TheorySource source) {
  const auto key = std::pair(which, source);
  auto at = theories_.find(key);
  if (at == theories_.end()) {
    const StopScope scope(session_.stop_hook());
    try {
      const Theory theory =
          substitutes_.closed_forms
              ? substitutes_.closed_forms(condition(which), source)
              : compute_theory(condition(which), source, session_.threads, found_[which]);
      at = theories_.emplace(key, theory).first;
    } catch (const InvalidInput& error) {
      throw ClosedFormDeclines(error.what());
    } catch (const WorkStopped&) {
      throw TimeIsUp();
    }
  }
  return at->second;
}

const std::vector<double>& Experiment::node_counts() {
  return observed().node_counts;
}

}  // namespace headlab
