// SPDX-License-Identifier: Apache-2.0
/// \file Numbers as other programs store them: scaled to short integers, or missing.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// What attributes of the CF conventions say of the numbers of a variable.
class NetcdfPacking {
 public:
  /// Throws NetcdfError where an attribute is not what the conventions say.
  NetcdfPacking(int group, int variable, const std::string& about);

  /// True where the stored numbers are others than those meant.
  bool is_packed() const { return scale_ != 1 || offset_ != 0 || wrap_ != 0; }
  /// True of a stored number that stands for none.
  bool is_missing(double stored) const;
  /// From stored numbers to those meant, NaN for those that are missing.
  void unpack(std::span<double> numbers) const;

  /// True of the attributes that say how numbers are stored.
  static bool is_attribute(std::string_view name);

 private:
  double scale_ = 1, offset_ = 0;
  double wrap_ = 0;  ///< added to what is negative: integers that are meant without sign
  double least_ = -std::numeric_limits<double>::infinity();
  double most_ = std::numeric_limits<double>::infinity();
  std::vector<double> missing_;
};

}  // namespace headlab
