// SPDX-License-Identifier: Apache-2.0
/// \file Texts of reports on allocations and on maps of the scaling law.
#include <algorithm>
#include <cmath>
#include <set>

#include "tools/cli/figure_text.h"
#include "tools/report/key_words.h"
#include "tools/report/kinds_of_sections.h"
#include "tools/report/mathml.h"
#include "tools/report/scale.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/sections.h"
#include "tools/report/symbols.h"

namespace headlab::tools {
namespace {

/// The bandwidth or temperature of an allocation by a rule, as docs/allocation.md has it.
std::string width_by_rule(const std::string& rule) {
  if (rule == "fixed") return "that of the scenario for every $d_k$";
  if (rule == "sqrt_dim") {
    return "temperature $sqrt{d_k}$, of a Gaussian kernel a bandwidth b with $b^2 = sqrt{d_k}$";
  }
  if (rule == "rate") return "bandwidth $b = n^{-1/(4 + d_k)}$";
  if (rule == "tuned") return "that of the least error of each allocation, from a pilot study";
  return "by rule " + rule;
}

/// "1024", "256 to 1024": training sets of some records; empty where none has any.
std::string replicates_of(const std::vector<const Value*>& records) {
  double least = HUGE_VAL, most = 0;
  for (const Value* one : records) {
    const double replicates = number_of(member(*one, "replicates"));
    if (!std::isfinite(replicates)) continue;
    least = std::min(least, replicates);
    most = std::max(most, replicates);
  }
  if (most <= 0) return "";
  return axis_number(least) + (least < most ? " to " + axis_number(most) : "");
}

}  // namespace

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
  std::vector<const Value*> allocations;
  const auto add_allocations = [&](const Value& one) {
    for (const Value& each : items_of(member(one, "allocations"))) allocations.push_back(&each);
  };
  std::ranges::for_each(studies, add_allocations);
  if (studies.empty()) add_allocations(document);
  const std::string all_rules = text_of(member(document, "rule"));
  const HeadsShown heads = {.count = "those of the allocations",
                            .dim = "those of the allocations",
                            .width = width_by_rule(rule.empty() ? all_rules : rule),
                            .replicates = replicates_of(allocations)};
  std::vector<Section> all = {
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
       heads_html(document, heads) +
           (from == "theory"
                ? element("p",
                          with_formulas("Allocations have $⌊D / d_k⌋$ heads; the growth of the "
                                        "best dimension is that of $D / d_k$ heads, without "
                                        "rounding.")) +
                      "\n"
                : "") +
           paragraph(
               from.empty()
                   ? "Candidates are screened by paired differences (Nelson, Swann, Goldsman and "
                     "Song 2001)."
                   : "Errors are closed forms (" + in_words(from) + ").")},
      {"Performance measures",
       paragraph(from.empty() ? "The set that may be best contains the best with probability " +
                                    percent_text(1 - number_of(member(study, "alpha"))) +
                                    " at least. The number after ± is the Monte Carlo standard "
                                    "error (MCSE)."
                              : "Closed forms have no Monte Carlo error.")}};
  add_symbols(symbols_of_regression(), all);
  return all;
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
  std::vector<const Value*> cells;
  std::vector<std::string> dims, widths;
  const auto add_new = [](std::vector<std::string>& texts, const std::string& text) {
    if (std::ranges::count(texts, text) == 0) texts.push_back(text);
  };
  for (const Value& cell : items_of(member(source.document, "cells"))) {
    cells.push_back(&cell);
    for (const Value& dim : items_of(member(cell, "dims"))) {
      add_new(dims, axis_number(number_of(dim)));
    }
    const std::string rule = text_of(member(cell, "rule"));
    if (!rule.empty()) add_new(widths, width_by_rule(rule));
  }
  const HeadsShown heads = {.count = "as many as the budget $D$ allows",
                            .dim = first_of(dims),
                            .width = first_of(widths, "; or "),
                            .replicates = replicates_of(cells)};
  std::vector<Section> all = {
      {"Aims", paragraph("Where does the best dimension of a head grow with n?")},
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
       heads_html(source.document, heads) +
           element("p", "Fits of " + mathml("d_k^* = c") + ", " + mathml("d_k^* = c + s log n") +
                            " and " + mathml("d_k^* = c n^γ") +
                            " with a level c, a slope s and an exponent γ, by generalised least "
                            "squares, over resampled blocks.") +
           "\n"},
      {"Performance measures",
       element(
           "p",
           with_formulas(
               "The best dimension is said to rise or fall if it does so from the first $n$ to the "
               "last in 99.5 % of the resampled blocks. After “rises” stand the forms that fit, "
               "log "
               "for $c + s log n$ and power for $c n^γ$, and nothing where neither is told from a "
               "constant. “One dimension a head” and “full dimension”: $d_k = 1$, or the largest, "
               "is best at every $n$. Exponents have 95 % intervals; they use the $n$ whose best "
               "dimension lies between the least and the largest, and need at least four of them. "
               "They are another test than that of the trend, and may hold 0 where it rises.")) +
           "\n"}};
  add_symbols(symbols_of_regression(), all);
  return all;
}

}  // namespace headlab::tools
