// SPDX-License-Identifier: Apache-2.0
/// \file Figures that know their value with each node of a run left out, so that any smooth
/// function of them, across conditions that share their draws, has a standard error.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace headlab {

/// Fewest replicates (or draws, tokens) that have to carry a figure before its standard error says
/// what it is off by: an event that few of them had may be as rare as they say, or many times rarer
/// or more frequent.
inline constexpr double enough_carriers = 20;

/// Standard errors that a denominator has to be away from 0 for its ratio to be judged.
inline constexpr double denominator_errors = 6;

/// A figure with its Monte Carlo standard error; NaN where it is undefined (null in the outputs).
struct Estimate {
  double value = std::numeric_limits<double>::quiet_NaN();
  double mcse = std::numeric_limits<double>::quiet_NaN();
  double skewness = 0;  ///< of the estimate, as its nodes have it
  double carriers = std::numeric_limits<double>::infinity();  ///< see NodeSpread
  /// How much more than its standard error a figure may be off by, since too few replicates carry
  /// it: 0 where enough do, infinite where nothing bounds it.
  double allowance = 0;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("value", value, "value");
    visit("mcse", mcse, "Monte Carlo standard error");
  }
};

/// How the nodes of a run spread about a figure.
struct NodeSpread {
  double error = 0;     ///< standard error of the figure
  double skewness = 0;  ///< of its distribution
  /// How many events make up the figure, from the kurtosis of its g nodes: events that K of the
  /// replicates had give nodes an excess kurtosis of g/K. Twice the standard error sqrt(24/g) of a
  /// kurtosis is allowed for; infinite where the excess is within it, 0 where nodes do not differ.
  double carriers = 0;
};

/// Spread of a figure from its values with one node left out. The standard error is the delete-m_j
/// jackknife of Busing, Meijer and van der Leeden (1999), written in differences to the full value,
/// so that a constant figure has error exactly 0.
/// \param leave_one_out [nodes], the figure without node j
/// \param counts   [nodes], replicates of node j
/// \param rounding  nodes that differ by no more do not differ, to `carriers`
NodeSpread jackknife_spread(double full, std::span<const double> leave_one_out,
                            std::span<const double> counts, double rounding = 0);

/// How much more than its standard error a figure may be off by. Where no replicate carries it,
/// what events add that were not seen; where K < enough_carriers do, no more than 30 standard
/// errors: were events so much more frequent, K >= 1 of them would be seen with a probability below
/// 1e-10.
/// \param unseen  see Jackknifed
/// \param hidden  carriers of the estimates behind the figure: with too few, all of `unseen` counts
double allowance_of(const NodeSpread& spread, double unseen, double hidden);

/// Its standard error.
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
  /// The most that events may add to the figure which none of the replicates had
  /// (UnseenEvents): 0 for what has no such events, as a constant. It counts where too few
  /// replicates carry the figure.
  double unseen = 0;
  /// How far float32 may have moved the figure; nodes that differ by less do not differ.
  double digits = 0;
  /// Events that make up what varies of the estimates behind the figure, see NodeSpread.
  double carriers = std::numeric_limits<double>::infinity();

  Jackknifed() = default;
  Jackknifed(double constant) : value(constant) {}  // NOLINT: constants mix with samples
  Jackknifed(double full, std::vector<double> without, double shared_rounding = 0)
      : value(full), leave_one_out(std::move(without)), rounding(shared_rounding) {}

  /// The figure with its standard error over nodes of these replicates; 0 for a constant.
  Estimate figure(std::span<const double> counts) const;
};

/// |change - full|, infinite where that is not a number: a bound of what a change does.
inline double size_of_change(double change, double full) {
  const double size = std::abs(change - full);
  return std::isnan(size) ? std::numeric_limits<double>::infinity() : size;
}

/// f of a sample: of its value, and of each of the values left out.
template <class Function>
Jackknifed apply(const Function& f, const Jackknifed& a) {
  Jackknifed out(f(a.value));
  out.carriers = a.carriers;
  for (const auto bound : {&Jackknifed::rounding, &Jackknifed::unseen, &Jackknifed::digits}) {
    if (a.*bound > 0) out.*bound = size_of_change(f(a.value + a.*bound), out.value);
  }
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
  out.carriers = std::min(a.carriers, b.carriers);
  for (const auto bound : {&Jackknifed::rounding, &Jackknifed::unseen, &Jackknifed::digits}) {
    if (a.*bound > 0) out.*bound += size_of_change(f(a.value + a.*bound, b.value), out.value);
    if (b.*bound > 0) out.*bound += size_of_change(f(a.value, b.value + b.*bound), out.value);
  }
  out.leave_one_out.reserve(a.leave_one_out.size());
  for (std::size_t j = 0; j < a.leave_one_out.size(); ++j) {
    out.leave_one_out.push_back(f(a.leave_one_out[j], b.leave_one_out.at(j)));
  }
  return out;
}

Jackknifed operator+(const Jackknifed& a, const Jackknifed& b);
Jackknifed operator-(const Jackknifed& a, const Jackknifed& b);
Jackknifed operator*(const Jackknifed& a, const Jackknifed& b);
Jackknifed operator/(const Jackknifed& a, const Jackknifed& b);
Jackknifed log(const Jackknifed& a);

}  // namespace headlab
