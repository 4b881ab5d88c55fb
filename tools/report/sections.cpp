// SPDX-License-Identifier: Apache-2.0
#include "tools/report/sections.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/kinds_of_sections.h"
#include "tools/report/mathml.h"
#include "tools/report/scale.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/slopes.h"
#include "tools/report/sweep.h"
#include "tools/report/symbols.h"

namespace headlab::tools {
namespace {

constexpr std::size_t longest_title = 160;  ///< characters of a scenario's name

// Verdicts.

std::vector<Section> verdict_sections(const Source& source) {
  const Value& document = source.document;
  std::set<std::string> claims, scenarios;
  for (const Value& verdict : items_of(member(document, "claims"))) {
    claims.insert(text_of(member(verdict, "claim")));
    scenarios.insert(text_of(member(verdict, "scenario")));
  }
  std::string names, files;
  for (const std::string& claim : claims) names += (names.empty() ? "" : ", ") + claim;
  const std::string question = claims.size() == 1
                                   ? "In which readings does this claim hold: "
                                   : "Which of these claims hold, and in which readings: ";
  const double comparisons = number_of(member(document, "comparisons"));
  double of_verdicts = 0;
  for (const Value& verdict : items_of(member(document, "claims"))) {
    of_verdicts += number_of(member(verdict, "comparisons"));
  }
  const std::string apart =
      of_verdicts > comparisons
          ? " (without the " + axis_number(of_verdicts - comparisons) + " of identities)"
          : "";
  for (const std::string& file : scenarios) {
    if (!file.empty()) files += element("li", code_element(file));
  }
  return {
      {"Aims", paragraph(question + names + "?")},
      {"Data-generating mechanisms",
       paragraph("Each verdict is of the conditions of one scenario, which share their training "
                 "sets.") +
           (files.empty() ? ""
                          : element("details", element("summary", "The scenarios") +
                                                   element("ul", {{"class", "files"}}, files)))},
      {"Estimands",
       paragraph(
           "A comparison is of two numbers a and b: two figures, or a figure and its closed "
           "form or another number. It estimates their difference, the effect. One that is "
           "relative is divided by the number named. The margin is how far from the claim "
           "still counts as holding. In brackets stand the kernel, \"signal\" where the "
           "regression function is not 0 and \"noise alone\" where it is, and stages of the "
           "heads. In the words of claims on regression H heads of dimension d_k have biases B, "
           "variances V, covariances C and correlations rho = C/V, over n points with noise of "
           "variance s2; letters of a single claim are those of its source.") +
           element("ul",
                   element("li", "a equal to b: " + mathml("\"effect\" = a - b") + ", claimed is " +
                                     mathml("|\"effect\"| ≤ \"margin\"")) +
                       element("li", "a less than b: " + mathml("\"effect\" = b - a") +
                                         ", claimed is " + mathml("\"effect\" ≥ - \"margin\""))) +
           "\n"},
      {"Methods",
       paragraph(
           "A claim is supported if each of its comparisons lies inside its margin at level " +
           shown_number(number_of(member(document, "alpha"))) +
           " (intersection-union), and refuted if " +
           (comparisons == 1 ? "the only comparison of the call is rejected at that level."
                             : "Holm's procedure over all " + axis_number(comparisons) +
                                   " comparisons of the call" + apart +
                                   " rejects one of them at that family-wise level.") +
           " An identity holds by algebra; only rounding is at stake.")},
      {"Performance measures",
       paragraph("Effects have Monte Carlo standard errors (MCSE); plots show both in units of the "
                 "margin. The z of a counterexample is the difference of its two figures over the "
                 "MCSE of that difference.")}};
}

/// Verdicts one by one.
std::string verdict_list_html(const Source& source) {
  std::string text;
  const Value::Array& verdicts = items_of(member(source.document, "claims"));
  const std::vector<std::string> scenarios = scenarios_that_tell_apart(verdicts, verdict_name);
  for (const Value& verdict : verdicts) {
    const std::string& scenario = scenarios[static_cast<std::size_t>(&verdict - verdicts.data())];
    // "identity: ...: identity" would say one word of two things.
    const std::string outcome = outcome_text(verdict);
    const bool is_name = outcome == "identity" && outcome == text_of(member(verdict, "claim"));
    std::string body = element("summary", prose(verdict_name(verdict) + in_scenario(scenario) +
                                                ": " + (is_name ? "true by algebra" : outcome)));
    DefinitionList list;
    const auto add = [&](const char* name, const std::string& words) {
      list.add(name, prose(words));
    };
    add("claimed", text_of(member(verdict, "statement")));
    add("whose claim", text_of(member(verdict, "origin")));
    add("assumes", text_of(member(verdict, "assumptions")));
    add("would be refuted by", text_of(member(verdict, "refuted_by")));
    const bool is_refuted = text_of(member(verdict, "verdict")) == "refuted";
    add(is_refuted ? "decided by" : "nearest to failing", decisive_text(verdict));
    const double needed = number_of(member(verdict, "replicates_needed"));
    if (std::isfinite(needed))
      add("replicates that would decide", "about " + count_text(needed, 4));
    add("open because of", text_of(member(verdict, "open")));
    add("counterexample", counterexample_text(verdict));
    add("seen as well", text_of(member(verdict, "note")));
    const std::string replay = text_of(member(verdict, "replay"));
    if (!replay.empty()) list.add("command that shows it", code_element(replay));
    text += element("details", body + list.html()) + "\n";
  }
  return text;
}

}  // namespace

std::string source_title(const Source& source) {
  if (source.kind == SourceKind::run || source.kind == SourceKind::theory) {
    for (const Value& condition : source.shown_conditions()) {
      const std::string name = text_of(parameter(condition, {"scenario", "name"}));
      if (!name.empty()) return shortened(name, longest_title);
    }
    return "Simulation";
  }
  switch (source.kind) {
    case SourceKind::verdicts:
      return "Claims and verdicts";
    case SourceKind::allocation:
      return "How many heads of what dimension";
    case SourceKind::map:
      return "Map of the scaling law";
    case SourceKind::measured:
      return "Heads on text";
    case SourceKind::curves:
      return shortened("Along " + key_in_words(source.document, "over_key") + ": " +
                           figure_words(text_of(member(source.document, "figure"))),
                       longest_title);
    default:
      return "Diversity of heads";
  }
}

std::vector<Section> sections_before_figures(const Source& source) {
  switch (source.kind) {
    case SourceKind::verdicts:
      return verdict_sections(source);
    case SourceKind::allocation:
      return allocation_sections(source);
    case SourceKind::map:
      return map_sections(source);
    case SourceKind::heads:
      return head_sections(source);
    case SourceKind::measured:
      return measured_sections(source);
    case SourceKind::curves:
      return curves_sections(source);
    default:
      return source.is_study_of_depth() ? depth_sections(source) : run_sections(source);
  }
}

std::vector<Section> sections_behind_figures(const Source& source) {
  if (source.kind == SourceKind::verdicts) return {{"Verdicts", verdict_list_html(source)}};
  if (source.kind == SourceKind::curves) return curves_results(source);
  if (source.kind == SourceKind::measured) {
    std::string words;
    for (const Value& sentence : items_of(member(source.document, "words"))) {
      words += element("li", prose(text_of(sentence)));
    }
    if (words.empty()) return {};
    return {{"What may be said", element("ul", words) + "\n"}};
  }
  if (source.kind != SourceKind::run) return {};
  std::vector<Section> all;
  if (const std::string slopes = slopes_html(source.slopes); !slopes.empty()) {
    all.push_back({"Slopes in n", slopes});
  }
  if (const std::string compared = compared_html(source); !compared.empty()) {
    all.push_back({"Simulation and closed forms", compared});
  }
  return all;
}

}  // namespace headlab::tools
