// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/validate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "engine/files/enumerators.h"
#include "engine/files/error.h"
#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"
#include "engine/files/words.h"
#include "engine/run/units.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/stack/stack_setting.h"
#include "kernels/counted.h"
#include "kernels/kernel_laws.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "validation/claims/stated_claim.h"
#include "validation/statistics/comparison.h"

namespace headlab {
namespace {

constexpr double full_factor = 100;
constexpr auto looks = static_cast<double>(look_shares.size());
/// Level at which a look stops for a refutation, before Holm's procedure can be run over all: as if
/// there were this many comparisons.
constexpr double presumed_comparisons = 1000;

/// A verdict in the making.
struct Pending {
  VerdictRow row;
  std::vector<double> p_values;  ///< against each comparison, over all looks
  std::vector<Comparison> comparisons;
  std::map<std::size_t, Counterexample> counterexamples;  ///< of comparisons, by their number
  bool identity = false;
  bool supported = false;
  bool decided = false;  ///< no further look will change it
};

/// The comparison that speaks most against the claim, relative to its margin and error; one that is
/// not a number before all others.
std::size_t max_decisive(const std::vector<Comparison>& comparisons) {
  std::size_t worst = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& c = comparisons[i];
    const double deviation =
        c.statement == Statement::equal ? std::abs(c.effect.value) : -c.effect.value;
    const double room = c.margin - c.theory_error - c.rounding - deviation;
    const double error = c.effect.mcse == 0 ? 1e-300 : c.effect.mcse;
    const double distance = room / error;
    if (std::isnan(distance) || !open_reason(c, 1).empty()) return i;
    if (distance < least) {
      worst = i;
      least = distance;
    }
  }
  return worst;
}

/// Takes in what one look found.
void look(Pending& pending, Finding finding, std::uint64_t replicates, bool last) {
  if (pending.decided) return;
  pending.row.index = finding.index;
  pending.row.note = finding.note;
  pending.row.replicates = replicates;
  pending.identity = finding.identity;
  pending.comparisons = std::move(finding.comparisons);
  if (finding.identity) {
    // Both sides are of the same numbers.
    for (Comparison& one : pending.comparisons) one.rounding = one.unseen = 0;
  }
  pending.counterexamples = std::move(finding.counterexamples);
  const std::vector<Comparison>& all = pending.comparisons;
  if (pending.p_values.empty()) pending.p_values.assign(all.size(), 1.0);
  if (pending.p_values.size() != all.size() || all.empty()) {
    throw std::logic_error("claim " + pending.row.claim + ", form " + pending.row.form +
                           ": a look has other comparisons than the look before");
  }
  // Bonferroni over the looks: both errors are spent in equal shares.
  const double alpha = verdict_alpha / looks;
  pending.supported = true;
  bool against = false;
  bool limited = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    pending.p_values[i] =
        std::min(pending.p_values[i], std::min(1.0, looks * p_value_against(all[i])));
    pending.supported = pending.supported && supports(all[i], alpha);
    against = against || pending.p_values[i] <= verdict_alpha / presumed_comparisons;
    limited = limited && limited_by_theory(all[i]);
  }
  pending.decided = pending.supported || against || limited || last;
  pending.row.complete = pending.decided;
}

/// Verdicts, once every p-value of the call is known.
void decide(std::vector<Pending>& pending, Validation& result) {
  std::vector<double> p_values;
  for (const Pending& one : pending) {
    if (!one.identity) p_values.insert(p_values.end(), one.p_values.begin(), one.p_values.end());
  }
  result.comparisons = p_values.size();
  const std::vector<bool> rejected = holm(p_values, verdict_alpha);
  const double refute_alpha =
      verdict_alpha / looks / static_cast<double>(std::max<std::size_t>(p_values.size(), 1));
  std::size_t at = 0;
  for (Pending& one : pending) {
    VerdictRow& row = one.row;
    bool refuted = false;
    std::size_t strongest = 0;
    if (!one.identity) {
      for (std::size_t i = 0; i < one.p_values.size(); ++i) {
        refuted = refuted || rejected[at + i];
        if (one.p_values[i] < one.p_values[strongest]) strongest = i;
      }
      at += one.p_values.size();
    }
    if (one.comparisons.empty()) {
      if (row.note.empty()) {
        row.note = result.outcome.interrupted ? "Interrupted before its first look."
                                              : "Time was up before its first look.";
      }
      result.rows.push_back(std::move(row));
      continue;
    }
    row.comparisons = one.comparisons.size();
    const bool limited =
        std::any_of(one.comparisons.begin(), one.comparisons.end(), limited_by_theory);
    const bool broken_identity =
        one.identity && row.complete && std::ranges::any_of(one.comparisons, contradicts);
    row.verdict = one.identity && one.supported ? Verdict::identity
                  : refuted || broken_identity  ? Verdict::refuted
                  : one.supported               ? Verdict::supported
                  : limited                     ? Verdict::limited_by_theory
                                                : Verdict::unresolved;
    const bool is_refuted = row.verdict == Verdict::refuted;
    const std::size_t decisive =
        is_refuted && !one.identity ? strongest : max_decisive(one.comparisons);
    row.decisive = one.comparisons[decisive];
    const auto own = one.counterexamples.find(decisive);
    if (is_refuted && own != one.counterexamples.end()) row.counterexample = std::move(own->second);
    row.effects = one.comparisons;
    if (row.verdict == Verdict::unresolved) {
      for (const Comparison& c : one.comparisons) {
        if (supports(c, verdict_alpha / looks)) continue;
        const std::string reason = open_reason(c, row.replicates);
        if (!reason.empty() && row.open.empty()) row.open = c.what + ": " + reason;
        row.replicates_needed = std::max(
            row.replicates_needed, replicates_to_resolve(c, static_cast<double>(row.replicates),
                                                         verdict_alpha / looks, refute_alpha));
      }
    }
    result.rows.push_back(std::move(row));
  }
}

/// The conditions that some comparisons are of.
std::set<std::size_t> conditions_of(const std::vector<Comparison>& comparisons,
                                    const Experiment& experiment) {
  std::set<std::size_t> compared;
  bool all = comparisons.empty();
  for (const Comparison& one : comparisons) {
    compared.insert(one.conditions.begin(), one.conditions.end());
    all = all || one.conditions.empty();
  }
  for (std::size_t i = 0; all && i < experiment.conditions(); ++i) compared.insert(i);
  return compared;
}

/// Fills in what the conditions compared are: one law for all, or that it varies.
void describe_setting(const Experiment& experiment, const std::set<std::size_t>& compared,
                      VerdictRow& row) {
  const auto name = [](const auto& law) { return std::string(law.name); };
  const auto add = [](std::string& common, const std::string& law) {
    if (common.empty()) common = law;
    if (common != law) common = varies;
  };
  row.depth = experiment.condition().stack != nullptr;
  if (row.depth) {
    for (const std::size_t i : compared) {
      const StackSetting& stack = *experiment.condition(i).stack;
      add(row.kernel, std::visit(name, stack.kernel));
      add(row.stages, counted(static_cast<std::uint64_t>(stack.layers), "layer"));
    }
    if (row.stages == varies) row.stages = "layers vary";
    return;
  }
  std::vector<std::string> stages;
  row.queries = experiment.plan(*compared.begin()).queries;
  for (const std::size_t i : compared) {
    const Condition& condition = experiment.condition(i);
    add(row.kernel, std::visit(name, *condition.kernel));
    add(row.regression, std::visit(name, *condition.regression));
    row.signal |= !std::holds_alternative<ZeroRegression>(*condition.regression);
    if (experiment.plan(i).queries != row.queries) row.queries = 0;
    for (const std::string& stage : stages_in_force(condition)) {
      if (std::ranges::count(stages, stage) == 0) stages.push_back(stage);
    }
  }
  row.stages = listed(stages);
}

/// A row with everything that is known before anything is simulated.
VerdictRow blank_row(const Experiment& experiment, const ClaimSection& section,
                     const ClaimForm& form) {
  VerdictRow row;
  row.claim = section.name;
  row.form = form.name;
  row.statement = form.statement;
  row.assumptions = form.assumptions;
  row.refuted_by = form.refuted_by;
  row.origin = form.origin;
  row.scenario = experiment.scenario().file;
  row.margin = section.margin;
  return row;
}

/// One call, and the verdicts so far.
class Validator {
 public:
  Validator(const Session& session, const ValidateOptions& options)
      : session_(session), options_(options) {
    if (options.replicates && *options.replicates < smallest_scenario) {
      throw InvalidInput("--replicates " + std::to_string(*options.replicates) +
                         ": too few for a verdict (allowed: at least " +
                         std::to_string(smallest_scenario) + ")");
    }
    result_.machine = session.machine();
  }

  /// Adds a scenario of `form`, by default of the form that its [claim] section names or states.
  void add(const ClaimScenario& file, const ClaimForm* form = nullptr) {
    add(parse_scenario(file.text, file.file, sets()), form, "");
  }

  /// Adds a scenario file, which states claims of its own or has the [claim] section of another.
  void add_file(const std::string& file) {
    const ReadHooks hooks{.stop = session_.stop_hook()};
    add(read_scenario(file, sets(), hooks), nullptr, file);
  }

  Validation run() {
    std::size_t done = 0;
    for (ClaimRun& run : runs_) {
      if (session_.units && !session_.units->has_part(done)) {
        ++done;
        continue;
      }
      tell(done++, run.forms[0].section.name + ": " + run.forms[0].form.name);
      examine(std::move(run), "study " + std::to_string(done));
    }
    tell(runs_.size(), "");
    result_.outcome = session_.outcome(complete_, watch_);
    decide(pending_, result_);
    return std::move(result_);
  }

 private:
  struct StudiedForm {
    ClaimForm form;
    ClaimSection section;
    std::vector<Pending> pending = {};  ///< one for each verdict of the form

    bool decided() const {
      return std::ranges::all_of(pending, [](const Pending& one) { return one.decided; });
    }
  };

  /// One scenario with the forms that are examined in it.
  struct ClaimRun {
    Scenario scenario;
    ClaimSection section;  ///< of a built-in claim, or empty
    std::vector<StudiedForm> forms;
    std::string file;       ///< the user's, or empty
    std::string name = {};  ///< of the claim

    /// Of `headlab validate`.
    const std::string& argument() const { return file.empty() ? name : file; }
  };

  std::vector<std::string> sets() const {
    std::vector<std::string> all;
    if (options_.seed) all.push_back("run.seed=" + std::to_string(*options_.seed));
    if (options_.replicates)
      all.push_back("run.replicates=" + std::to_string(*options_.replicates));
    return all;
  }

  void add(Scenario scenario, const ClaimForm* form, const std::string& file) {
    ClaimRun run{.scenario = std::move(scenario), .section = {}, .forms = {}, .file = file};
    if (form == nullptr && states_claims(run.scenario)) {
      const Condition& first = run.scenario.conditions.front();
      if (first.replicates < smallest_scenario) {
        throw InvalidInput(source_location(first, "run.replicates") +
                           ": run.replicates: " + std::to_string(first.replicates) +
                           " are too few for a verdict (allowed: at least " +
                           std::to_string(smallest_scenario) + ")");
      }
      StatedClaims claims = read_stated_claims(run.scenario);
      run.name = claims.name;
      for (StatedClaim& stated : claims.all) {
        ClaimSection section{.name = claims.name,
                             .form = stated.form.name,
                             .expected = {stated.expected},
                             .margin = stated.margin};
        run.forms.push_back({std::move(stated.form), std::move(section)});
      }
    } else {
      run.section = read_claim_section(run.scenario);
      run.name = run.section.name;
      ClaimForm own =
          form != nullptr ? *form : find_form(find_claim(run.section.name), run.section.form);
      read_texts(run.section.table, "claim", own);
      run.forms.push_back({std::move(own), run.section});
    }
    runs_.push_back(std::move(run));
  }

  void tell(std::size_t done, const std::string& stage) const {
    if (!session_.report) return;
    session_.report({.stage = stage,
                     .done = done,
                     .total = runs_.size(),
                     .what = "studies",
                     .share = static_cast<double>(done) / static_cast<double>(runs_.size())});
  }

  /// Looks at one scenario until its verdicts are decided. What it simulates has the name `unit`.
  void examine(ClaimRun run, const std::string& unit) {
    const Stopwatch watch;
    const double factor = options_.full ? full_factor : 1;
    const auto replicates = static_cast<std::uint64_t>(
        factor * static_cast<double>(run.scenario.conditions.front().replicates));
    const std::uint64_t seed = run.scenario.conditions.front().seed;
    Session session = session_;
    session.unit = unit;
    Experiment experiment(std::move(run.scenario), run.section, session, options_.substitutes);

    for (StudiedForm& one : run.forms) {
      one.pending.resize(one.section.expected.size());
      for (std::size_t i = 0; i < one.pending.size(); ++i) {
        VerdictRow& row = one.pending[i].row;
        row = blank_row(experiment, one.section, one.form);
        row.expected = one.section.expected[i];
        if (!one.section.indices.empty()) row.index = one.section.indices[i];
        row.replay = replay(run.argument(), seed);
      }
    }
    try {
      for (std::size_t i = 0; i < look_shares.size(); ++i) {
        if (std::ranges::all_of(run.forms, &StudiedForm::decided)) break;
        if (session_.should_stop()) throw TimeIsUp();
        experiment.look_at(look_replicates(i, replicates));
        for (StudiedForm& one : run.forms) {
          if (!one.decided()) look_at_form(one, experiment, i + 1 == look_shares.size());
        }
      }
    } catch (const TimeIsUp&) {
      complete_ = false;
    }
    for (StudiedForm& one : run.forms) {
      for (Pending& pending : one.pending) {
        pending.row.seconds = watch.seconds();
        describe_setting(experiment, conditions_of(pending.comparisons, experiment), pending.row);
        for (auto& [number, counterexample] : pending.counterexamples) {
          counterexample.replay = replay_of(counterexample, run.file);
        }
        pending_.push_back(std::move(pending));
      }
    }
  }

  void look_at_form(StudiedForm& one, Experiment& experiment, bool last) {
    try {
      std::vector<Finding> findings = one.form.examine(experiment);
      if (findings.size() != one.pending.size()) {
        throw std::logic_error("claim " + one.section.name + ", form " + one.form.name + ": " +
                               std::to_string(findings.size()) + " findings for " +
                               std::to_string(one.pending.size()) + " expected verdicts");
      }
      for (std::size_t f = 0; f < findings.size(); ++f) {
        look(one.pending[f], std::move(findings[f]), experiment.replicates(), last);
      }
    } catch (const ClosedFormDeclines& error) {
      for (Pending& pending : one.pending) {
        pending.row.verdict = Verdict::limited_by_theory;
        pending.row.note = error.what();
        pending.row.complete = true;
        pending.decided = true;
        pending.comparisons.clear();
        pending.p_values.clear();
      }
    }
  }

  /// Command for a counterexample whose scenario is the user's file.
  std::string replay_of(const Counterexample& counterexample, const std::string& file) const {
    if (file.empty()) return "";
    std::string command = "headlab run " + shell_word(file) + " --seed " +
                          std::to_string(counterexample.seed) + " --replicates " +
                          std::to_string(counterexample.replicates);
    if (session_.backend.name() != "auto") command += " --backend " + session_.backend.name();
    return command;
  }

  std::string replay(const std::string& argument, std::uint64_t seed) const {
    std::string command = "headlab validate " + shell_word(argument);
    if (options_.full) command += " --level full";
    if (session_.backend.name() != "auto") command += " --backend " + session_.backend.name();
    if (options_.seed) command += " --seed " + std::to_string(seed);
    if (options_.replicates) command += " --replicates " + std::to_string(*options_.replicates);
    return command;
  }

  const Session& session_;
  const ValidateOptions& options_;
  const Stopwatch watch_;
  std::vector<ClaimRun> runs_;
  std::vector<Pending> pending_;
  bool complete_ = true;
  Validation result_;
};

}  // namespace

const char* verdict_text(Verdict verdict) {
  return word_of<Verdict::identity>(verdict, "supported", "refuted", "unresolved",
                                    "limited by theory", "identity");
}

bool names_scenario(const std::string& claim) {
  return claim.find('/') != std::string::npos || claim.ends_with(".toml");
}

Validation validate(const std::vector<std::string>& names, const Session& session,
                    const ValidateOptions& options) {
  for (const std::string& name : names) {
    if (!names_scenario(name)) find_claim(name);
  }
  Validator validator(session, options);
  // A file belongs to a form of a claim in the program, or states forms of its own.
  struct Place {
    std::string claim;
    std::string form;  ///< empty: its own
  };
  std::vector<Place> places;
  for (const ClaimScenario& file : claim_scenarios()) {
    const Scenario scenario = parse_scenario(file.text, file.file);
    if (states_claims(scenario)) {
      places.push_back({read_stated_claims(scenario).name, ""});
    } else {
      const ClaimSection section = read_claim_section(scenario);
      places.push_back({section.name, section.form});
    }
  }
  const auto add_files = [&](const std::string& claim, const std::string& form) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i].claim == claim && places[i].form == form) validator.add(claim_scenarios()[i]);
    }
  };
  for (const Claim& claim : claims()) {
    if (!names.empty() && std::find(names.begin(), names.end(), claim.name) == names.end())
      continue;
    for (const ClaimForm& form : claim.forms) {
      if (form.examine) add_files(claim.name, form.name);
    }
    add_files(claim.name, "");
  }
  for (const std::string& name : names) {
    if (names_scenario(name)) validator.add_file(name);
  }
  return validator.run();
}

Validation validate_scenario(const std::string& text, const Session& session,
                             const ValidateOptions& options) {
  Validator validator(session, options);
  validator.add({"scenario", text.c_str()});
  return validator.run();
}

Validation validate_form(const ClaimForm& form, const std::string& text, const Session& session,
                         const ValidateOptions& options) {
  Validator validator(session, options);
  validator.add({"scenario", text.c_str()}, &form);
  return validator.run();
}

std::string verdicts_json(const Validation& validation, const Provenance& program) {
  return json_text(MadeDocument{MadeBy{program, validation.machine},
                                [&](auto& visit) { validation.fields(visit); }});
}

}  // namespace headlab
