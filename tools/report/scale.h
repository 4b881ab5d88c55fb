// SPDX-License-Identifier: Apache-2.0
/// \file From numbers to places on a picture.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace headlab::tools {

/// A place on an axis that is marked, with what stands there; empty: a mark alone.
struct Tick {
  double value = 0;
  std::string label;
};

enum class ScaleKind {
  linear,
  logarithmic,
  signed_log,  ///< sign(v) log10(1 + |v|): both signs, and many orders of magnitude
};

/// A map of [low, high] onto [from, to], which may descend.
class Scale {
 public:
  Scale() = default;
  /// A range that is empty or not finite becomes one that can be drawn; `logarithmic` becomes
  /// linear where `low` is not positive.
  Scale(ScaleKind kind, double low, double high, double from, double to);

  double operator()(double value) const;
  /// True for what has a place within the range, up to rounding.
  bool holds(double value) const;
  ScaleKind kind() const { return kind_; }
  double low() const { return low_; }
  double high() const { return high_; }

  /// Round numbers within the range, some `about` of them.
  std::vector<Tick> ticks(int about = 5) const;

 private:
  double transformed(double value) const;
  std::vector<Tick> linear_ticks(int about) const;
  std::vector<Tick> decade_ticks(int about) const;

  ScaleKind kind_ = ScaleKind::linear;
  double low_ = 0, high_ = 1, from_ = 0, to_ = 1;
};

/// The numbers that have a place on an axis of this kind: finite, and positive on a logarithmic
/// one.
bool has_place(ScaleKind kind, double value);

/// Smallest and largest of the numbers that have a place, widened by `margin` of their distance,
/// but not beyond 0.
struct Range {
  double low = 0, high = 1;
};
Range range_of(ScaleKind kind, std::span<const double> values, double margin = 0.06);

/// The kind of axis on which levels lie more evenly: logarithmic for positive numbers that span a
/// factor of 8 or more and have a more even spacing there.
ScaleKind kind_for_levels(std::span<const double> levels);

/// The kind of axis of a figure: logarithmic where all of its finite numbers are positive and the
/// largest is more than 20 times the least.
ScaleKind kind_for_figure(std::span<const double> values);

/// A number of so many digits in words and tables: "0.25", "−3", "–" for NaN.
std::string shown_number(double value, int digits = 4);

/// Decimals of a number in a table at most: a column whose numbers are of several sizes is read by
/// its decimal points.
inline constexpr int table_decimals = 12;

/// The least number that is written without a power of ten.
inline constexpr double min_plain = 1e-5;

/// A number that was measured or computed, with its last digits where they are 0: "0.2500".
std::string measured_number(double value, int digits = 4);

/// A number for an axis: "0.25", "−3", "2e−07".
std::string axis_number(double value);

/// Labels of a linear axis, with as many decimals, so that their points stand under one another,
/// or all but 0 as powers of ten.
void label_alike(std::vector<Tick>& ticks);

/// A number as it is printed, with minus signs in place of hyphens and without the plus signs.
std::string with_minus_sign(const std::string& printed);

/// Takes labels away where one would stand within `gap` of one that stays; `places` and `widths`
/// are of the labels. The first stay, on an axis of logarithms 0 and the powers of ten before
/// others.
void drop_overlapping(std::vector<Tick>& ticks, std::span<const double> places,
                      std::span<const double> widths, double gap,
                      ScaleKind kind = ScaleKind::linear);

}  // namespace headlab::tools
