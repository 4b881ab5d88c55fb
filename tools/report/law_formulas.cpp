// SPDX-License-Identifier: Apache-2.0
#include "tools/report/law_formulas.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "engine/scenario/law_reader.h"
#include "tools/report/markup.h"
#include "tools/report/mathml.h"

namespace headlab::tools {
namespace {

constexpr std::size_t longest_parameter = 160;
constexpr std::size_t max_values_of_parameter = 6;

/// By family and law. A law that is missing is shown with its summary.
const std::map<std::pair<std::string, std::string>, std::string>& formulas() {
  static const std::map<std::pair<std::string, std::string>, std::string> all = {
      {{"design", "normal"}, "X ~ N(mean, covariance)"},
      {{"design", "mixture"}, "X ~ sum_c weights_c N(means_c, covariances_c)"},
      {{"design", "uniform"}, "X_j ~ U(-1, 1)"},
      {{"design", "student_t"}, "p(x) ∝ (1 + frac{|x|^2}{df})^{-(df + d)/2}"},
      {{"design", "sphere"}, "X ~ U({x : |x| = 1})"},
      {{"design", "file"}, "X ~ U({x_1, …, x_N}), \"the rows of\" path"},
      {{"regression", "zero"}, "m(x) = 0"},
      {{"regression", "linear"}, "m(x) = coefficients · x"},
      {{"regression", "cosines"}, "m(x) = sum_j amplitude_j cos(frequency_j · x + phase_j)"},
      {{"regression", "random_cosines"},
       "m(x) = sum_{j = 1}^{terms} sqrt{2 / terms} cos(ω_j · x + φ_j)"},
      {{"regression", "additive"}, "m(x) = sum_j amplitude_j cos(frequency_j x_j + phase_j)"},
      {{"regression", "single_index"}, "m(x) = cos(frequency direction · x)"},
      {{"regression", "bumps"},
       "m(x) = sum_j heights_j exp(- frac{|x - centres_j|^2}{2 widths_j^2})"},
      {{"regression", "step"}, "m(x) = height 1[direction · x > threshold]"},
      {{"regression", "file"}, "m(x_i) = y_i, \"a column of the design's file\""},
      {{"noise", "normal"}, "e ~ N(0, sd^2)"},
      {{"noise", "student_t"}, "e ~ sd sqrt{(df - 2)/df} t_{df}"},
      {{"noise", "laplace"}, "p(e) = frac{1}{sqrt{2} sd} exp(- sqrt{2} |e| / sd)"},
      {{"noise", "heteroscedastic"}, "e ~ N(0, s(x)^2), s(x) = sd (1 + slope |direction · x|)"},
      {{"sequence", "ar1"}, "X_i = correlation X_{i - 1} + sqrt{1 - correlation^2} Z_i"},
      {{"subspaces", "orthogonal"}, "W_h^T W_l = 0"},
      {{"subspaces", "aligned"}, "W_h = W_l"},
      {{"subspaces", "equiangular"}, "W_h^T W_l = cos(angle) I"},
      {{"kernel", "gaussian"}, "K_h(X) = exp(- frac{r^2}{2 bandwidth^2}), r = |W_h^T (x - X)|"},
      {{"kernel", "softmax"}, "K_h(X) = exp(frac{(W_h^T x) · (W_h^T X)}{temperature})"},
      {{"kernel", "epanechnikov"}, "K_h(X) = (1 - frac{r^2}{bandwidth^2})_+, r = |W_h^T (x - X)|"},
      {{"kernel", "laplace"}, "K_h(X) = exp(- r / bandwidth), r = |W_h^T (x - X)|"},
      {{"kernel", "triangular"}, "K_h(X) = (1 - r / bandwidth)_+, r = |W_h^T (x - X)|"},
      {{"weights", "uniform"}, "a_h = 1 / H"},
      {{"weights", "geometric"}, "a_h ∝ ratio^h"},
  };
  return all;
}

std::string summary_of(const std::string& family, const std::string& law) {
  for (const LawDescription& one : describe_laws()) {
    if (one.family == family && one.name == law) return one.summary;
  }
  return "";
}

}  // namespace

std::string law_formula(const std::string& family, const std::string& law) {
  const auto found = formulas().find({family, law});
  return found == formulas().end() ? "" : found->second;
}

std::string law_html(const std::string& family, const std::vector<const Value*>& laws) {
  const std::string name = text_of(member(*laws.front(), "law"));
  const std::string formula = law_formula(family, name);
  std::string text = element("strong", escaped(name)) + ": ";
  text += formula.empty() ? escaped(summary_of(family, name)) : mathml(formula);
  return text + parameters_html(laws);
}

std::string parameters_html(const std::vector<const Value*>& laws) {
  // Values of every parameter, in the order of the laws.
  std::vector<std::pair<std::string, std::vector<std::string>>> parameters;
  for (const Value* law : laws) {
    for (const auto& [name, location, value] : members_of(*law)) {
      if (name == "law") continue;
      auto parameter = std::ranges::find(parameters, name,
                                         &std::pair<std::string, std::vector<std::string>>::first);
      if (parameter == parameters.end()) {
        parameter = parameters.insert(parameter, {name, std::vector<std::string>()});
      }
      const std::string words = shortened(words_of(value), longest_parameter);
      std::vector<std::string>& values = parameter->second;
      if (std::ranges::find(values, words) == values.end()) values.push_back(words);
    }
  }
  std::string list;
  for (const auto& [key, values] : parameters) {
    list += (list.empty() ? "" : "; ") + key + " = ";
    for (std::size_t i = 0; i < std::min(values.size(), max_values_of_parameter); ++i) {
      list += (i == 0 ? "" : " or ") + values[i];
    }
    if (values.size() > max_values_of_parameter) {
      list += " or … (" + std::to_string(values.size()) + " values)";
    }
  }
  return list.empty() ? "" : element("p", {{"class", "note"}}, escaped(list));
}

}  // namespace headlab::tools
