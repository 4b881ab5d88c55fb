// SPDX-License-Identifier: Apache-2.0
/// \file How a law describes its parameters, so that one description serves the scenario reader,
/// its error messages and `headlab list laws`.
///
/// A law is a struct with `name`, `summary`, its parameters as members, and
///
///     template <class Visitor> void parameters(Visitor& visit) {
///       visit.required("bandwidth", bandwidth, above(0), "b, in units of the design");
///       visit.optional("mean", mean, finite(), "[d], default 0");
///     }
///
/// Members may be double, int, std::uint64_t, bool, std::string, NamedNumbers, std::optional of
/// these, or std::vector (nested up to three deep) of double. Shapes that depend on d, H or k are
/// checked by `void check(const Sizes&) const`, which throws ParameterError.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headlab {

/// Interval a number must lie in; every element of it, where the parameter is an array.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = true;   ///< low itself is excluded
  bool high_open = true;  ///< high itself is excluded
  bool radians = false;   ///< an angle: a number beyond the interval may be degrees

  /// True when `value` lies inside; false for NaN.
  bool holds(double value) const {
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
};

/// Numbers by name, in the order in which they were written.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

inline Range finite() {
  return {};
}
inline Range above(double low) {
  return {.low = low};
}
inline Range at_least(double low) {
  return {.low = low, .low_open = false};
}
/// Open interval (low, high).
inline Range inside(double low, double high) {
  return {.low = low, .high = high};
}
/// Closed interval [low, high].
inline Range within(double low, double high) {
  return {.low = low, .high = high, .low_open = false, .high_open = false};
}

/// `range` for an angle in radians.
inline Range in_radians(Range range) {
  range.radians = true;
  return range;
}
/// At most one turn either way, 2 pi rounded up: a phase of more says nothing that one within it
/// does not, and is degrees by mistake.
inline Range phase_in_radians() {
  return in_radians(within(-6.2832, 6.2832));
}

/// What a law may need to know of the rest of the scenario to check its own shapes.
struct Sizes {
  int d = 0;            ///< dimension of the design
  int heads = 0;        ///< H
  int k = 0;            ///< per-head dimension d_k
  std::uint64_t n = 0;  ///< points in one training set
};

/// A parameter that does not fit: `key` names it inside the law's table ("covariance"), or is empty
/// for the law as a whole; what() is the problem, with a suggestion where there is one.
class ParameterError : public std::invalid_argument {
 public:
  ParameterError(std::string key, const std::string& problem)
      : std::invalid_argument(problem), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

/// Base of laws without parameters.
struct NoParameters {
  template <class Visitor>
  void parameters(Visitor&) {}
};

}  // namespace headlab
