// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/validate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "kernels/backends.h"
#include "kernels/parallel_for.h"
#include "validation/claims/claim_scenarios.h"
#include "validation/statistics/looks.h"

namespace headlab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double full_replicates = 100;
constexpr auto looks = static_cast<double>(look_shares.size());
/// Level at which a look stops for a refutation, before Holm's procedure can be run over all: as if
/// there were this many comparisons.
constexpr double presumed_comparisons = 1000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A verdict in the making.
struct Pending {
  VerdictRow row;
  std::vector<double> p_values;  ///< against each comparison, over all looks
  std::vector<Comparison> comparisons;
  bool identity = false;
  bool supported = false;
  bool decided = false;  ///< no further look will change it
};

/// The comparison that speaks most against the claim, relative to its margin and error; one that is
/// not a number before all others.
std::size_t most_decisive(const std::vector<Comparison>& comparisons) {
  std::size_t worst = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& c = comparisons[i];
    const double deviation =
        c.statement == Statement::equal ? std::abs(c.effect.value) : -c.effect.value;
    const double room = c.margin - c.theory_error - deviation;
    const double error = c.effect.mcse == 0 ? 1e-300 : c.effect.mcse;
    const double distance = room / error;
    if (std::isnan(distance)) return i;
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
  pending.row.certificate = finding.certificate;
  pending.row.replicates = replicates;
  pending.identity = finding.identity;
  pending.comparisons = std::move(finding.comparisons);
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
      if (row.note.empty()) row.note = "Time was up before its first look.";
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
    row.decisive = one.comparisons[row.verdict == Verdict::refuted && !one.identity
                                       ? strongest
                                       : most_decisive(one.comparisons)];
    if (row.verdict != Verdict::refuted) row.certificate.reset();
    if (row.verdict == Verdict::unresolved) {
      for (const Comparison& c : one.comparisons) {
        if (supports(c, verdict_alpha / looks)) continue;
        row.replicates_needed = std::max(
            row.replicates_needed, replicates_to_resolve(c, static_cast<double>(row.replicates),
                                                         verdict_alpha / looks, refute_alpha));
      }
    }
    result.rows.push_back(std::move(row));
  }
}

/// A row with everything that is known before anything is simulated.
VerdictRow blank_row(const Experiment& experiment, const ClaimForm& form) {
  VerdictRow row;
  row.claim = experiment.section().name;
  row.form = form.name;
  const auto name = [](const auto& law) { return std::string(law.name); };
  row.kernel = std::visit(name, experiment.scenario().kernel);
  row.regression = std::visit(name, experiment.scenario().regression);
  row.queries = experiment.plan().queries;
  row.signal = !std::holds_alternative<ZeroRegression>(experiment.scenario().regression);
  row.statement = form.statement;
  row.assumptions = form.assumptions;
  row.refuted_by = form.refuted_by;
  row.scenario = experiment.study().file;
  row.margin = experiment.margin();
  return row;
}

/// One call: its laboratory, its clock, and the verdicts so far.
class Validator {
 public:
  explicit Validator(const ValidateOptions& options) : options_(options) {
    if (options.replicates && *options.replicates < least_study) {
      throw Refused("--replicates " + std::to_string(*options.replicates) +
                    ": too few for a verdict (allowed: at least " + std::to_string(least_study) +
                    ")");
    }
    std::shared_ptr<const Backend> backend;
    try {
      backend = make_backend(options.backend);
    } catch (const std::invalid_argument& error) {
      throw Refused(error.what());
    }
    laboratory_ = {.backend = backend,
                   .threads = options.threads,
                   .stop = [this] { return stop(); },
                   .planted = options.planted,
                   .closed_forms = options.closed_forms};
    result_.backend = backend->name();
    result_.simd = backend->simd();
    result_.device = backend->device();
    result_.threads = backend->workers(thread_count(options.threads));
  }

  /// Adds a study of `form`, by default of the form that its [claim] section names.
  void add(const ClaimScenario& file, const ClaimForm* form = nullptr) {
    std::vector<std::string> sets;
    if (options_.seed) sets.push_back("run.seed=" + std::to_string(*options_.seed));
    if (options_.replicates) {
      sets.push_back("run.replicates=" + std::to_string(*options_.replicates));
    }
    Study study = parse_study(file.text, file.file, sets);
    if (form == nullptr) {
      const ClaimSection section = read_claim_section(study);
      form = &find_form(find_claim(section.name), section.form);
    }
    studies_.push_back({std::move(study), form});
  }

  Validation run() {
    for (std::size_t i = 0; i < studies_.size(); ++i) {
      const ClaimSection section = read_claim_section(studies_[i].study);
      tell(i, section.name, section.form);
      examine(std::move(studies_[i].study), section, *studies_[i].form);
    }
    tell(studies_.size(), "", "");
    decide(pending_, result_);
    result_.seconds = seconds_since(start_);
    result_.interrupted = options_.stop && options_.stop->load();
    return std::move(result_);
  }

 private:
  struct FormStudy {
    Study study;
    const ClaimForm* form;
  };

  bool stop() const {
    return (options_.stop && options_.stop->load()) ||
           (options_.max_seconds && seconds_since(start_) >= *options_.max_seconds);
  }

  void tell(std::size_t done, const std::string& claim, const std::string& form) const {
    if (!options_.progress) return;
    options_.progress({.done = done,
                       .total = studies_.size(),
                       .claim = claim,
                       .form = form,
                       .seconds = seconds_since(start_)});
  }

  /// Looks at one scenario until its verdicts are decided.
  void examine(Study study, const ClaimSection& section, const ClaimForm& form) {
    const auto began = Clock::now();
    const double factor = options_.full ? full_replicates : 1;
    const auto replicates = static_cast<std::uint64_t>(
        factor * static_cast<double>(study.conditions.front().replicates));
    const std::uint64_t seed = study.conditions.front().seed;
    Experiment experiment(std::move(study), laboratory_);

    std::vector<Pending> pending(section.expected.size());
    for (std::size_t i = 0; i < pending.size(); ++i) {
      pending[i].row = blank_row(experiment, form);
      pending[i].row.expected = section.expected[i];
      if (!section.indices.empty()) pending[i].row.index = section.indices[i];
      pending[i].row.replay = replay(section.name, seed);
    }
    auto all_decided = [&] {
      return std::all_of(pending.begin(), pending.end(),
                         [](const Pending& p) { return p.decided; });
    };
    try {
      for (std::size_t i = 0; i < look_shares.size() && !all_decided(); ++i) {
        if (stop()) throw TimeIsUp();
        experiment.look_at(look_replicates(i, replicates));
        std::vector<Finding> findings = form.examine(experiment);
        if (findings.size() != pending.size()) {
          throw std::logic_error("claim " + section.name + ", form " + section.form + ": " +
                                 std::to_string(findings.size()) + " findings for " +
                                 std::to_string(pending.size()) + " expected verdicts");
        }
        for (std::size_t f = 0; f < findings.size(); ++f) {
          look(pending[f], std::move(findings[f]), experiment.replicates(),
               i + 1 == look_shares.size());
        }
      }
    } catch (const TimeIsUp&) {
      result_.complete = false;
    } catch (const ClosedFormDeclines& error) {
      for (Pending& one : pending) {
        one.row.verdict = Verdict::limited_by_theory;
        one.row.note = error.what();
        one.row.complete = true;
        one.comparisons.clear();
        one.p_values.clear();
      }
    }
    for (Pending& one : pending) {
      one.row.seconds = seconds_since(began);
      pending_.push_back(std::move(one));
    }
  }

  std::string replay(const std::string& claim, std::uint64_t seed) const {
    std::string command = "headlab validate " + claim;
    if (options_.full) command += " --level full";
    if (options_.backend != "auto") command += " --backend " + options_.backend;
    if (options_.seed) command += " --seed " + std::to_string(seed);
    if (options_.replicates) command += " --replicates " + std::to_string(*options_.replicates);
    return command;
  }

  const ValidateOptions& options_;
  const Clock::time_point start_ = Clock::now();
  Laboratory laboratory_;
  std::vector<FormStudy> studies_;
  std::vector<Pending> pending_;
  Validation result_;
};

}  // namespace

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::supported:
      return "supported";
    case Verdict::refuted:
      return "refuted";
    case Verdict::unresolved:
      return "unresolved";
    case Verdict::limited_by_theory:
      return "limited by theory";
    case Verdict::identity:
      return "identity";
  }
  return "";
}

Validation validate(const std::vector<std::string>& names, const ValidateOptions& options) {
  for (const std::string& name : names) find_claim(name);
  Validator validator(options);
  for (const Claim& claim : claims()) {
    if (!names.empty() && std::find(names.begin(), names.end(), claim.name) == names.end())
      continue;
    for (const ClaimForm& form : claim.forms) {
      for (const ClaimScenario& file : claim_scenarios()) {
        const ClaimSection section = read_claim_section(parse_study(file.text, file.file));
        if (section.name == claim.name && section.form == form.name) validator.add(file);
      }
    }
  }
  return validator.run();
}

Validation validate_scenario(const std::string& text, const ValidateOptions& options) {
  Validator validator(options);
  validator.add({"scenario", text.c_str()});
  return validator.run();
}

Validation validate_form(const ClaimForm& form, const std::string& text,
                         const ValidateOptions& options) {
  Validator validator(options);
  validator.add({"scenario", text.c_str()}, &form);
  return validator.run();
}

}  // namespace headlab
