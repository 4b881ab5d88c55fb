// SPDX-License-Identifier: Apache-2.0
/// \file Covariances between heads over training sets, averaged over the queries.
#include <algorithm>
#include <cmath>

#include "tools/report/figure.h"
#include "tools/report/heat_map.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_matrices = 4;
constexpr std::size_t max_whole_table = 12;  ///< heads of a matrix that the table has in full
constexpr std::size_t pairs_in_table = 20;
constexpr std::size_t max_variances = 32;  ///< heads of a matrix whose variances the table has

/// The mean over the queries that have a matrix; no heads where none has one.
HeadMatrix mean_covariance(const Value& condition, const std::string& title) {
  HeadMatrix mean;
  std::size_t count = 0;
  for (const Value& query : items_of(member(condition, "queries"))) {
    const HeadMatrix one = head_matrix(title, member(query, "head_covariance"));
    if (one.heads == 0 || (mean.heads > 0 && one.heads != mean.heads)) continue;
    if (mean.heads == 0) {
      mean = one;
      mean.errors = head_matrix("", member(query, "head_covariance_mcse")).values;
      if (mean.errors.size() != mean.values.size()) mean.errors.clear();
    } else {
      for (std::size_t i = 0; i < mean.values.size(); ++i) mean.values[i] += one.values[i];
    }
    ++count;
  }
  // Queries share their training sets: errors at each of them do not give the error of the mean.
  if (count > 1) mean.errors.clear();
  for (double& value : mean.values) value /= static_cast<double>(count);
  return mean;
}

void add_rows(Table& table, const HeadMatrix& matrix) {
  struct Entry {
    std::size_t h, l;
  };
  std::vector<Entry> entries;
  for (std::size_t h = 0; h < matrix.heads; ++h) {
    for (std::size_t l = h; l < matrix.heads; ++l) entries.push_back({h, l});
  }
  std::vector<Entry> variances;
  if (matrix.heads > max_whole_table) {
    std::erase_if(entries, [](const Entry& entry) { return entry.h == entry.l; });
    for (std::size_t h = 0; h < matrix.heads && matrix.heads <= max_variances; ++h) {
      variances.push_back({h, h});
    }
    std::ranges::stable_sort(entries, std::ranges::greater(), [&](const Entry& entry) {
      const double value = matrix.at(entry.h, entry.l);
      return std::isfinite(value) ? value : -HUGE_VAL;
    });
    if (entries.size() > pairs_in_table) {
      entries.erase(entries.begin() + pairs_in_table / 2, entries.end() - pairs_in_table / 2);
    }
    entries.insert(entries.begin(), variances.begin(), variances.end());
  }
  for (const auto& [h, l] : entries) {
    table.rows.push_back({matrix.title.empty() ? "the only condition" : matrix.title,
                          std::to_string(h), std::to_string(l),
                          estimate_text(matrix.estimate(h, l))});
  }
}

/// The largest and the smallest covariance of two heads, where they are apart.
std::string extremes_sentence(const HeadMatrix& matrix, const PairExtremes& extremes) {
  const auto& [h, l] = extremes.high;
  const auto& [g, m] = extremes.low;
  // Without its error a number has three digits.
  const auto number = [&](std::size_t a, std::size_t b) {
    const Estimate one = matrix.estimate(a, b);
    return std::isnan(one.mcse) ? measured_number(one.value, 3) : estimate_text(one);
  };
  const std::string highest = number(h, l), lowest = number(g, m);
  std::string text = matrix.title.empty() ? "" : "At " + matrix.title + ", ";
  if (highest == lowest) {
    const bool begins = text.empty();
    text += matrix.heads == 2 ? (begins ? "The" : "the") : (begins ? "Any" : "any");
    return text + " two heads have a covariance of " + highest + ".";
  }
  text += text.empty() ? "H" : "h";
  return text + "eads " + pair_text(extremes.high) + " have the largest covariance, " + highest +
         ", and heads " + pair_text(extremes.low) + " the smallest, " + lowest + ".";
}

}  // namespace

std::vector<Picture> head_covariance_figures(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  const Sweep sweep = sweep_of(conditions);
  std::vector<std::size_t> with_matrix;
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    for (const Value& query : items_of(member(conditions[c], "queries"))) {
      if (head_matrix("", member(query, "head_covariance")).heads > 1) {
        with_matrix.push_back(c);
        break;
      }
    }
  }
  std::vector<HeadMatrix> matrices;
  std::vector<std::size_t> shown;
  for (const std::size_t i : spread(with_matrix.size(), max_matrices)) {
    shown.push_back(with_matrix[i]);
  }
  const std::vector<std::string> texts = sweep.condition_texts(shown);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    matrices.push_back(mean_covariance(conditions[shown[i]], texts[i]));
  }
  if (matrices.empty()) return {};
  Table table{.caption = "Covariances of heads",
              .error = "MCSE",
              .headings = {"condition", "head", "other head", "covariance"}};
  bool cut = false, with_errors = true, with_variances = true;
  std::string finding;
  for (const HeadMatrix& matrix : matrices) {
    add_rows(table, matrix);
    with_errors = with_errors && !matrix.errors.empty();
    cut = cut || matrix.heads > max_whole_table;
    with_variances = with_variances && matrix.heads <= max_variances;
    const PairExtremes extremes = extremes_of(matrix);
    if (!extremes.found || (&matrix != &matrices.front() && &matrix != &matrices.back())) continue;
    finding += (finding.empty() ? "" : " ") + extremes_sentence(matrix, extremes);
  }
  if (finding.empty()) finding = "No covariance of two heads is known.";
  const bool single_heads = std::ranges::any_of(conditions, [](const Value& one) {
    return number_of(parameter(one, {"heads", "count"})) == 1;
  });
  const bool one_query = std::ranges::all_of(
      shown, [&](std::size_t c) { return items_of(member(conditions[c], "queries")).size() == 1; });
  return {{.title = "Covariance of the heads",
           .finding = finding,
           .draw =
               [=](double width) {
                 return draw_heat_maps({"covariance", "variances"}, matrices, width);
               },
           .table = std::move(table),
           .note = sentences(
               {one_query ? "At the only query; the diagonal holds the variances."
                          : "Averaged over the queries; the diagonal holds the variances.",
                !with_errors && source.kind == SourceKind::run
                    ? "summary.json has the MCSE at each query."
                    : "",
                sweep.shows_text(shown, source.conditions),
                single_heads ? "One head has no pairs." : "",
                cut ? "Of more than " + std::to_string(max_whole_table) + " heads the table has " +
                          (with_variances ? "the variances and " : "") +
                          "the ten largest and the ten smallest covariances" +
                          (with_variances ? "."
                                          : "; summary.json has the variances of more than " +
                                                std::to_string(max_variances) + " heads.")
                    : ""}),
           .max_rows = 120}};
}

}  // namespace headlab::tools
