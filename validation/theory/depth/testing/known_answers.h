// SPDX-License-Identifier: Apache-2.0
/// \file Known answers of stacks, validation/testdata/known-answers-depth.json.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/stack/testing/known_stack.h"

namespace headlab {

/// Reads the cases of one kind. Throws runtime_error where there is none.
inline std::vector<nlohmann::json> depth_cases(const std::string& kind) {
  std::vector<nlohmann::json> found = known_depth_cases(kind);
  if (found.empty()) throw std::runtime_error("no known answer of kind " + kind);
  return found;
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
