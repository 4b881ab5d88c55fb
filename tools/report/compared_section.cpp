// SPDX-License-Identifier: Apache-2.0
/// \file Simulation and closed forms side by side.
#include <algorithm>
#include <cmath>

#include "engine/moments/error_terms.h"
#include "engine/moments/estimates.h"
#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_conditions_in_table = 12;

/// A figure of a condition that a simulation and a closed form have.
struct ComparedNumber {
  std::string figure;  ///< in words
  Estimate simulated;
  double computed, remainder, z;
};

/// "covariance" of "covariance_term", as in other tables.
std::string label_of(const std::string& name) {
  const ErrorTerms<Estimate> terms;
  for (const auto& one : numbers_of(terms)) {
    if (one.name == name) return one.text.label;
  }
  return figure_words(name);
}

/// Those of the condition, then those of its heads with the largest |z|.
std::vector<ComparedNumber> compared_numbers(const Value& condition) {
  const Value& theory = member(condition, "theory");
  std::vector<ComparedNumber> all;
  const auto add = [&](const std::string& figure, const Value& simulated, const Value& computed,
                       const Value& z) {
    all.push_back({figure, estimate_of(simulated), number_of(member(computed, "value")),
                   number_of(member(computed, "remainder")), number_of(z)});
  };
  for (const auto& [name, location, z] : members_of(member(theory, "z"))) {
    add(label_of(name), member(condition, name.c_str()), member(theory, name.c_str()), z);
  }
  for (const Value& one : items_of(member(theory, "largest_z"))) {
    add("the " + text_of(member(one, "figure")), member(one, "simulated"), member(one, "computed"),
        member(one, "z"));
  }
  return all;
}

double largest_z(const std::vector<ComparedNumber>& numbers) {
  double largest = 0;
  for (const ComparedNumber& one : numbers) largest = std::fmax(largest, std::abs(one.z));
  return largest;
}

/// To the decimals of the simulation.
std::string computed_words(const ComparedNumber& one) {
  const std::string both = estimate_text({one.computed, one.simulated.mcse});
  return one.simulated.mcse > 0 ? both.substr(0, both.find(" ±")) : measured_number(one.computed);
}

/// Which heads and queries rows are of that name one of them.
std::string of_heads_text(const Value::Array& conditions) {
  const bool any = std::ranges::any_of(conditions, [](const Value& one) {
    return !items_of(member(member(one, "theory"), "largest_z")).empty();
  });
  if (!any) return "";
  return " A figure that names a head, or two of them, and a query is the one with the largest |z| "
         "of all heads and queries of its condition.";
}

}  // namespace

std::string compared_html(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  std::vector<std::vector<ComparedNumber>> all;  // [conditions]
  std::vector<double> bounds;                    // the largest |z| of each condition
  std::size_t count = 0, largest = 0;
  bool dominates = false;
  for (const Value& condition : conditions) {
    all.push_back(compared_numbers(condition));
    for (const ComparedNumber& one : all.back()) {
      count += std::isfinite(one.z) ? 1 : 0;
      dominates = dominates || (std::isfinite(one.z) && one.remainder > one.simulated.mcse);
    }
    bounds.push_back(largest_z(all.back()));
    if (bounds.back() > bounds[largest]) largest = bounds.size() - 1;
  }
  if (count == 0) return "";
  const Sweep sweep = sweep_of(conditions);
  const auto most = std::ranges::max_element(
      all[largest], {}, [](const ComparedNumber& one) { return std::fmax(std::abs(one.z), 0); });
  const std::string where = sweep.condition_text(largest);
  std::string html =
      paragraph("Simulation and closed forms were compared in " + counted(count, "figure") +
                (conditions.size() > 1 ? ", counted in each condition" : "") +
                ". The largest |z| is " + z_text(bounds[largest]) + " (" + most->figure +
                (where.empty() ? "" : "; " + where) + ")." + of_heads_text(conditions)) +
      paragraph(
          "z is the difference of simulation and closed form over √(MCSE² + remainder² + "
          "rounding²). The remainder is how far the closed form may be off by its next orders or, "
          "where it is exact, changes on refinement; none is below rounding. A figure has no z "
          "where its MCSE is 0 or says "
          "little, as that of bias² may." +
          std::string(dominates ? " Some remainders exceed the MCSE: z there says only that "
                                  "simulation and closed form agree within them."
                                : ""));
  // The conditions of the largest |z|, in their order.
  std::vector<double> sorted = bounds;
  std::ranges::sort(sorted, std::ranges::greater());
  const double least = sorted[std::min(max_conditions_in_table, sorted.size()) - 1];
  Table table{.caption = "Simulation and closed forms",
              .error = "MCSE",
              .headings = {"condition", "figure", "simulation", "closed form", "remainder", "z"}};
  std::size_t shown = 0;
  for (std::size_t c = 0; c < all.size() && shown < max_conditions_in_table; ++c) {
    if (bounds[c] < least) continue;
    ++shown;
    const std::string text = sweep.condition_text(c);
    for (const ComparedNumber& one : all[c]) {
      if (!std::isfinite(one.simulated.value) || !std::isfinite(one.computed)) continue;
      table.rows.push_back({text.empty() ? "the only condition" : text, one.figure,
                            estimate_text(one.simulated), computed_words(one),
                            one.remainder > 0 ? measured_number(one.remainder, 2) : "none",
                            with_minus_sign(fixed_number(one.z, 2))});
    }
  }
  if (table.rows.empty()) return html;
  const std::string some = shows_text(shown, all.size(), "conditions, those with the largest |z|.");
  return html + (some.empty() ? "" : element("p", {{"class", "note"}}, prose(some))) +
         element("details", element("summary", "Table of the comparison") + table_element(table));
}

}  // namespace headlab::tools
