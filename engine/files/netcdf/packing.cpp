// SPDX-License-Identifier: Apache-2.0
#include "engine/files/netcdf/packing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <netcdf.h>

#include "engine/files/netcdf/calls.h"

namespace headlab {
namespace {

/// The numbers of an attribute, none where there is no such attribute.
std::vector<double> numbers_of(int group, int variable, const char* name,
                               const std::string& about) {
  nc_type type = NC_NAT;
  std::size_t length = 0;
  const int status = nc_inq_att(group, variable, name, &type, &length);
  if (status == NC_ENOTATT) return {};
  check_netcdf(status, about);
  if (type == NC_CHAR || type > NC_UINT64) {
    throw NetcdfError(about + " has attribute " + name + " that is not a number");
  }
  std::vector<double> numbers(length);
  check_netcdf(nc_get_att_double(group, variable, name, numbers.data()), about);
  return numbers;
}

/// The number of an attribute, `otherwise` where there is no such attribute.
double number_of(int group, int variable, const char* name, double otherwise,
                 const std::string& about) {
  const std::vector<double> numbers = numbers_of(group, variable, name, about);
  if (numbers.empty()) return otherwise;
  if (numbers.size() > 1 || !std::isfinite(numbers[0])) {
    throw NetcdfError(about + " has attribute " + name + " that is not one number");
  }
  return numbers[0];
}

bool is_unsigned(int group, int variable, const std::string& about) {
  nc_type type = NC_NAT;
  std::size_t length = 0;
  const int status = nc_inq_att(group, variable, "_Unsigned", &type, &length);
  if (status == NC_ENOTATT) return false;
  check_netcdf(status, about);
  if (type != NC_CHAR) return false;
  std::string text(length, '\0');
  check_netcdf(nc_get_att_text(group, variable, "_Unsigned", text.data()), about);
  return text == "true";
}

}  // namespace

NetcdfPacking::NetcdfPacking(int group, int variable, const std::string& about) {
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(group, variable, &type), about);
  scale_ = number_of(group, variable, "scale_factor", 1, about);
  offset_ = number_of(group, variable, "add_offset", 0, about);
  const bool has_sign = type == NC_BYTE || type == NC_SHORT || type == NC_INT || type == NC_INT64;
  if (has_sign && is_unsigned(group, variable, about)) {
    std::size_t bytes = 0;
    check_netcdf(nc_inq_type(group, type, nullptr, &bytes), about);
    wrap_ = std::ldexp(1, static_cast<int>(8 * bytes));
  }
  const std::vector<double> range = numbers_of(group, variable, "valid_range", about);
  if (!range.empty() && range.size() != 2) {
    throw NetcdfError(about + " has attribute valid_range that is not two numbers");
  }
  least_ = number_of(group, variable, "valid_min", range.empty() ? least_ : range[0], about);
  most_ = number_of(group, variable, "valid_max", range.empty() ? most_ : range[1], about);
  missing_ = numbers_of(group, variable, "missing_value", about);
  const std::vector<double> fill = numbers_of(group, variable, "_FillValue", about);
  missing_.insert(missing_.end(), fill.begin(), fill.end());
  if (!fill.empty()) return;
  // What was never written has a number of the library's own; shorter integers need all of theirs.
  int without = 0;
  check_netcdf(nc_inq_var_fill(group, variable, &without, nullptr), about);
  if (without != 0) return;
  if (type == NC_FLOAT || type == NC_DOUBLE) missing_.push_back(double{NC_FILL_FLOAT});
  if (type == NC_INT) missing_.push_back(double{NC_FILL_INT});
  if (type == NC_INT64) missing_.push_back(static_cast<double>(NC_FILL_INT64));
}

bool NetcdfPacking::is_missing(double stored) const {
  const double meant = stored < 0 ? stored + wrap_ : stored;
  return meant < least_ || meant > most_ || std::ranges::find(missing_, stored) != missing_.end();
}

void NetcdfPacking::unpack(std::span<double> numbers) const {
  for (double& number : numbers) {
    if (is_missing(number)) {
      number = std::numeric_limits<double>::quiet_NaN();
    } else {
      number = (number < 0 ? number + wrap_ : number) * scale_ + offset_;
    }
  }
}

bool NetcdfPacking::is_attribute(std::string_view name) {
  for (const char* known : {"scale_factor", "add_offset", "_Unsigned", "_FillValue",
                            "missing_value", "valid_range", "valid_min", "valid_max"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace headlab
