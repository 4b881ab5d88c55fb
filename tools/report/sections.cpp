// SPDX-License-Identifier: Apache-2.0
#include "tools/report/sections.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "tools/cli/figure_text.h"
#include "tools/report/curves_figure.h"
#include "tools/report/figure.h"
#include "tools/report/mathml.h"
#include "tools/report/scale.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/slopes.h"
#include "tools/report/sweep.h"

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
       paragraph("A comparison is of two numbers a and b: two figures, or a figure and its closed "
                 "form or another number. It estimates their difference, the effect. One that is "
                 "relative is divided by the number named. The margin is how far from the claim "
                 "still counts as holding.") +
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
                                   " rejects one of them at that family-wise level."))},
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
    std::string body = element("summary", prose(verdict_name(verdict) + in_scenario(scenario) +
                                                ": " + outcome_text(verdict)));
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

// Allocations, maps, heads.

std::vector<Section> allocation_sections(const Source& source) {
  const Value& document = source.document;
  const Value::Array& studies = items_of(member(document, "studies"));
  const Value& study = studies.empty() ? document : studies.front();
  const std::string rule = text_of(member(study, "rule"));
  const std::string from = text_of(member(document, "source"));
  std::string sizes;
  std::set<double> seen;
  const auto add = [&](const Value& one) {
    const double n = number_of(member(one, "n"));
    if (seen.insert(n).second) sizes += (sizes.empty() ? "" : ", ") + axis_number(n);
  };
  std::ranges::for_each(studies, add);
  if (studies.empty()) add(document);
  return {
      {"Aims",
       element("p", "How should a budget of " + mathml("D") + " dimensions be divided among " +
                        mathml("H") + " heads of dimension " + mathml("d_k") + ", " +
                        mathml("H d_k ≤ D") + ", so that the mean squared error is smallest?") +
           "\n"},
      {"Data-generating mechanisms",
       scenario_html(document, sizes) +
           (from.empty() ? paragraph("All allocations are simulated on the same training sets.")
                         : "")},
      {"Estimands", element("p", mathml("MSE = E(f(x) - m(x))^2") +
                                     " of every allocation, averaged over the queries") +
                        "\n"},
      {"Methods",
       paragraph(from.empty()
                     ? "Candidates are screened by paired differences (Nelson, Swann, Goldsman and "
                       "Song 2001)" +
                           (rule.empty() ? std::string(".")
                                         : ", with bandwidths by rule \"" + rule + "\".")
                     : "Errors are closed forms (" + in_words(from) + ").")},
      {"Performance measures",
       paragraph(from.empty() ? "The set that may be best contains the best with probability " +
                                    percent_text(1 - number_of(member(study, "alpha"))) + "."
                              : "Closed forms have no Monte Carlo error.")}};
}

std::vector<Section> map_sections(const Source& source) {
  std::string sizes;
  for (const Value& n : items_of(member(source.document, "n"))) {
    sizes += (sizes.empty() ? "" : ", ") + axis_number(number_of(n));
  }
  std::string varied;
  for (const auto& [key, values] : varied_settings(items_of(member(source.document, "cells")))) {
    varied += element("li", prose(key + ": " + values));
  }
  return {{"Aims", paragraph("Where does the best dimension of a head grow with n?")},
          {"Data-generating mechanisms",
           scenario_html(source.document, sizes) +
               (varied.empty() ? ""
                               : paragraph("This is the first setting. The others differ in:") +
                                     element("ul", varied) + "\n")},
          {"Estimands",
           element("p", "The best dimension " + mathml("d_k^*(n) = \"argmin\"_{d_k} MSE(d_k, n)") +
                            ", interpolated between whole ones.") +
               "\n"},
          {"Methods",
           element("p", "Fits of " + mathml("d_k^* = c") + ", " + mathml("d_k^* = c + s log n") +
                            " and " + mathml("d_k^* = c n^p") +
                            " by generalised least squares, over resampled blocks.") +
               "\n"},
          {"Performance measures",
           paragraph(
               "The best dimension is said to rise or fall if it does so from the first n to "
               "the last in 99.5 % of the resampled blocks. Exponents have 95 % intervals; they "
               "use the n whose best dimension lies between the least and the largest, and need at "
               "least four of them.")}};
}

std::vector<Section> head_sections(const Source& source) {
  const Value& document = source.document;
  DefinitionList indices;
  const Value::Array& layers = items_of(member(document, "layers"));
  for (const auto& [name, formula] :
       {std::pair("chordal", "1 - \"mean\" frac{1}{k} sum_j cos^2 t_j"),
        std::pair("spectral", "frac{e^E - k}{min(H k, d) - k}"),
        std::pair("overlap", "1 - \"mean\" prod_j (1 + frac{sin^2 t_j}{b^2 (2 + b^2)})^{-1/2}"),
        std::pair("qk", "1 - \"mean\" prod_j (1 + frac{sin^2 t_j}{t^2})^{-1}")}) {
    const char* const index = name;
    const bool has = std::ranges::any_of(layers, [&](const Value& layer) {
      return std::isfinite(number_of(member(member(member(layer, "indices"), index), "value")));
    });
    const std::string words = std::string(name) == "spectral"
                                  ? " with E the entropy of the eigenvalues of the mean projection "
                                    "over k"
                                  : "";
    if (has) indices.add(name, mathml(formula) + words);
  }
  return {
      {"Aims", paragraph("How diverse are the heads of the model, compared with random heads of "
                         "the same shape?")},
      {"Data-generating mechanisms",
       paragraph("Heads of " + text_of(member(document, "file")) + ", dimension of the design " +
                 axis_number(number_of(member(document, "d"))) + "; " +
                 axis_number(number_of(member(document, "random_sets"))) +
                 " sets of random heads.")},
      {"Estimands",
       paragraph("Diversity indices of each layer, 0 for heads on one subspace, from the principal "
                 "angles t of pairs of heads; means are over pairs.") +
           indices.html()},
      {"Performance measures",
       element(
           "p",
           mathml("z = frac{\"index\u00a0\" - \"\u00a0mean over random heads\"}{\"sd over random "
                  "heads\"}")) +
           "\n"}};
}

std::vector<Section> measured_sections(const Source& source) {
  const Value::Array& layers = items_of(member(source.document, "layers"));
  std::string text;
  for (const Value& layer : layers) {
    const auto number = [&](const char* name) {
      return axis_number(number_of(member(layer, name)));
    };
    const auto some = [&](const char* name, const std::string& noun) {
      return counted(static_cast<std::uint64_t>(std::max(number_of(member(layer, name)), 0.0)),
                     noun);
    };
    text += paragraph("Layer " + number("layer") + ": " + some("heads", "head") + ", " +
                      some("sequences", "sequence") + " of " + some("documents", "document") +
                      ", " + some("tokens", "token") + ".");
  }
  return {
      {"Aims", paragraph("What does each head of a trained model do to the output of its layer on "
                         "text?")},
      {"Data-generating mechanisms",
       paragraph("Attention layers of " + text_of(member(source.document, "file")) + ".") + text},
      {"Estimands",
       paragraph("Error of the layer's output with the head replaced by its mean, and without it "
                 "when the output maps of the others are fitted again, on other documents.")},
      {"Performance measures",
       paragraph("Standard errors of the jackknife that leaves out one document.")}};
}

std::string key_in_words(const Value& document, const char* key) {
  return axis_title(text_of(member(document, key)));
}

std::vector<Section> curves_sections(const Source& source) {
  const Value& document = source.document;
  const std::string figure = text_of(member(document, "figure"));
  const std::string over = key_in_words(document, "over_key");
  const bool has_choice = document.find("min_over") != nullptr;
  std::string sizes;
  std::set<double> seen;
  for (const Value& curve : items_of(member(document, "curves"))) {
    for (const Value& point : items_of(member(curve, "points"))) {
      const double x = number_of(member(point, "x"));
      if (text_of(member(document, "over_key")) != "data.n" || !seen.insert(x).second) continue;
      sizes += (sizes.empty() ? "" : ", ") + axis_number(x);
    }
  }
  if (sizes.empty()) {
    sizes = prose(words_of(member(member(member(document, "parameters"), "data"), "n")));
  }
  const std::string choice =
      has_choice ? ", each at the " + key_in_words(document, "min_over_key") + " where it is least"
                 : "";
  return {
      {"Aims",
       paragraph("How does the " + figure_words(figure) + " change along " + over + choice + "?")},
      {"Data-generating mechanisms",
       scenario_html(document, sizes) +
           paragraph("Laws and values are those of the first condition; every condition was "
                     "simulated on the same training sets.")},
      {"Estimands",
       element("p", "The slope " + mathml("s") + " of " +
                        mathml("log \"" + figure_words(figure) + "\" = c + s log x") +
                        ", by least squares without weights over the points of a curve; the lowest "
                        "of the points; and where two curves cross.") +
           "\n"},
      {"Methods",
       paragraph("What the conditions have in common cancels in the jackknife over their common "
                 "training sets. Two curves are said to cross between two values at which the sign "
                 "of their difference is known, all of these with probability 95 % at least.")},
      {"Performance measures",
       paragraph("Every number has its Monte Carlo standard error (MCSE). The points that may be "
                 "lowest hold the lowest of them with probability 95 % at least." +
                 std::string(has_choice ? " Standard errors are those of the value chosen, and do "
                                          "not cover the choice."
                                        : ""))}};
}

/// Slopes with their intervals, and crossings.
std::vector<Section> curves_results(const Source& source) {
  const Value& document = source.document;
  Table slopes{.headings = {"curve", "slope", "95 % interval"}};
  for (const Value& curve : items_of(member(document, "curves"))) {
    const Estimate slope = estimate_of(member(curve, "slope"));
    if (!std::isfinite(slope.value)) continue;
    const auto number = [&](const char* name) { return number_of(member(curve, name)); };
    slopes.rows.push_back(slope_row(text_of(member(curve, "name")),
                                    {slope, {number("slope_low"), number("slope_high")}}));
  }
  Table crossings{.headings = {"curves", "between", "and", "at about"}};
  for (const Value& one : items_of(member(document, "crossings"))) {
    const auto number = [&](const char* name) { return axis_number(number_of(member(one, name))); };
    crossings.rows.push_back({text_of(member(one, "a")) + " and " + text_of(member(one, "b")),
                              number("low"), number("high"),
                              shown_number(number_of(member(one, "at")))});
  }
  std::vector<Section> all;
  if (!slopes.rows.empty()) all.push_back({"Slopes", table_element(slopes)});
  if (!crossings.rows.empty()) all.push_back({"Crossings", table_element(crossings)});
  return all;
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
