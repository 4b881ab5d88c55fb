// SPDX-License-Identifier: Apache-2.0
/// \file Examples of every registered law of data. Tests that go through all laws take them from
/// all_laws(), which does not compile where a law of the registry has no examples here.
#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <variant>
#include <vector>

#include "kernels/laws.h"

namespace headlab::test {

/// Of a law without examples of its own: its defaults.
template <class Law>
requires requires(Law law, int d) {
  law.dim = d;
}
std::vector<Law> examples(std::type_identity<Law>, int d) {
  Law law;
  law.dim = d;
  return {law};
}

inline std::vector<NormalDesign> examples(std::type_identity<NormalDesign>, int d) {
  return {{.dim = d}, {.dim = d, .ar1 = 0.6}};
}

inline std::vector<MixtureDesign> examples(std::type_identity<MixtureDesign>, int d) {
  const auto size = static_cast<std::size_t>(d);
  MixtureDesign mixture{.weights = {0.3, 0.7}};
  for (std::size_t i = 0; i < 2; ++i)
    mixture.means.emplace_back(size, 1.5 * static_cast<double>(i));
  return {mixture};
}

inline std::vector<StudentDesign> examples(std::type_identity<StudentDesign>, int d) {
  return {{.dim = d, .df = 2.5}};
}

inline std::vector<FileDesign> examples(std::type_identity<FileDesign>, int d) {
  const auto size = static_cast<std::size_t>(d);
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < 40; ++i) {
    rows.emplace_back();
    for (std::size_t c = 0; c < size; ++c) {
      rows.back().push_back(std::sin(1.7 * static_cast<double>(i * size + c)));
    }
  }
  return {FileDesign{.rows = rows}};
}

/// (1, 1, ...) / sqrt(d)
inline std::vector<double> unit_vector(int d) {
  return std::vector<double>(static_cast<std::size_t>(d), 1 / std::sqrt(static_cast<double>(d)));
}

/// (-0.3, -0.1, 0.1, ...)
inline std::vector<double> slopes(int d) {
  std::vector<double> made;
  for (int c = 0; c < d; ++c) made.push_back(0.2 * c - 0.3);
  return made;
}

inline std::vector<ZeroRegression> examples(std::type_identity<ZeroRegression>, int) {
  return {{}};
}

inline std::vector<LinearRegression> examples(std::type_identity<LinearRegression>, int d) {
  return {LinearRegression{.coefficients = slopes(d)}};
}

inline std::vector<CosinesRegression> examples(std::type_identity<CosinesRegression>, int d) {
  return {CosinesRegression{
      .amplitude = {1, 0.5}, .frequency = {slopes(d), unit_vector(d)}, .phase = {0.1, 2}}};
}

inline std::vector<RandomCosinesRegression> examples(std::type_identity<RandomCosinesRegression>,
                                                     int) {
  return {RandomCosinesRegression{.terms = 16, .length_scale = 2}};
}

inline std::vector<AdditiveRegression> examples(std::type_identity<AdditiveRegression>, int d) {
  return {AdditiveRegression{.amplitude = slopes(d),
                             .frequency = std::vector<double>(static_cast<std::size_t>(d), 1.0)}};
}

inline std::vector<SingleIndexRegression> examples(std::type_identity<SingleIndexRegression>,
                                                   int d) {
  return {SingleIndexRegression{.direction = unit_vector(d), .frequency = 1.5}};
}

inline std::vector<BumpsRegression> examples(std::type_identity<BumpsRegression>, int d) {
  return {BumpsRegression{
      .heights = {1, -2}, .centres = {slopes(d), unit_vector(d)}, .widths = {1, 2}}};
}

inline std::vector<StepRegression> examples(std::type_identity<StepRegression>, int d) {
  return {StepRegression{.direction = unit_vector(d), .threshold = 0.1}};
}

/// Every operation, of six coordinates or more.
inline std::vector<FormulaRegression> examples(std::type_identity<FormulaRegression>, int) {
  FormulaRegression law;
  law.text =
      "min(2, max(-1, x1)) + a*sin(x2) - tanh(x3)*cos(2*x4) + sqrt(abs(x5))/(4 + x6^2)"
      " + 0.1*log(1 + x1^2) + exp(-x2^2)*(x3 > 0.1) + (1 + x4^2)^-0.7 + 0.1*tan(tanh(x5))";
  law.constants = {{"a", 0.5}};
  return {law};
}

/// None: it has values at the rows of a design's file, which a test has to give both.
inline std::vector<FileRegression> examples(std::type_identity<FileRegression>, int) {
  return {};
}

inline std::vector<NormalNoise> examples(std::type_identity<NormalNoise>, int) {
  return {{.sd = 0.5}};
}

inline std::vector<StudentNoise> examples(std::type_identity<StudentNoise>, int) {
  return {{.df = 5, .sd = 0.5}};
}

inline std::vector<LaplaceNoise> examples(std::type_identity<LaplaceNoise>, int) {
  return {{.sd = 0.5}};
}

inline std::vector<HeteroscedasticNoise> examples(std::type_identity<HeteroscedasticNoise>, int d) {
  return {HeteroscedasticNoise{
      .sd = 0.4, .slope = 1.5, .direction = std::vector<double>(static_cast<std::size_t>(d), 0.4)}};
}

inline std::vector<FormulaNoise> examples(std::type_identity<FormulaNoise>, int) {
  FormulaNoise law;
  law.text = "0.4 + 0.2*abs(x1)";
  return {law};
}

/// Examples of every law of a family, as DesignLaw, for data of dimension d.
template <class Family>
std::vector<Family> all_laws(int d) {
  std::vector<Family> laws;
  const auto add = [&laws](const auto& some) { laws.insert(laws.end(), some.begin(), some.end()); };
  const auto add_all = [&]<class... Laws>(std::type_identity<std::variant<Laws...>>) {
    (add(examples(std::type_identity<Laws>(), d)), ...);
  };
  add_all(std::type_identity<typename Family::variant>());
  return laws;
}

}  // namespace headlab::test
