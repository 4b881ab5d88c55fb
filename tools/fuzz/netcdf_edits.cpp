// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/netcdf_edits.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <netcdf.h>
#include <netcdf_mem.h>

#include "engine/files/input_file.h"
#include "engine/files/netcdf/calls.h"
#include "engine/files/netcdf/sums.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

/// Lines beyond are passed over: a file with many edits is no better than one with some.
constexpr int max_edits = 32;
constexpr std::size_t max_file = std::size_t{1} << 24;
constexpr std::uint64_t max_length = std::uint64_t{1} << 60;

/// A group and what is named in it.
struct Place {
  int group;
  std::string name;
};

Place place_of(int root, const std::string& path) {
  Place place{root, path};
  for (auto slash = place.name.find('/'); slash != std::string::npos;
       slash = place.name.find('/')) {
    int inside = -1;
    const std::string group = place.name.substr(0, slash);
    if (nc_inq_grp_ncid(place.group, group.c_str(), &inside) != NC_NOERR) break;
    place = {inside, place.name.substr(slash + 1)};
  }
  return place;
}

/// Renames what is there, so that another can have its name.
void move_away(const Place& place) {
  int id = -1;
  const std::string aside = "old_" + place.name;
  if (nc_inq_varid(place.group, place.name.c_str(), &id) == NC_NOERR) {
    nc_rename_var(place.group, id, aside.c_str());
  }
  // The library crashes at a dimension that has lost its variable so.
  if (nc_inq_dimid(place.group, place.name.c_str(), &id) == NC_NOERR &&
      nc_inq_varid(place.group, aside.c_str(), &id) != NC_NOERR) {
    nc_inq_dimid(place.group, place.name.c_str(), &id);
    nc_rename_dim(place.group, id, aside.c_str());
  }
}

void rename(const Place& place, const std::string& name) {
  int id = -1;
  if (nc_inq_varid(place.group, place.name.c_str(), &id) == NC_NOERR) {
    nc_rename_var(place.group, id, name.c_str());
  } else if (nc_inq_dimid(place.group, place.name.c_str(), &id) == NC_NOERR) {
    nc_rename_dim(place.group, id, name.c_str());
  } else if (nc_inq_grp_ncid(place.group, place.name.c_str(), &id) == NC_NOERR) {
    nc_rename_grp(id, name.c_str());
  }
}

void define(const Place& place, const std::string& type, std::istream& dimensions) {
  std::vector<int> ids;
  for (std::string name; dimensions >> name && ids.size() < 6;) {
    int id = -1;
    if (nc_inq_dimid(place.group, name.c_str(), &id) == NC_NOERR) ids.push_back(id);
  }
  const nc_type number = type == "int64"    ? NC_INT64
                         : type == "float"  ? NC_FLOAT
                         : type == "char"   ? NC_CHAR
                         : type == "string" ? NC_STRING
                                            : NC_DOUBLE;
  int variable = -1;
  move_away(place);
  nc_def_var(place.group, place.name.c_str(), number, static_cast<int>(ids.size()), ids.data(),
             &variable);
  // In chunks, so that nothing is stored of what is not put.
  const std::vector<std::size_t> ones(ids.size(), 1);
  if (!ids.empty()) nc_def_var_chunking(place.group, variable, NC_CHUNKED, ones.data());
}

void put(const Place& place, std::uint64_t position, const std::string& value) {
  int variable = -1;
  int rank = 0;
  nc_type type = NC_NAT;
  int ids[NC_MAX_VAR_DIMS];
  if (nc_inq_varid(place.group, place.name.c_str(), &variable) != NC_NOERR ||
      nc_inq_var(place.group, variable, nullptr, &type, &rank, ids, nullptr) != NC_NOERR) {
    return;
  }
  std::vector<std::size_t> at(static_cast<std::size_t>(rank));
  for (std::size_t axis = at.size(); axis-- > 0;) {
    std::size_t length = 0;
    nc_inq_dimlen(place.group, ids[axis], &length);
    if (length == 0) return;
    at[axis] = position % length;
    position /= length;
  }
  const char* text = value.c_str();
  if (type == NC_STRING) {
    nc_put_var1_string(place.group, variable, at.data(), &text);
  } else if (type == NC_CHAR) {
    nc_put_var1_text(place.group, variable, at.data(), text);
  } else if (type == NC_INT64) {
    const long long number = std::strtoll(text, nullptr, 10);
    nc_put_var1_longlong(place.group, variable, at.data(), &number);
  } else {
    const double number = std::strtod(text, nullptr);
    nc_put_var1_double(place.group, variable, at.data(), &number);
  }
}

void apply_edit(int root, const std::string& line) {
  std::istringstream words(line);
  std::string act, path;
  words >> act >> path;
  if (path.empty() || path.find('\0') != std::string::npos || path.size() > 100) return;
  const Place place = place_of(root, path);
  const auto rest = [&] {
    std::string text;
    std::getline(words >> std::ws, text);
    return text;
  };
  if (act == "put") {
    std::uint64_t position = 0;
    words >> position;
    put(place, position, rest());
  } else if (act == "dimension") {
    std::uint64_t length = 0;
    int id = -1;
    words >> length;
    move_away(place);
    // 0 would be an axis without end, which is another thing, and more have no room in bytes.
    length = std::clamp<std::uint64_t>(length, 1, max_length);
    nc_def_dim(place.group, place.name.c_str(), length, &id);
  } else if (act == "define") {
    std::string type;
    words >> type;
    define(place, type, words);
  } else if (act == "number") {
    double number = 0;
    const std::string text = rest();
    if (text.find_first_of(".e") == std::string::npos) {
      const long long integer = std::strtoll(text.c_str(), nullptr, 10);
      nc_put_att_longlong(place.group, NC_GLOBAL, place.name.c_str(), NC_INT64, 1, &integer);
    } else {
      number = std::strtod(text.c_str(), nullptr);
      nc_put_att_double(place.group, NC_GLOBAL, place.name.c_str(), NC_DOUBLE, 1, &number);
    }
  } else if (act == "text") {
    const std::string text = rest();
    nc_put_att_text(place.group, NC_GLOBAL, place.name.c_str(), text.size(), text.data());
  } else if (act == "drop") {
    nc_del_att(place.group, NC_GLOBAL, place.name.c_str());
  } else if (act == "rename") {
    std::string name;
    if (words >> name) rename(place, name);
  } else if (act == "group") {
    int id = -1;
    nc_def_grp(place.group, place.name.c_str(), &id);
  }
}

void check(int status) {
  if (status != NC_NOERR) throw std::runtime_error(nc_strerror(status));
}

/// Copies a variable; that of the library fails at texts.
void copy_variable(int from, int variable, int to) {
  char name[NC_MAX_NAME + 1] = {};
  nc_type type = NC_NAT;
  int rank = 0, attributes = 0, made = -1;
  int dimensions[NC_MAX_VAR_DIMS];
  check(nc_inq_var(from, variable, name, &type, &rank, dimensions, &attributes));
  std::size_t size = 1;
  for (int axis = 0; axis < rank; ++axis) {
    char dimension[NC_MAX_NAME + 1] = {};
    std::size_t length = 0;
    check(nc_inq_dim(from, dimensions[axis], dimension, &length));
    check(nc_inq_dimid(to, dimension, &dimensions[axis]));
    size *= length;
  }
  check(nc_def_var(to, name, type, rank, dimensions, &made));
  for (int i = 0; i < attributes; ++i) {
    char attribute[NC_MAX_NAME + 1] = {};
    check(nc_inq_attname(from, variable, i, attribute));
    if (std::string_view(attribute) == "_FillValue") continue;
    check(nc_copy_att(from, variable, attribute, to, made));
  }
  if (type == NC_STRING) {
    std::vector<char*> texts(size);
    check(nc_get_var_string(from, variable, texts.data()));
    std::vector<const char*> same(texts.begin(), texts.end());
    check(nc_put_var_string(to, made, same.data()));
    check(nc_free_string(size, texts.data()));
    return;
  }
  std::vector<double> numbers(size);  // of any type
  check(nc_get_var(from, variable, numbers.data()));
  check(nc_put_var(to, made, numbers.data()));
}

void copy_group(int from, int to) {
  char name[NC_MAX_NAME + 1] = {};
  int count = 0;
  int ids[NC_MAX_VARS];
  check(nc_inq_dimids(from, &count, ids, 0));
  for (int i = 0; i < count; ++i) {
    std::size_t length = 0;
    int id = -1;
    check(nc_inq_dim(from, ids[i], name, &length));
    check(nc_def_dim(to, name, length, &id));
  }
  check(nc_inq_natts(from, &count));
  for (int i = 0; i < count; ++i) {
    check(nc_inq_attname(from, NC_GLOBAL, i, name));
    check(nc_copy_att(from, NC_GLOBAL, name, to, NC_GLOBAL));
  }
  check(nc_inq_varids(from, &count, ids));
  for (int i = 0; i < count; ++i) copy_variable(from, ids[i], to);
  check(nc_inq_grps(from, &count, ids));
  for (int i = 0; i < count; ++i) {
    int inside = -1;
    check(nc_inq_grpname(ids[i], name));
    check(nc_def_grp(to, name, &inside));
    copy_group(ids[i], inside);
  }
}

void add_names(int group, const std::string& before, std::vector<std::string>& names) {
  char name[NC_MAX_NAME + 1] = {};
  int count = 0;
  std::vector<int> ids(NC_MAX_VARS);
  const auto add = [&] { names.push_back(before + name); };
  nc_inq_varids(group, &count, ids.data());
  for (int i = 0; i < count; ++i) {
    nc_inq_varname(group, ids[static_cast<std::size_t>(i)], name);
    add();
  }
  nc_inq_dimids(group, &count, ids.data(), 0);
  for (int i = 0; i < count; ++i) {
    nc_inq_dimname(group, ids[static_cast<std::size_t>(i)], name);
    add();
  }
  nc_inq_natts(group, &count);
  for (int i = 0; i < count; ++i) {
    nc_inq_attname(group, NC_GLOBAL, i, name);
    add();
  }
  nc_inq_grps(group, &count, ids.data());
  for (int i = 0; i < count; ++i) {
    const int inside = ids[static_cast<std::size_t>(i)];
    nc_inq_grpname(inside, name);
    add();
    add_names(inside, before + name + "/", names);
  }
}

}  // namespace

std::string editable(const std::string& path) {
  const std::string copy = file_of("", copied_file);
  int from = -1, to = -1;
  check(nc_open(path.c_str(), NC_NOWRITE, &from));
  check(nc_create(copy.c_str(), NC_NETCDF4 | NC_CLOBBER, &to));
  copy_group(from, to);
  nc_del_att(to, NC_GLOBAL, "sums");  // without them edits are read, and not found by the sums
  check(nc_close(to));
  check(nc_close(from));
  return read_file(copy, max_file);
}

void edit(const std::string& path, std::string_view text) {
  int root = -1;
  check(nc_open(path.c_str(), NC_WRITE, &root));
  std::istringstream lines{std::string(text)};
  int edits = 0;
  for (std::string line; edits++ < max_edits && std::getline(lines, line);) apply_edit(root, line);
  check(nc_close(root));
}

void walk(const std::string& path) {
  std::string bytes = read_file(path, max_file);
  try {
    const NetcdfBytes image = checked_netcdf_copy(bytes).image;
    const std::string_view copy(static_cast<const char*>(image.memory.get()), image.size);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << copy << netcdf_trailer(copy);
  } catch (const NetcdfError&) {
  }
}

std::vector<std::string> words_of(const std::vector<std::string>& files) {
  std::vector<std::string> words;
  for (const std::string& file : files) {
    int root = -1;
    std::string bytes = file;
    check(nc_open_mem("read", NC_NOWRITE, bytes.size(), bytes.data(), &root));
    add_names(root, "", words);
    nc_close(root);
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  for (const char* word :
       {"\ndimension ", "\ndefine ", "\nput ", "\nnumber ", "\ntext ", "\ndrop ", "\nrename ",
        "\ngroup ", " double ", " int64 ", " string ", " 0 ", " 1 ", " -1", " nan", " 1e300",
        " 4611686018427387904", " 9223372036854775807", " -9223372036854775808"}) {
    words.emplace_back(word);
  }
  return words;
}

}  // namespace headlab::fuzz
