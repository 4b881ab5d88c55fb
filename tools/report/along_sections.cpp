// SPDX-License-Identifier: Apache-2.0
/// \file Texts of a report on a figure along a swept key.
#include <cmath>
#include <set>

#include "tools/cli/figure_text.h"
#include "tools/report/curves_figure.h"
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

/// Whether each curve says of which scenario it is.
bool scenario_is_of_curves(const Value& document) {
  const Value::Array& curves = items_of(member(document, "curves"));
  return !curves.empty() && member(curves.front(), "parameters").is<Value::Members>();
}

}  // namespace

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
  const bool over_sizes = text_of(member(document, "over_key")) == "data.n";
  const std::string at = over_sizes ? "n" : "\"" + over + "\"";
  std::vector<Section> all = {
      {"Aims",
       paragraph("How does the " + figure_words(figure) + " change along " + over + choice + "?")},
      {"Data-generating mechanisms",
       scenario_html(document, sizes) +
           paragraph((scenario_is_of_curves(document)
                          ? std::string("Every condition was ")
                          : std::string("Laws and values are those of the first condition; every "
                                        "condition was ")) +
                     "simulated with the same random numbers.")},
      {"Estimands",
       element("p", "The slope " + mathml("s") + " of " +
                        mathml("log \"" + figure_words(figure) + "\" = c + s log " + at) +
                        ", with a level " + mathml("c") +
                        ", by least squares without weights over the points of a curve; the lowest "
                        "of the points; and where two curves cross.") +
           "\n"},
      {"Methods",
       heads_html(document, {.width = has_choice ? "the " + key_in_words(document, "min_over_key") +
                                                       " of the least " + figure_words(figure)
                                                 : "",
                             .replicates = words_of(member(
                                 member(member(document, "parameters"), "run"), "replicates"))}) +
           paragraph(
               "What the conditions have in common cancels in the jackknife over their common "
               "training sets. Two curves are said to cross between two values at which the sign "
               "of their difference is known, all of these with probability 95 % at least.")},
      {"Performance measures",
       paragraph("Every number has its Monte Carlo standard error (MCSE). The points that may be "
                 "lowest hold the lowest of them with probability 95 % at least." +
                 std::string(has_choice ? " Standard errors are those of the value chosen, and do "
                                          "not cover the choice."
                                        : ""))}};
  add_symbols(symbols_of_regression(), all);
  return all;
}

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
  if (!crossings.rows.empty()) {
    all.push_back({"Crossings", table_element(crossings)});
  } else if (items_of(member(document, "curves")).size() > 1) {
    all.push_back({"Crossings", paragraph("No two curves are known to cross.")});
  }
  return all;
}

}  // namespace headlab::tools
