// SPDX-License-Identifier: Apache-2.0
#include "engine/files/netcdf/file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include <netcdf.h>
#include <netcdf_mem.h>

#include "engine/files/atomic_file.h"
#include "engine/files/foreign_files.h"
#include "engine/files/input_file.h"
#include "engine/files/netcdf/sums.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

/// HDF5 has room for 64 kB in the header that plain texts of attributes stand in; a string stands
/// elsewhere.
constexpr std::size_t max_plain_text = 4096;

/// False where the status is that of what is not there.
bool is_there(int status, int missing, const std::string& about) {
  if (status != missing) check_netcdf(status, about);
  return status == NC_NOERR;
}

/// Elements of a part of a variable, which must have as many dimensions: the library trusts us.
std::size_t slab_size(int group, int variable, const NetcdfGroup::Slab& where,
                      const std::string& name) {
  const std::vector<std::size_t> lengths = netcdf_lengths(group, variable, name);
  if (where.start.size() != where.count.size() || where.count.size() != lengths.size()) {
    throw NetcdfError(name + ": has " + counted(lengths.size(), "dimension"));
  }
  for (std::size_t axis = 0; axis < lengths.size(); ++axis) {
    if (where.start[axis] > lengths[axis] ||
        where.count[axis] > lengths[axis] - where.start[axis]) {
      throw NetcdfError(name + ": is shorter than it should be");
    }
  }
  return checked_netcdf_size(where.count, name);
}

void require_size(std::size_t size, std::size_t given, const std::string& name) {
  if (size != given) throw NetcdfError(name + ": size does not fit its dimensions");
}

/// A number that other programs may have stored as a fraction.
std::int64_t whole(double number, const std::string& name) {
  if (number == std::floor(number) && std::abs(number) < 0x1p53) {
    return static_cast<std::int64_t>(number);
  }
  throw NetcdfError(name + ": has a number that is not whole, or is missing");
}

constexpr const char* in_memory = "a file in memory";

/// A text attribute of a variable or group.
std::string attribute_text(int group, int of, const std::string& name, nc_type type,
                           std::size_t length) {
  if (type == NC_STRING) {
    char* pointer = nullptr;
    check_netcdf(nc_get_att_string(group, of, name.c_str(), &pointer), name);
    const std::string text = netcdf_text(pointer);
    nc_free_string(1, &pointer);
    return text;
  }
  std::string text(length, '\0');
  check_netcdf(nc_get_att_text(group, of, name.c_str(), text.data()), name);
  return text;
}

/// Where memory is short the library may make a group or variable without room for what is defined
/// in it, and say of that all the same that it was: `found` is what it says when asked for it.
void require_made(int found) {
  if (found != NC_NOERR) throw std::bad_alloc();
}

/// The same of an attribute of a variable or group.
void require_attribute(int status, int group, int of, const std::string& name) {
  check_netcdf(status, name);
  int number = -1;
  require_made(nc_inq_attid(group, of, name.c_str(), &number));
}

}  // namespace

NetcdfGroup NetcdfGroup::define_group(const std::string& name) const {
  int id = -1;
  check_netcdf(nc_def_grp(id_, name.c_str(), &id), name);
  require_made(nc_inq_grp_ncid(id_, name.c_str(), &id));
  return NetcdfGroup(id, puts_);
}

void NetcdfGroup::define_dimension(const std::string& name, std::size_t size) const {
  int id = -1;
  check_netcdf(nc_def_dim(id_, name.c_str(), size, &id), name);
  require_made(nc_inq_dimid(id_, name.c_str(), &id));
}

void NetcdfGroup::put_attribute(const std::string& name, std::string_view text) const {
  if (text.size() > max_plain_text) {
    const std::string copy(text);
    const char* pointer = copy.c_str();
    return require_attribute(nc_put_att_string(id_, NC_GLOBAL, name.c_str(), 1, &pointer), id_,
                             NC_GLOBAL, name);
  }
  require_attribute(nc_put_att_text(id_, NC_GLOBAL, name.c_str(), text.size(), text.data()), id_,
                    NC_GLOBAL, name);
}

void NetcdfGroup::put_attribute(const std::string& name, double number) const {
  require_attribute(nc_put_att_double(id_, NC_GLOBAL, name.c_str(), NC_DOUBLE, 1, &number), id_,
                    NC_GLOBAL, name);
}

void NetcdfGroup::put_attribute(const std::string& name, std::int64_t number) const {
  const long long value = number;
  require_attribute(nc_put_att_longlong(id_, NC_GLOBAL, name.c_str(), NC_INT64, 1, &value), id_,
                    NC_GLOBAL, name);
}

void NetcdfGroup::put_coordinates(const std::string& dimension,
                                  const std::vector<std::string>& names) const {
  int wanted = -1;
  check_netcdf(nc_inq_dimid(id_, dimension.c_str(), &wanted), dimension);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : " ") + name;
  int variables = 0;
  check_netcdf(nc_inq_nvars(id_, &variables), "variables");
  for (int id = 0; id < variables; ++id) {
    std::array<char, NC_MAX_NAME + 1> name{};
    int rank = 0;
    std::array<int, NC_MAX_VAR_DIMS> ids{};
    check_netcdf(nc_inq_var(id_, id, name.data(), nullptr, &rank, ids.data(), nullptr), "variable");
    const bool along = std::find(ids.begin(), ids.begin() + rank, wanted) != ids.begin() + rank;
    if (!along || std::ranges::find(names, name.data()) != names.end()) continue;
    require_attribute(nc_put_att_text(id_, id, "coordinates", list.size(), list.data()), id_, id,
                      "coordinates");
  }
}

int NetcdfGroup::define(const std::string& name, int type,
                        const std::vector<std::string>& dimensions,
                        const VariableText& text) const {
  std::vector<int> ids;
  for (const std::string& dimension : dimensions) {
    check_netcdf(nc_inq_dimid(id_, dimension.c_str(), &ids.emplace_back()), dimension);
  }
  int id = -1;
  check_netcdf(nc_def_var(id_, name.c_str(), type, static_cast<int>(ids.size()), ids.data(), &id),
               name);
  const auto put = [&](const char* attribute, const std::string& of) {
    require_attribute(nc_put_att_text(id_, id, attribute, of.size(), of.data()), id_, id,
                      attribute);
  };
  put("long_name", text.long_name);
  if (!text.units.empty()) put("units", text.units);
  return id;
}

void NetcdfGroup::define_doubles(const std::string& name,
                                 const std::vector<std::string>& dimensions,
                                 const VariableText& text) const {
  const int id = define(name, NC_DOUBLE, dimensions, text);
  const double fill = std::numeric_limits<double>::quiet_NaN();
  check_netcdf(nc_def_var_fill(id_, id, NC_FILL, &fill), name);
}

void NetcdfGroup::put(const std::string& name, const Slab& where,
                      std::vector<double> values) const {
  const int id = variable(name);
  require_size(slab_size(id_, id, where, name), values.size(), name);
  if (values.empty()) return;
  puts_->push_back([group = id_, id, where, name, all = std::move(values)] {
    check_netcdf(nc_put_vara_double(group, id, where.start.data(), where.count.data(), all.data()),
                 name);
  });
}

void NetcdfGroup::write(const std::string& name, const std::vector<std::string>& dimensions,
                        const VariableText& text, std::vector<double> values) const {
  define_doubles(name, dimensions, text);
  Slab all;
  for (const std::string& length : dimensions) all.count.push_back(dimension(length));
  all.start.assign(all.count.size(), 0);
  put(name, all, std::move(values));
}

void NetcdfGroup::write(const std::string& name, const std::vector<std::string>& dimensions,
                        const VariableText& text, std::function<std::vector<double>()> values,
                        bool single) const {
  if (single) {
    define(name, NC_FLOAT, dimensions, text);
  } else {
    define_doubles(name, dimensions, text);
  }
  puts_->push_back([group = *this, id = variable(name), name, values = std::move(values)] {
    const std::vector<double> all = values();
    require_size(group.size(id), all.size(), name);
    if (!all.empty()) check_netcdf(nc_put_var_double(group.id_, id, all.data()), name);
  });
}

void NetcdfGroup::write(const std::string& name, const std::vector<std::string>& dimensions,
                        const VariableText& text, std::vector<std::int64_t> values) const {
  const int id = define(name, NC_INT64, dimensions, text);
  require_size(size(id), values.size(), name);
  if (values.empty()) return;
  puts_->push_back([group = id_, id, name, all = std::move(values)] {
    check_netcdf(nc_put_var(group, id, all.data()), name);
  });
}

void NetcdfGroup::write(const std::string& name, const std::vector<std::string>& dimensions,
                        const VariableText& text, std::vector<std::string> values) const {
  const int id = define(name, NC_STRING, dimensions, text);
  require_size(size(id), values.size(), name);
  if (values.empty()) return;
  puts_->push_back([group = id_, id, name, all = std::move(values)] {
    std::vector<const char*> pointers;
    for (const std::string& value : all) pointers.push_back(value.c_str());
    check_netcdf(nc_put_var_string(group, id, pointers.data()), name);
  });
}

NetcdfGroup NetcdfGroup::find_group(const std::string& name) const {
  int id = -1;
  check_netcdf(nc_inq_grp_ncid(id_, name.c_str(), &id), name);
  return NetcdfGroup(id);
}

bool NetcdfGroup::has_group(const std::string& name) const {
  int id = -1;
  return is_there(nc_inq_grp_ncid(id_, name.c_str(), &id), NC_ENOGRP, name);
}

bool NetcdfGroup::has_dimension(const std::string& name) const {
  int id = -1;
  return is_there(nc_inq_dimid(id_, name.c_str(), &id), NC_EBADDIM, name);
}

std::size_t NetcdfGroup::dimension(const std::string& name) const {
  int id = -1;
  std::size_t length = 0;
  check_netcdf(nc_inq_dimid(id_, name.c_str(), &id), name);
  check_netcdf(nc_inq_dimlen(id_, id, &length), name);
  return length;
}

bool NetcdfGroup::has_variable(const std::string& name) const {
  int id = -1;
  return is_there(nc_inq_varid(id_, name.c_str(), &id), NC_ENOTVAR, name);
}

std::vector<std::string> NetcdfGroup::variables() const {
  std::vector<std::string> names;
  for (const int id : netcdf_numbers(id_, nc_inq_varids, "variables")) {
    names.push_back(netcdf_name(id_, id, nc_inq_varname, "variable"));
  }
  return names;
}

std::vector<std::string> NetcdfGroup::groups() const {
  const auto name = [](int, int group, char* text) { return nc_inq_grpname(group, text); };
  std::vector<std::string> names;
  for (const int id : netcdf_numbers(id_, nc_inq_grps, "groups")) {
    names.push_back(netcdf_name(id_, id, name, "group"));
  }
  return names;
}

bool NetcdfGroup::holds_integers(const std::string& name) const {
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(id_, variable(name), &type), name);
  return type != NC_FLOAT && type != NC_DOUBLE && type != NC_CHAR && type != NC_STRING;
}

bool NetcdfGroup::holds_singles(const std::string& name) const {
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(id_, variable(name), &type), name);
  return type == NC_FLOAT;
}

std::vector<std::size_t> NetcdfGroup::shape(const std::string& name) const {
  return shape(variable(name));
}

std::vector<std::string> NetcdfGroup::dimensions(const std::string& name) const {
  const int id = variable(name);
  int rank = 0;
  check_netcdf(nc_inq_varndims(id_, id, &rank), name);
  std::vector<int> ids(static_cast<std::size_t>(rank));
  check_netcdf(nc_inq_vardimid(id_, id, ids.data()), name);
  std::vector<std::string> names;
  for (const int dimension : ids) {
    char text[NC_MAX_NAME + 1] = {};
    check_netcdf(nc_inq_dimname(id_, dimension, text), name);
    names.emplace_back(text);
  }
  return names;
}

NetcdfGroup::Values NetcdfGroup::values(const std::string& name) const {
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(id_, variable(name), &type), name);
  if (type == NC_STRING) return texts(name);
  if (type == NC_FLOAT || type == NC_DOUBLE) return doubles(name);
  return integers(name);
}

std::vector<std::pair<std::string, NetcdfGroup::Attribute>> NetcdfGroup::attributes(
    const std::string& name) const {
  const int of = name.empty() ? NC_GLOBAL : variable(name);
  int count = 0;
  check_netcdf(of == NC_GLOBAL ? nc_inq_natts(id_, &count) : nc_inq_varnatts(id_, of, &count),
               name);
  std::vector<std::pair<std::string, Attribute>> all;
  for (int i = 0; i < count; ++i) {
    char key[NC_MAX_NAME + 1] = {};
    check_netcdf(nc_inq_attname(id_, of, i, key), name);
    // Of the file, and not of what it tells.
    if (of == NC_GLOBAL && key == std::string_view(netcdf_sums_attribute)) continue;
    nc_type type = NC_NAT;
    std::size_t length = 0;
    check_netcdf(nc_inq_att(id_, of, key, &type, &length), key);
    if (type != NC_CHAR && length != 1) continue;
    if (type == NC_CHAR || type == NC_STRING) {
      all.emplace_back(key, attribute_text(id_, of, key, type, length));
    } else if (type == NC_FLOAT || type == NC_DOUBLE) {
      double number = 0;
      check_netcdf(nc_get_att_double(id_, of, key, &number), key);
      all.emplace_back(key, number);
    } else {
      long long number = 0;
      check_netcdf(nc_get_att_longlong(id_, of, key, &number), key);
      all.emplace_back(key, std::int64_t{number});
    }
  }
  return all;
}

bool NetcdfGroup::has_attribute(const std::string& name) const {
  int id = -1;
  return is_there(nc_inq_attid(id_, NC_GLOBAL, name.c_str(), &id), NC_ENOTATT, name);
}

std::string NetcdfGroup::text_attribute(const std::string& name) const {
  nc_type type = NC_NAT;
  std::size_t length = 0;
  check_netcdf(nc_inq_att(id_, NC_GLOBAL, name.c_str(), &type, &length), name);
  if (type != NC_CHAR && (type != NC_STRING || length != 1)) {
    throw NetcdfError(name + ": is not text");
  }
  return attribute_text(id_, NC_GLOBAL, name, type, length);
}

std::int64_t NetcdfGroup::integer_attribute(const std::string& name) const {
  nc_type type = NC_NAT;
  std::size_t length = 0;
  check_netcdf(nc_inq_att(id_, NC_GLOBAL, name.c_str(), &type, &length), name);
  if (type == NC_STRING || type == NC_CHAR || length != 1)
    throw NetcdfError(name + ": is not a number");
  if (type == NC_FLOAT || type == NC_DOUBLE) {
    double number = 0;
    check_netcdf(nc_get_att_double(id_, NC_GLOBAL, name.c_str(), &number), name);
    return whole(number, name);
  }
  long long value = 0;
  check_netcdf(nc_get_att_longlong(id_, NC_GLOBAL, name.c_str(), &value), name);
  return value;
}

std::vector<double> NetcdfGroup::doubles(const std::string& name) const {
  const int id = number_variable(name);
  std::vector<double> values(size(id));
  if (!values.empty()) check_netcdf(nc_get_var_double(id_, id, values.data()), name);
  return values;
}

std::vector<double> NetcdfGroup::doubles(const std::string& name, const Slab& where) const {
  const int id = number_variable(name);
  std::vector<double> values(slab_size(id_, id, where, name));
  check_netcdf(nc_get_vara_double(id_, id, where.start.data(), where.count.data(), values.data()),
               name);
  return values;
}

std::vector<std::int64_t> NetcdfGroup::integers(const std::string& name) const {
  const int id = number_variable(name);
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(id_, id, &type), name);
  if (type == NC_FLOAT || type == NC_DOUBLE) {
    std::vector<std::int64_t> values;
    for (const double number : doubles(name)) values.push_back(whole(number, name));
    return values;
  }
  std::vector<long long> values(size(id));
  if (!values.empty()) check_netcdf(nc_get_var_longlong(id_, id, values.data()), name);
  return {values.begin(), values.end()};
}

std::vector<std::string> NetcdfGroup::texts(const std::string& name) const {
  const int id = variable(name);
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(id_, id, &type), name);
  if (type != NC_STRING) throw NetcdfError(name + ": is not text");
  std::vector<char*> pointers(size(id));
  if (pointers.empty()) return {};
  check_netcdf(nc_get_var_string(id_, id, pointers.data()), name);
  std::vector<std::string> values;
  for (const char* pointer : pointers) values.push_back(netcdf_text(pointer));
  nc_free_string(pointers.size(), pointers.data());
  return values;
}

int NetcdfGroup::variable(const std::string& name) const {
  int id = -1;
  check_netcdf(nc_inq_varid(id_, name.c_str(), &id), name);
  return id;
}

int NetcdfGroup::number_variable(const std::string& name) const {
  const int id = variable(name);
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(id_, id, &type), name);
  // The library finds this out too, but only after it has read the texts, which it then leaks.
  if (type == NC_STRING || type == NC_CHAR) throw NetcdfError(name + ": is not a number");
  return id;
}

std::vector<std::size_t> NetcdfGroup::shape(int variable) const {
  return netcdf_lengths(id_, variable, "variable");
}

std::size_t NetcdfGroup::size(int variable) const {
  char name[NC_MAX_NAME + 1] = {};
  check_netcdf(nc_inq_varname(id_, variable, name), "variable");
  return checked_netcdf_size(shape(variable), name);
}

NetcdfImage::NetcdfImage() : id_(new_netcdf_image()) {}

NetcdfImage::~NetcdfImage() {
  if (id_ >= 0) nc_abort(id_);
}

void NetcdfImage::save(const std::string& path) {
  fill();
  root().put_attribute(netcdf_sums_attribute, netcdf_sums(id_));
  const NetcdfBytes image = close_netcdf_image(std::exchange(id_, -1));
  const std::string_view content(static_cast<const char*>(image.memory.get()), image.size);
  write_atomically(path, [&](const TextSink& out) {
    out(content);
    out(netcdf_trailer(content));
  });
}

NetcdfBytes NetcdfImage::bytes() {
  fill();
  return close_netcdf_image(std::exchange(id_, -1));
}

void NetcdfImage::fill() {
  check_netcdf(nc_enddef(id_), in_memory);
  for (auto& put : puts_) {
    put();
    put = {};  // what it holds is in the image now
  }
}

NetcdfStream::NetcdfStream(const std::string& path) {
  check_netcdf(nc_create(path.c_str(), NC_NETCDF4 | NC_CLOBBER, &id_), path);
}

NetcdfStream::~NetcdfStream() {
  if (id_ >= 0) nc_abort(id_);
}

void NetcdfStream::define_array(const std::string& name, Type type,
                                const std::vector<std::string>& dimensions,
                                const VariableText& text) {
  const int number = type == Type::float32   ? NC_FLOAT
                     : type == Type::float64 ? NC_DOUBLE
                                             : NC_INT64;
  const int variable = root().define(name, number, dimensions, text);
  check_netcdf(nc_def_var_chunking(id_, variable, NC_CONTIGUOUS, nullptr), name);
  check_netcdf(nc_def_var_fill(id_, variable, NC_NOFILL, nullptr), name);
  arrays_.push_back(name);
}

void NetcdfStream::begin_data() {
  check_netcdf(nc_enddef(id_), "definitions");
  // The library gives a variable its place in the file when something is first put into it.
  for (const std::string& name : arrays_) {
    const int variable = root().variable(name);
    int rank = 0;
    check_netcdf(nc_inq_varndims(id_, variable, &rank), name);
    const std::vector<std::size_t> first(static_cast<std::size_t>(rank), 0);
    const std::vector<std::size_t> one(static_cast<std::size_t>(rank), 1);
    const double zero = 0;  // of any type
    check_netcdf(nc_put_vara(id_, variable, first.data(), one.data(), &zero), name);
  }
}

void NetcdfStream::put(const std::string& name, const NetcdfGroup::Slab& where,
                       const void* values) {
  const int variable = root().variable(name);
  slab_size(id_, variable, where, name);  // the ranks agree
  check_netcdf(nc_put_vara(id_, variable, where.start.data(), where.count.data(), values), name);
}

void NetcdfStream::close() {
  const int id = id_;
  id_ = -1;
  check_netcdf(nc_close(id), "closing the file");
}

/// The library takes locks, which some file systems do not have, and crashes where a file cannot be
/// read or closed; so it is given the bytes.
NetcdfInput::NetcdfInput(const std::string& path)
    : bytes_(trusted_netcdf(path, read_file(path, std::numeric_limits<std::uint64_t>::max()))) {
  open(bytes_);
}

NetcdfInput::NetcdfInput(const NetcdfBytes& bytes) {
  open(bytes);
}

void NetcdfInput::open(const NetcdfBytes& bytes) {
  // The library only reads them: NC_NOWRITE.
  check_netcdf(nc_open_mem("image", NC_NOWRITE, bytes.size, bytes.memory.get(), &id_), in_memory);
}

NetcdfInput::~NetcdfInput() {
  if (id_ >= 0) nc_close(id_);
}

}  // namespace headlab
