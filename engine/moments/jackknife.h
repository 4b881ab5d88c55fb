// SPDX-License-Identifier: Apache-2.0
/// \file Figures that know their value with each node of a run left out, so that any smooth
/// function of them, across conditions that share their draws, has a standard error.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace headlab {

/// A figure with its Monte Carlo standard error; NaN where it is undefined (null in the outputs).
struct Estimate {
  double value = std::numeric_limits<double>::quiet_NaN();
  double mcse = std::numeric_limits<double>::quiet_NaN();

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("value", value, "value");
    visit("mcse", mcse, "Monte Carlo standard error");
  }
};

/// Standard error of a figure from its values with one node left out. Delete-m_j jackknife of
/// Busing, Meijer and van der Leeden (1999), written in differences to the full value, so that a
/// constant figure has error exactly 0.
/// \param leave_one_out [nodes], the figure without node j
/// \param counts   [nodes], replicates of node j
double jackknife_error(double full, std::span<const double> leave_one_out,
                       std::span<const double> counts);

/// Standard errors are at least so many bounds of the rounding that all replicates may share.
inline constexpr double rounding_errors = 10;
/// A standard error of which that is true, for a bound of that rounding.
double with_rounding(double standard_error, double rounding);

/// A figure and the same with each node left out. Arithmetic acts on both, so that a difference or
/// ratio of figures keeps what they have in common: two runs on the same draws are paired.
struct Jackknifed {
  double value = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> leave_one_out = {};  ///< [nodes]; empty for a constant
  double rounding = 0;                     ///< bound of what all replicates may share

  Jackknifed() = default;
  Jackknifed(double constant) : value(constant) {}  // NOLINT: constants mix with samples
  Jackknifed(double full, std::vector<double> without, double shared_rounding = 0)
      : value(full), leave_one_out(std::move(without)), rounding(shared_rounding) {}

  /// The figure with its standard error over nodes of these replicates; 0 for a constant.
  Estimate figure(std::span<const double> counts) const;
};

/// f of a sample: of its value, and of each of the values left out.
template <class Function>
Jackknifed apply(const Function& f, const Jackknifed& a) {
  Jackknifed out(f(a.value));
  if (a.rounding > 0) out.rounding = std::abs(f(a.value + a.rounding) - out.value);
  out.leave_one_out.reserve(a.leave_one_out.size());
  for (const double x : a.leave_one_out) out.leave_one_out.push_back(f(x));
  return out;
}

/// f of two samples over the same nodes, either of which may be a constant.
template <class Function>
Jackknifed apply(const Function& f, const Jackknifed& a, const Jackknifed& b) {
  if (b.leave_one_out.empty()) return apply([&](double x) { return f(x, b.value); }, a);
  if (a.leave_one_out.empty()) return apply([&](double y) { return f(a.value, y); }, b);
  Jackknifed out(f(a.value, b.value));
  if (a.rounding > 0) out.rounding += std::abs(f(a.value + a.rounding, b.value) - out.value);
  if (b.rounding > 0) out.rounding += std::abs(f(a.value, b.value + b.rounding) - out.value);
  out.leave_one_out.reserve(a.leave_one_out.size());
  for (std::size_t j = 0; j < a.leave_one_out.size(); ++j) {
    out.leave_one_out.push_back(f(a.leave_one_out[j], b.leave_one_out.at(j)));
  }
  return out;
}

inline Jackknifed operator+(const Jackknifed& a, const Jackknifed& b) {
  return apply([](double x, double y) { return x + y; }, a, b);
}
inline Jackknifed operator-(const Jackknifed& a, const Jackknifed& b) {
  return apply([](double x, double y) { return x - y; }, a, b);
}
inline Jackknifed operator*(const Jackknifed& a, const Jackknifed& b) {
  return apply([](double x, double y) { return x * y; }, a, b);
}
inline Jackknifed operator/(const Jackknifed& a, const Jackknifed& b) {
  return apply([](double x, double y) { return x / y; }, a, b);
}
inline Jackknifed log(const Jackknifed& a) {
  return apply([](double x) { return std::log(x); }, a);
}

}  // namespace headlab
