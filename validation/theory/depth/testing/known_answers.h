// SPDX-License-Identifier: Apache-2.0
/// \file Known answers of stacks, validation/testdata/known-answers-depth.json.
#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <nlohmann/json.hpp>

namespace headlab {

/// Reads the cases of one kind. Throws runtime_error where there is none.
inline std::vector<nlohmann::json> depth_cases(const std::string& kind) {
  const auto folder = std::filesystem::path(HEADLAB_KNOWN_ANSWERS).parent_path();
  const auto all = nlohmann::json::parse(std::ifstream(folder / "known-answers-depth.json"));
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& known : all["cases"]) {
    if (known["kind"] == kind) found.push_back(known);
  }
  if (found.empty()) throw std::runtime_error("no known answer of kind " + kind);
  return found;
}

/// A matrix given as rows.
inline Eigen::MatrixXd matrix_of(const nlohmann::json& rows) {
  Eigen::MatrixXd matrix(rows.size(), rows.at(0).size());
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
      matrix(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
  }
  return matrix;
}

/// Whether |got - expected| <= relative |expected| + absolute; never for a NaN.
inline bool within(double got, double expected, double relative, double absolute) {
  return std::abs(got - expected) <= relative * std::abs(expected) + absolute;
}

/// The same by the tolerance of a case.
inline bool within(double got, double expected, const nlohmann::json& tolerance) {
  return within(got, expected, tolerance["relative"].get<double>(),
                tolerance["absolute"].get<double>());
}

/// The same for numbers written with 12 digits, of which the last may be wrong by one.
inline bool within_digits(double got, double expected) {
  return within(got, expected, 1e-11, 0);
}

}  // namespace headlab
