// SPDX-License-Identifier: Apache-2.0
/// \file Components of an ensemble's error, estimated or computed. Every file and table takes them
/// from the lists here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/files/fields.h"

namespace headlab {

/// A number from a closed form. The remainder is how far it may be off: for the first order by its
/// next orders, for exact forms by the change on refinement of the quadrature; NaN where there is
/// none.
struct Remainder {
  double value = std::numeric_limits<double>::quiet_NaN();
  double remainder = std::numeric_limits<double>::quiet_NaN();

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("value", value, "value");
    visit("remainder", remainder, "next orders, or change on refinement");
  }
};

struct Measure;  // engine/moments/measures.h
const std::string& name_of(const Measure& measure);
const std::string& formula_text(const Measure& measure);
/// In the order of the scenario.
using Measures = std::vector<std::shared_ptr<const Measure>>;

/// A figure that the scenario makes of others.
template <class Number>
struct Measured {
  std::shared_ptr<const Measure> of;
  Number number{};
  /// The largest standard error of what it divides by, as a share of that.
  double divisor_error = 0;
};

/// Components at one query x. A Number is an estimate with its standard error, a closed form with
/// its Remainder, or a Jackknifed, which can be calculated with.
template <class Number>
struct QueryErrorTerms {
  Number mse{};
  std::vector<Number> head_bias;        ///< [H], E f_h - m(x)
  std::vector<Number> head_covariance;  ///< [H][H], Cov(f_h, f_l); empty in aggregate mode

  template <class Visitor>
  void fields(Visitor& visit) const {
    const std::size_t heads = head_bias.size();
    visit("mse", mse, "mean squared error of the ensemble at a query", {.positive = true});
    visit("head_bias", shaped(head_bias), "E f_h - m(x)", {.axes = "head"});
    visit("head_covariance", shaped(head_covariance, {heads, heads}),
          "Cov(f_h, f_l) over training sets", {.axes = "head head_2"});
  }
};

/// Components of the error, averaged over the queries. With a_h the head weights, V_h variances and
/// C_hl covariances over training sets, mse = bias_squared + variance_term + covariance_term.
template <class Number>
struct ErrorTerms {
  Number mse{};
  Number bias_squared{};          ///< corrected by the variance of the mean; may be negative
  Number variance_term{};         ///< sum_h a_h^2 V_h
  Number covariance_term{};       ///< sum_{h != l} a_h a_l C_hl
  Number bias_squared_plugin{};   ///< (mean of f - m(x))^2, too large by the variance of the mean
  Number head_variance_mean{};    ///< mean of V_h
  Number head_covariance_mean{};  ///< mean of C_hl over pairs; NaN for H = 1
  Number output_correlation{};    ///< head_covariance_mean / head_variance_mean
  Number output_index{};          ///< 1 - output_correlation
  Number weights_index{};         ///< 1 - mean cos(w_h, w_l); conditional and pairwise only

  double mse_query_se = std::numeric_limits<double>::quiet_NaN();  ///< of mse over the queries

  std::vector<Measured<Number>> measures;
  std::vector<QueryErrorTerms<Number>> queries;

  /// \param queries_drawn the queries are a sample, so that mse_query_se says how far off they are
  template <class Visitor>
  void fields(Visitor& visit, bool queries_drawn = true) const {
    list(*this, visit, queries_drawn);
  }
  template <class Visitor>
  void fields(Visitor& visit, bool queries_drawn = true) {
    list(*this, visit, queries_drawn);
  }

  /// Diversity indices that need the error: of the output and of the weights.
  template <class Visitor>
  void index_fields(Visitor& visit) const {
    list_indices(*this, visit);
  }
  template <class Visitor>
  void index_fields(Visitor& visit) {
    list_indices(*this, visit);
  }

  template <class Terms, class Visitor>
  static void list(Terms& of, Visitor& visit, bool queries_drawn) {
    visit("mse", of.mse, "mean squared error of the ensemble, averaged over queries",
          {.role = TableRole::total, .label = "MSE", .positive = true});
    visit("mse_query_se", of.mse_query_se, "standard error of mse over the queries",
          {.part_of = "mse", .in_json = queries_drawn});
    visit("bias_squared", of.bias_squared, "squared bias, corrected for the variance of the mean",
          {.role = TableRole::term, .label = "bias²"});
    visit("variance_term", of.variance_term, "sum over heads of a_h^2 V_h",
          {.role = TableRole::term, .label = "variance", .positive = true});
    visit("covariance_term", of.covariance_term,
          "sum over pairs of different heads of a_h a_l C_hl",
          {.role = TableRole::term, .label = "covariance"});
    visit("bias_squared_plugin", of.bias_squared_plugin, "squared bias, not corrected");
    visit("head_variance_mean", of.head_variance_mean, "mean over heads of V_h",
          {.role = TableRole::figure,
           .label = "V, mean over heads",
           .title = "variance V, mean over heads",
           .positive = true});
    visit("head_covariance_mean", of.head_covariance_mean, "mean over pairs of heads of C_hl",
          {.role = TableRole::figure,
           .label = "C, mean over pairs",
           .title = "covariance C, mean over pairs"});
    visit(
        "output_correlation", of.output_correlation, "head_covariance_mean / head_variance_mean",
        {.role = TableRole::sweep, .label = "correlation C/V", .title = "output correlation C/V"});
    for (auto& measure : of.measures) {
      const char* name = name_of(*measure.of).c_str();
      visit(name, measure.number, formula_text(*measure.of).c_str(),
            {.role = TableRole::sweep, .label = name});
    }
  }
  template <class Terms, class Visitor>
  static void list_indices(Terms& of, Visitor& visit) {
    visit("output", of.output_index, "1 - output_correlation");
    visit("weights", of.weights_index, "1 - mean over pairs of heads of cos(w_h, w_l)");
  }
};

/// A figure that is a quotient of two others, of their averages over the queries.
template <class Number>
struct Ratio {
  using Place = Number ErrorTerms<Number>::*;
  Place figure, top, bottom;
  Place one_minus = nullptr;  ///< the figure that is 1 less this one, where there is one
  bool one_of_alike = false;  ///< 1 in every replicate where all heads are the same
};
template <class Number>
inline constexpr Ratio<Number> ratios[] = {{.figure = &ErrorTerms<Number>::output_correlation,
                                            .top = &ErrorTerms<Number>::head_covariance_mean,
                                            .bottom = &ErrorTerms<Number>::head_variance_mean,
                                            .one_minus = &ErrorTerms<Number>::output_index,
                                            .one_of_alike = true}};

/// Calls use(number) for the figure of the ratio and for what is 1 less it.
template <class Number, class Use>
void for_figures_of(const Ratio<Number>& ratio, ErrorTerms<Number>& terms, const Use& use) {
  use(terms.*ratio.figure);
  if (ratio.one_minus != nullptr) use(terms.*ratio.one_minus);
}

/// The ratio that this number of the terms is, or is 1 less of; nullptr where it is neither.
template <class Number>
const Ratio<Number>* ratio_of(const ErrorTerms<Number>& terms, const Number* number) {
  for (const Ratio<Number>& ratio : ratios<Number>) {
    if (number == &(terms.*ratio.figure)) return &ratio;
    if (ratio.one_minus != nullptr && number == &(terms.*ratio.one_minus)) return &ratio;
  }
  return nullptr;
}

/// A number with its place in a list of fields.
template <class Number>
struct NamedNumber {
  const char* name;
  Number* number;
  FieldText text;
};

/// Visitor that keeps the numbers of one type which stand by themselves; those of const Number may
/// stand in terms that are not constant.
template <class Number>
struct NumberList {
  std::vector<NamedNumber<Number>> all = {};
  template <class T>
  void operator()(const char* name, T& value, const char*, const FieldText& text = {}) {
    if constexpr (std::is_same_v<const T, const Number>) {
      if (*text.part_of == 0) all.push_back({name, &value, text});
    }
  }
};

/// The averages over the queries, in the order of their list, without the indices.
template <class Number>
std::vector<NamedNumber<const Number>> numbers_of(const ErrorTerms<Number>& terms) {
  NumberList<const Number> list;
  terms.fields(list);
  return std::move(list.all);
}

/// The same with the indices behind them, of terms that may be constant.
template <class Number, class Terms>
std::vector<Number*> all_numbers(Terms& terms) {
  NumberList<Number> list;
  terms.fields(list);
  terms.index_fields(list);
  std::vector<Number*> numbers;
  for (const NamedNumber<Number>& one : list.all) numbers.push_back(one.number);
  return numbers;
}

/// The terms with convert(number) in place of every number.
template <class To, class From, class Convert>
ErrorTerms<To> converted(const ErrorTerms<From>& from, const Convert& convert) {
  ErrorTerms<To> to;
  for (const Measured<From>& one : from.measures) {
    to.measures.push_back({one.of, To{}, one.divisor_error});
  }
  const std::vector<const From*> numbers = all_numbers<const From>(from);
  const std::vector<To*> places = all_numbers<To>(to);
  for (std::size_t i = 0; i < numbers.size(); ++i) *places[i] = convert(*numbers[i]);
  to.mse_query_se = from.mse_query_se;
  for (const QueryErrorTerms<From>& query : from.queries) {
    QueryErrorTerms<To>& at = to.queries.emplace_back();
    at.mse = convert(query.mse);
    std::ranges::transform(query.head_bias, std::back_inserter(at.head_bias), convert);
    std::ranges::transform(query.head_covariance, std::back_inserter(at.head_covariance), convert);
  }
  return to;
}

}  // namespace headlab
