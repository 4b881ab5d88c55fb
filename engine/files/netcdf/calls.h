// SPDX-License-Identifier: Apache-2.0
/// \file Calls of the NetCDF library, with errors as exceptions.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// A call of the NetCDF library failed, or a file has something else than it should; what() is one
/// line, whatever text of the file it quotes.
class NetcdfError : public std::runtime_error {
 public:
  explicit NetcdfError(const std::string& problem);
};

/// A file is not as it was written; what() begins with "is damaged".
class NetcdfDamage : public NetcdfError {
 public:
  static constexpr std::string_view beginning = "is damaged: ";
  explicit NetcdfDamage(const std::string& where) : NetcdfError(std::string(beginning) + where) {}
};

/// The bytes of a file.
struct NetcdfBytes {
  std::shared_ptr<void> memory = {};
  std::size_t size = 0;
};

/// Turns a status of the library into an exception that names what it was about.
void check_netcdf(int status, const std::string& about);

/// Number of elements of an array that memory has room for: a file may state any lengths.
std::size_t checked_netcdf_size(const std::vector<std::size_t>& lengths, const std::string& name);

/// Lengths of the dimensions of a variable.
std::vector<std::size_t> netcdf_lengths(int group, int variable, const std::string& name);

/// A text of the library, which is nullptr where a file has none.
std::string netcdf_text(const char* text);

/// The name that `call`, of the library, has for a number, as nc_inq_varname.
template <class Call>
std::string netcdf_name(int group, int number, const Call& call, const char* what) {
  char name[257] = {};  // NC_MAX_NAME and its end
  check_netcdf(call(group, number, name), what);
  return name;
}

/// The numbers that `call` counts and lists of a group, as nc_inq_varids.
template <class Call>
std::vector<int> netcdf_numbers(int group, const Call& call, const char* what) {
  int count = 0;
  check_netcdf(call(group, &count, nullptr), what);
  std::vector<int> numbers(static_cast<std::size_t>(count));
  check_netcdf(call(group, &count, numbers.data()), what);
  return numbers;
}

/// Begins a file in memory; its number.
int new_netcdf_image();

/// Closes it; gives its bytes away.
NetcdfBytes close_netcdf_image(int number);

}  // namespace headlab
