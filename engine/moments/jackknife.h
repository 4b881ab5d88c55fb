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
struct Figure {
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
/// \param left_out [nodes], the figure without node j
/// \param counts   [nodes], replicates of node j
double jackknife_error(double full, std::span<const double> left_out,
                       std::span<const double> counts);

/// A figure and the same with each node left out. Arithmetic acts on both, so that a difference or
/// ratio of figures keeps what they have in common: two runs on the same draws are paired.
struct Sampled {
  double value = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> left_out = {};  ///< [nodes]; empty for a constant

  Sampled() = default;
  Sampled(double constant) : value(constant) {}  // NOLINT: constants mix with samples
  Sampled(double full, std::vector<double> without) : value(full), left_out(std::move(without)) {}

  /// The figure with its standard error over nodes of these replicates; 0 for a constant.
  Figure figure(std::span<const double> counts) const;
};

/// f of a sample: of its value, and of each of the values left out.
template <class Function>
Sampled apply(const Function& f, const Sampled& a) {
  Sampled out(f(a.value));
  out.left_out.reserve(a.left_out.size());
  for (const double x : a.left_out) out.left_out.push_back(f(x));
  return out;
}

/// f of two samples over the same nodes, either of which may be a constant.
template <class Function>
Sampled apply(const Function& f, const Sampled& a, const Sampled& b) {
  if (b.left_out.empty()) return apply([&](double x) { return f(x, b.value); }, a);
  if (a.left_out.empty()) return apply([&](double y) { return f(a.value, y); }, b);
  Sampled out(f(a.value, b.value));
  out.left_out.reserve(a.left_out.size());
  for (std::size_t j = 0; j < a.left_out.size(); ++j) {
    out.left_out.push_back(f(a.left_out[j], b.left_out.at(j)));
  }
  return out;
}

inline Sampled operator+(const Sampled& a, const Sampled& b) {
  return apply([](double x, double y) { return x + y; }, a, b);
}
inline Sampled operator-(const Sampled& a, const Sampled& b) {
  return apply([](double x, double y) { return x - y; }, a, b);
}
inline Sampled operator*(const Sampled& a, const Sampled& b) {
  return apply([](double x, double y) { return x * y; }, a, b);
}
inline Sampled operator/(const Sampled& a, const Sampled& b) {
  return apply([](double x, double y) { return x / y; }, a, b);
}
inline Sampled log(const Sampled& a) {
  return apply([](double x) { return std::log(x); }, a);
}

}  // namespace headlab
