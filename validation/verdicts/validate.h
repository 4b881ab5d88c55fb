// SPDX-License-Identifier: Apache-2.0
/// \file From claims to verdicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/provenance.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {

enum class Verdict { supported, refuted, unresolved, limited_by_theory, identity };

/// "supported", "refuted", "unresolved", "limited by theory", "identity".
const char* verdict_text(Verdict verdict);

/// Family-wise level of all verdicts of one invocation.
inline constexpr double verdict_alpha = 0.01;

/// In the place of a law that is not the same in all conditions.
inline constexpr const char* varies = "varies";

/// All claims, in the order in which they are validated.
const std::vector<Claim>& claims();

/// The claim called `name`; throws InvalidInput with the nearest name for one that does not exist.
const Claim& find_claim(const std::string& name);

/// The form of a claim called `form`, which no scenario states; throws InvalidInput.
const ClaimForm& find_form(const Claim& claim, const std::string& form);

/// One verdict with its evidence.
struct VerdictRow {
  std::string claim;
  std::string form;
  std::string index;       ///< empty where the form is about none
  bool depth = false;      ///< of a study of depth, which has no regression, signal and queries
  std::string kernel;      ///< law, or `varies`
  std::string regression;  ///< law of m, or `varies`
  bool signal = false;     ///< m is not zero in some condition
  int queries = 1;         ///< 0: the number varies
  /// Sequence and stages in force in some condition, or "8 layers"; empty: none.
  std::string stages;
  std::string statement;
  std::string assumptions;
  std::string refuted_by;
  std::string origin = {};  ///< empty where nobody is named
  std::string scenario;     ///< file
  double margin = 0;

  Verdict verdict = Verdict::unresolved;
  std::string expected;
  bool complete = false;  ///< all looks it needed were taken

  std::size_t comparisons = 0;
  Comparison decisive;                   ///< the one that came nearest to contradicting, or did
  std::vector<Comparison> effects = {};  ///< of every comparison, at the look that decided
  std::uint64_t replicates = 0;          ///< at the look that decided
  double replicates_needed =
      0;                  ///< estimated, of an unresolved one; infinite: at the margin's edge
  std::string open = {};  ///< why an unresolved one is, where more replicates need not decide it
  double seconds = 0;
  std::string note;
  std::optional<Counterexample> counterexample;
  std::string replay;

  /// False where the verdict is another than expected. One that time left open is no difference.
  bool as_expected() const {
    return expected.empty() || expected == verdict_text(verdict) ||
           (!complete && verdict == Verdict::unresolved);
  }

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("claim", claim, "the claim");
    visit("form", form, "form of the claim");
    visit("index", index.empty() ? std::nullopt : std::optional(index), "diversity index");
    visit("kernel", kernel, "law of the kernel, or \"varies\"");
    visit("regression", depth ? std::nullopt : std::optional(regression),
          "law of the regression, or \"varies\"");
    visit("signal", depth ? std::nullopt : std::optional(signal), "the regression is not zero");
    visit("stages", stages.empty() ? std::nullopt : std::optional(stages),
          "sequence and stages in force in some condition, or layers");
    visit("statement", statement, "what is claimed");
    visit("assumptions", assumptions, "what it is claimed under");
    visit("refuted_by", refuted_by, "what would refute it");
    visit("origin", origin.empty() ? std::nullopt : std::optional(origin), "whose claim it is");
    visit("verdict", verdict_text(verdict), "verdict");
    visit("expected", expected.empty() ? std::nullopt : std::optional(expected),
          "verdict that is expected");
    visit("complete", complete, "all looks it needed were taken");
    visit("alpha", verdict_alpha, "family-wise level");
    visit("comparisons", comparisons, "comparisons");
    visit("margin", margin, "what still counts as equal");
    visit("effect", comparisons > 0 ? std::optional(EffectFields{decisive}) : std::nullopt,
          "effect that decided, or came nearest to deciding");
    visit("effects", std::vector<ComparisonFields>(effects.begin(), effects.end()),
          "effects of all comparisons", {.item = "comparison"});
    visit("replicates", replicates, "training sets at the look that decided");
    visit("replicates_needed",
          verdict == Verdict::unresolved ? std::optional(replicates_needed) : std::nullopt,
          "training sets that would decide, estimated");
    visit("open", open.empty() ? std::nullopt : std::optional(open),
          "why it is open, where more replicates need not decide it");
    visit("note", note, "note");
    visit("certificate", counterexample, "counterexample");
    visit("scenario", scenario, "file of the scenario");
    visit("seconds", seconds, "wall time", {.unit = "s"});
    visit("replay", replay, "command that gives the same bits");
  }

 private:
  struct EffectFields {
    const Comparison& comparison;

    template <class Visitor>
    void fields(Visitor& visit) const {
      comparison.effect.fields(visit);
      visit("of", comparison.what, "what the effect is of");
      visit("zone", comparison.statement == Statement::equal ? "two-sided" : "one-sided",
            "two-sided: |effect| <= margin is claimed, one-sided: effect >= -margin");
      visit("replicates", comparison.replicates,
            "training sets behind the effect, 0: computed without simulation");
    }
  };

  struct ComparisonFields {
    ComparisonFields(const Comparison& one) : comparison(&one) {}  // NOLINT: made from a vector
    const Comparison* comparison;

    template <class Visitor>
    void fields(Visitor& visit) const {
      EffectFields{*comparison}.fields(visit);
      visit("margin", comparison->margin, "what still counts as equal");
      visit("observed", comparison->observed, "figure that is compared");
      visit("reference", comparison->expected, "what it is compared with");
    }
  };
};

struct ValidateOptions {
  bool full = false;                             ///< 100 times the replicates
  std::optional<std::uint64_t> seed = {};        ///< instead of the scenarios' own
  std::optional<std::uint64_t> replicates = {};  ///< instead of the scenarios' own
  Substitutes substitutes = {};
};

struct Validation {
  std::vector<VerdictRow> rows;
  std::size_t comparisons = 0;  ///< that Holm's procedure runs over
  Machine machine;
  Outcome outcome;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("complete", outcome.complete, "every verdict was decided");
    visit("alpha", verdict_alpha, "family-wise level");
    visit("comparisons", comparisons, "comparisons of all verdicts");
    visit("seconds", outcome.seconds, "wall time", {.unit = "s"});
    visit("claims", rows, "verdicts", {.item = "verdict"});
  }
};

/// True for the name of a scenario file: it has a '/' or ends in .toml.
bool names_scenario(const std::string& claim);

/// Examines the claims named, all built-in ones for an empty list, each with its scenarios; a name
/// may be that of a scenario file that states claims of its own (stated_claim.h). A
/// claim is supported if every comparison is at level alpha (intersection-union), and refuted if
/// Holm's procedure over all comparisons of this call rejects one of its own. Throws InvalidInput
/// for an unknown claim or too few replicates. Reports the studies done.
Validation validate(const std::vector<std::string>& names, const Session& session = {},
                    const ValidateOptions& options = {});

/// The same for one scenario text with a [claim] section, which tests plant errors in.
Validation validate_scenario(const std::string& text, const Session& session = {},
                             const ValidateOptions& options = {});

/// The same for a form that need not be one of a claim's.
Validation validate_form(const ClaimForm& form, const std::string& text,
                         const Session& session = {}, const ValidateOptions& options = {});

/// Verdicts for programs, one JSON object with every verdict and its evidence (docs/verdicts.md
/// says what each key means); NaN and infinity become null.
std::string verdicts_json(const Validation& validation, const Provenance& program);

}  // namespace headlab
