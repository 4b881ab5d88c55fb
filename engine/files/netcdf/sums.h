// SPDX-License-Identifier: Apache-2.0
/// \file Sums of what a NetCDF file holds, and of its bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/netcdf/calls.h"

namespace headlab {

/// Attribute of the root group that lists the sums of all that the program wrote.
inline constexpr const char* netcdf_sums_attribute = "sums";

/// The list for an open file, a line for each group, dimension and variable:
///     SHA256 <tab> KIND PATH { <tab> NAME OF AN ATTRIBUTE }
/// The sum of a group is of its attributes, that of a variable of its type, dimensions, attributes
/// and values.
std::string netcdf_sums(int root);

/// What a file holds, put together anew.
struct NetcdfCopy {
  NetcdfBytes image = {};
  bool lacks_sums = false;          ///< headlab wrote the file, and no sums
  std::vector<std::string> others;  ///< what was added to it: not in its list, and not copied
};

/// Reads all of a file; throws NetcdfDamage where it differs from its list of sums, naming what
/// differs, and NetcdfError where the library cannot read it. Damage that the library does not
/// find may end the process. Types of the file's own are not copied. What has no list is copied as
/// what it means: packed numbers unpacked, missing ones NaN (engine/files/netcdf/packing.h).
NetcdfCopy checked_netcdf_copy(std::string& bytes);

/// What stands after the last byte of a file that the program wrote, which libraries of HDF5 do
/// not look at and cut off where they write: SHA-256 of the bytes before it.
std::string netcdf_trailer(std::string_view bytes);

enum class Trailer { right, wrong, none };
Trailer trailer_of(std::string_view bytes);
inline constexpr std::size_t netcdf_trailer_size = 82;

}  // namespace headlab
