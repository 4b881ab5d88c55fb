// SPDX-License-Identifier: Apache-2.0
/// \file Axes of NetCDF variables by the names of their dimensions: other programs store them in
/// any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/files/netcdf/file.h"

namespace headlab {

/// A variable with its axes in the order that its reader wants.
class NetcdfArray {
 public:
  NetcdfArray() = default;
  /// \param axes names of dimensions; a variable that has none of them is read as it stands
  /// Throws NetcdfError where some of these names stand in other places, so that no order is sure.
  NetcdfArray(NetcdfGroup group, std::string name, const std::vector<std::string>& axes);

  const std::vector<std::size_t>& shape() const { return shape_; }
  /// A part, and all, row by row.
  std::vector<double> doubles(const NetcdfGroup::Slab& where) const;
  std::vector<std::int64_t> integers() const;

 private:
  NetcdfGroup group_;
  std::string name_;
  std::vector<std::size_t> places_;  ///< of the axes, among the dimensions of the file
  std::vector<std::size_t> shape_;
};

/// True of a variable that numbers the places along the dimension of its name.
bool is_coordinate(const NetcdfGroup& group, const std::string& name);

/// Throws NetcdfError where a coordinate has numbers that are not whole, or one twice; with
/// `counted`, where they are not 0, 1, .. in this order. Names, which are texts, may be any.
void check_coordinate(const NetcdfGroup& group, const std::string& name, bool counted);

}  // namespace headlab
