// SPDX-License-Identifier: Apache-2.0
#include "engine/files/netcdf/sums.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <netcdf.h>
#include <netcdf_mem.h>

#include "engine/files/available_memory.h"
#include "engine/files/error.h"
#include "engine/files/netcdf/packing.h"
#include "engine/files/sha256.h"

namespace headlab {
namespace {

constexpr std::size_t part_bytes = std::size_t{1} << 24;  ///< of a variable, read at once

constexpr std::string_view trailer_start = "\nheadlab SHA-256 ";
static_assert(netcdf_trailer_size == trailer_start.size() + sha256_digits + 1);

using Names = std::vector<std::string>;

/// Names of attributes by what has them, as "variable /nodes/mean", with its sum.
struct Entry {
  std::string sum;
  Names attributes;
};
using Entries = std::map<std::string, Entry>;

/// Types that every file has; others are defined in the file.
bool is_plain(nc_type type) {
  return type > NC_NAT && type <= NC_MAX_ATOMIC_TYPE;
}

std::size_t size_of_type(int group, nc_type type, const std::string& about) {
  std::size_t size = 0;
  check_netcdf(nc_inq_type(group, type, nullptr, &size), about);
  return size;
}

int group_name(int, int group, char* name) {
  return nc_inq_grpname(group, name);
}

Names attribute_names(int group, int of, const std::string& about) {
  int count = 0;
  check_netcdf(of == NC_GLOBAL ? nc_inq_natts(group, &count) : nc_inq_varnatts(group, of, &count),
               about);
  Names names;
  for (int i = 0; i < count; ++i) {
    char name[NC_MAX_NAME + 1] = {};
    check_netcdf(nc_inq_attname(group, of, i, name), about);
    if (of == NC_GLOBAL && name == std::string_view(netcdf_sums_attribute)) continue;
    names.emplace_back(name);
  }
  return names;
}

void add_number(Sha256& sum, std::size_t number) {
  sum.add(std::to_string(number));
}

void add_texts(Sha256& sum, char* const* texts, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum.add(netcdf_text(texts[i]));
}

void add_attribute(Sha256& sum, int group, int of, const std::string& name) {
  nc_type type = NC_NAT;
  std::size_t length = 0;
  check_netcdf(nc_inq_att(group, of, name.c_str(), &type, &length), name);
  sum.add(name);
  add_number(sum, static_cast<std::size_t>(type));
  add_number(sum, length);
  if (length == 0 || !is_plain(type)) return;
  if (type == NC_STRING) {
    std::vector<char*> texts(length);
    check_netcdf(nc_get_att_string(group, of, name.c_str(), texts.data()), name);
    add_texts(sum, texts.data(), length);
    nc_free_string(length, texts.data());
    return;
  }
  std::vector<std::byte> bytes(checked_netcdf_size({length}, name) *
                               size_of_type(group, type, name));
  check_netcdf(nc_get_att(group, of, name.c_str(), bytes.data()), name);
  sum.add(bytes);
}

std::string sum_of_attributes(const std::string& key, int group, const Names& names) {
  Sha256 sum;
  sum.add(key);
  for (const std::string& name : names) add_attribute(sum, group, NC_GLOBAL, name);
  return sum.digest();
}

std::string sum_of_dimension(const std::string& key, std::size_t length) {
  Sha256 sum;
  sum.add(key);
  add_number(sum, length);
  return sum.digest();
}

/// A part of a variable: whole rows along its first dimension.
struct Part {
  std::vector<std::size_t> start, count;
  std::size_t items = 0, bytes = 0;
};

/// Calls `use` for the parts of a variable, one after the other.
void for_parts(const std::string& key, int group, int variable,
               const std::function<void(const Part&)>& use) {
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(group, variable, &type), key);
  const std::size_t item = size_of_type(group, type, key);
  const std::vector<std::size_t> lengths = netcdf_lengths(group, variable, key);
  Part part{.start = std::vector<std::size_t>(lengths.size()), .count = lengths};
  const std::size_t rows = lengths.empty() ? 1 : lengths[0];
  std::vector<std::size_t> row(lengths.begin() + (lengths.empty() ? 0 : 1), lengths.end());
  const std::size_t row_items = checked_netcdf_size(row, key);
  if (rows == 0 || row_items == 0) return;
  const std::size_t at_once = std::clamp(part_bytes / (row_items * item), std::size_t{1}, rows);
  checked_netcdf_size({at_once, row_items}, key);
  for (std::size_t row_number = 0; row_number < rows; row_number += at_once) {
    const std::size_t now = std::min(at_once, rows - row_number);
    if (!lengths.empty()) {
      part.start[0] = row_number;
      part.count[0] = now;
    }
    part.items = now * row_items;
    part.bytes = part.items * item;
    use(part);
  }
}

/// The same with the values of the part: of the variable's type, char* for texts.
void for_values(const std::string& key, int group, int variable,
                const std::function<void(const Part&, void*)>& use) {
  nc_type type = NC_NAT;
  check_netcdf(nc_inq_vartype(group, variable, &type), key);
  std::vector<std::uint64_t> values;  // aligned for every type
  for_parts(key, group, variable, [&](const Part& part) {
    values.resize((part.bytes + 7) / 8);
    check_netcdf(nc_get_vara(group, variable, part.start.data(), part.count.data(), values.data()),
                 key);
    use(part, values.data());
    if (type == NC_STRING) nc_free_string(part.items, reinterpret_cast<char**>(values.data()));
  });
}

/// Returns the sum of a variable; `use` is given its values, part by part.
std::string sum_of_variable(const std::string& key, int group, int variable,
                            const Names& attributes,
                            const std::function<void(const Part&, void*)>& use) {
  nc_type type = NC_NAT;
  int rank = 0;
  check_netcdf(nc_inq_var(group, variable, nullptr, &type, &rank, nullptr, nullptr), key);
  std::vector<int> dimensions(static_cast<std::size_t>(rank));
  check_netcdf(nc_inq_vardimid(group, variable, dimensions.data()), key);
  const std::vector<std::size_t> lengths = netcdf_lengths(group, variable, key);
  Sha256 sum;
  sum.add(key);
  add_number(sum, static_cast<std::size_t>(type));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sum.add(netcdf_name(group, dimensions[i], nc_inq_dimname, "dimension"));
    add_number(sum, lengths[i]);
  }
  for (const std::string& name : attributes) add_attribute(sum, group, variable, name);
  for_values(key, group, variable, [&](const Part& part, void* values) {
    if (type == NC_STRING) {
      add_texts(sum, static_cast<char**>(values), part.items);
    } else {
      sum.add({static_cast<const std::byte*>(values), part.bytes});
    }
    if (use) use(part, values);
  });
  return sum.digest();
}

std::string text_of_entry(const std::string& key, const Entry& entry) {
  std::string line = entry.sum + "\t" + key;
  for (const std::string& name : entry.attributes) line += "\t" + name;
  return line + "\n";
}

void add_sums(int group, const std::string& path, std::string& text) {
  const Names names = attribute_names(group, NC_GLOBAL, path);
  const std::string of_group = "group " + (path.empty() ? "/" : path);
  text += text_of_entry(of_group, {sum_of_attributes(of_group, group, names), names});
  const auto own_dimensions = [](int of, int* count, int* ids) {
    return nc_inq_dimids(of, count, ids, 0);
  };
  for (const int dimension : netcdf_numbers(group, own_dimensions, "dimensions")) {
    const std::string key =
        "dimension " + path + "/" + netcdf_name(group, dimension, nc_inq_dimname, "dimension");
    std::size_t length = 0;
    check_netcdf(nc_inq_dimlen(group, dimension, &length), key);
    text += text_of_entry(key, {sum_of_dimension(key, length), {}});
  }
  for (const int variable : netcdf_numbers(group, nc_inq_varids, "variables")) {
    const std::string key =
        "variable " + path + "/" + netcdf_name(group, variable, nc_inq_varname, "variable");
    const Names attributes = attribute_names(group, variable, key);
    text += text_of_entry(key, {sum_of_variable(key, group, variable, attributes, {}), attributes});
  }
  for (const int inside : netcdf_numbers(group, nc_inq_grps, "groups")) {
    add_sums(inside, path + "/" + netcdf_name(group, inside, group_name, "group"), text);
  }
}

Names split(std::string_view text, char at) {
  Names parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// A file that is open; number -1 is none.
struct OpenFile {
  int number = -1;
  OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number >= 0) nc_abort(number);
  }
};

/// Bytes of values that a file may have for each of its own, and those that any file may have: zlib
/// packs a thousand in one, and HDF5 keeps nothing of what was never written.
constexpr std::uint64_t max_packed = 2000, max_unwritten = std::uint64_t{1} << 25;

class Copier {
 public:
  explicit Copier(std::string& bytes) : size_(bytes.size()) {
    check_netcdf(nc_open_mem("image", NC_NOWRITE, bytes.size(), bytes.data(), &from_.number),
                 "the file");
    to_.number = new_netcdf_image();
  }

  NetcdfCopy copy() {
    read_list();
    require_room(from_.number, "");
    define(from_.number, to_.number, "");
    check_netcdf(nc_enddef(to_.number), "the copy");
    for (const Variable& one : variables_) copy_values(one);
    for (const auto& [key, entry] : listed_.value_or(Entries())) {
      if (!found_.contains(key)) throw NetcdfDamage(key + " is missing");
    }
    copy_.image = close_netcdf_image(std::exchange(to_.number, -1));
    return std::move(copy_);
  }

 private:
  struct Variable {
    std::string key;
    int from_group, from, to_group, to;
    std::optional<NetcdfPacking> packing;  ///< where values are copied as what they mean
  };

  static std::vector<double> numbers_of(const std::string& key, int group, int variable,
                                        const Part& part) {
    std::vector<double> numbers(part.items);
    check_netcdf(
        nc_get_vara_double(group, variable, part.start.data(), part.count.data(), numbers.data()),
        key);
    return numbers;
  }

  void copy_values(const Variable& one) const {
    if (one.packing) {
      return for_parts(one.key, one.from_group, one.from, [&](const Part& part) {
        std::vector<double> numbers = numbers_of(one.key, one.from_group, one.from, part);
        one.packing->unpack(numbers);
        check_netcdf(nc_put_vara_double(one.to_group, one.to, part.start.data(), part.count.data(),
                                        numbers.data()),
                     one.key);
      });
    }
    const auto put = [&](const Part& part, void* values) {
      check_netcdf(nc_put_vara(one.to_group, one.to, part.start.data(), part.count.data(), values),
                   one.key);
    };
    if (!listed_) return for_values(one.key, one.from_group, one.from, put);
    require_sum(one.key, [&] {
      return sum_of_variable(one.key, one.from_group, one.from, listed_->at(one.key).attributes,
                             put);
    });
  }

  /// The packing of a variable of another program, where its values are not what they mean.
  static std::optional<NetcdfPacking> packing_of(const std::string& key, int group, int variable) {
    NetcdfPacking packing(group, variable, key);
    bool needed = packing.is_packed();
    if (!needed) {
      for_parts(key, group, variable, [&](const Part& part) {
        needed = needed || std::ranges::any_of(numbers_of(key, group, variable, part),
                                               [&](double x) { return packing.is_missing(x); });
      });
    }
    return needed ? std::optional(packing) : std::nullopt;
  }

  void read_list() {
    nc_type type = NC_NAT;
    std::size_t length = 0;
    const int root = from_.number;
    if (nc_inq_att(root, NC_GLOBAL, netcdf_sums_attribute, &type, &length) != NC_NOERR) {
      int id = -1;
      copy_.lacks_sums = nc_inq_attid(root, NC_GLOBAL, "headlab_version", &id) == NC_NOERR;
      return;
    }
    std::string text;
    if (type == NC_STRING && length == 1) {
      char* pointer = nullptr;
      check_netcdf(nc_get_att_string(root, NC_GLOBAL, netcdf_sums_attribute, &pointer), "sums");
      text = netcdf_text(pointer);
      nc_free_string(1, &pointer);
    } else if (type == NC_CHAR) {
      text.resize(length);
      check_netcdf(nc_get_att_text(root, NC_GLOBAL, netcdf_sums_attribute, text.data()), "sums");
    }
    listed_.emplace();
    for (const std::string& line : split(text, '\n')) {
      if (line.empty()) continue;
      Names fields = split(line, '\t');
      if (fields.size() < 2) throw NetcdfDamage("attribute sums");
      const std::string key = fields[1], sum = fields[0];
      fields.erase(fields.begin(), fields.begin() + 2);
      listed_->insert_or_assign(key, Entry{sum, std::move(fields)});
    }
  }

  /// Whether it is to be copied. What is not in the list is named.
  bool takes(const std::string& key) {
    found_.insert(key);
    if (!listed_ || listed_->contains(key)) return true;
    copy_.others.push_back(key);
    return false;
  }

  /// `sum` is called where there is a list.
  void require_sum(const std::string& key, const std::function<std::string()>& sum) const {
    if (listed_ && listed_->at(key).sum != sum()) throw NetcdfDamage(key + " has another sum");
  }

  /// Throws where the values of all variables that are copied are more than such a file holds, or
  /// than the memory available: before any is read.
  void require_room(int group, const std::string& path) {
    for (const int variable : netcdf_numbers(group, nc_inq_varids, "variables")) {
      const std::string key =
          "variable " + path + "/" + netcdf_name(group, variable, nc_inq_varname, "variable");
      nc_type type = NC_NAT;
      check_netcdf(nc_inq_vartype(group, variable, &type), key);
      if (listed_ ? !listed_->contains(key) : !is_plain(type)) continue;
      double bytes = static_cast<double>(size_of_type(group, type, key));
      for (const std::size_t length : netcdf_lengths(group, variable, key)) {
        bytes *= static_cast<double>(length);
      }
      bytes_of_values_ += bytes;
      if (bytes_of_values_ > static_cast<double>(std::max(max_packed * size_, max_unwritten))) {
        throw NetcdfError(key + ": has more values than a file of " + format_bytes(size_) +
                          " holds");
      }
      if (bytes_of_values_ > static_cast<double>(available_)) {
        throw RunFailed(
            key + ": needs " + format_bytes(static_cast<std::uint64_t>(bytes_of_values_)) +
            " of memory with the variables before it, " + format_bytes(available_) + " available");
      }
    }
    for (const int inside : netcdf_numbers(group, nc_inq_grps, "groups")) {
      const std::string inner = path + "/" + netcdf_name(group, inside, group_name, "group");
      if (!listed_ || listed_->contains("group " + inner)) require_room(inside, inner);
    }
  }

  /// Copies attributes that are listed, or all that are no type of the file's own; returns them.
  Names copy_attributes(const std::string& key, int from_group, int from, int to_group, int to,
                        bool unpacked = false) {
    Names copied;
    const Names there = attribute_names(from_group, from, key);
    if (listed_) {
      const Names& wanted = listed_->at(key).attributes;
      for (const std::string& name : there) {
        if (std::ranges::find(wanted, name) == wanted.end()) {
          copy_.others.push_back("attribute " + name + " of " + key);
        }
      }
      for (const std::string& name : wanted) {
        if (std::ranges::find(there, name) == there.end()) {
          throw NetcdfDamage("attribute " + name + " of " + key + " is missing");
        }
      }
      copied = wanted;
    } else {
      for (const std::string& name : there) {
        nc_type type = NC_NAT;
        check_netcdf(nc_inq_atttype(from_group, from, name.c_str(), &type), name);
        if (!is_plain(type) || (unpacked && NetcdfPacking::is_attribute(name))) continue;
        copied.push_back(name);
      }
    }
    for (const std::string& name : copied) {
      check_netcdf(nc_copy_att(from_group, from, name.c_str(), to_group, to), name);
    }
    return copied;
  }

  void define(int from, int to, const std::string& path) {
    const std::string of_group = "group " + (path.empty() ? "/" : path);
    found_.insert(of_group);
    if (listed_ && !listed_->contains(of_group)) throw NetcdfDamage(of_group + " has no sum");
    const Names attributes = copy_attributes(of_group, from, NC_GLOBAL, to, NC_GLOBAL);
    require_sum(of_group, [&] { return sum_of_attributes(of_group, from, attributes); });
    const auto own_dimensions = [](int of, int* count, int* ids) {
      return nc_inq_dimids(of, count, ids, 0);
    };
    for (const int dimension : netcdf_numbers(from, own_dimensions, "dimensions")) {
      const std::string name = netcdf_name(from, dimension, nc_inq_dimname, "dimension");
      const std::string key = "dimension " + path + "/" + name;
      if (!takes(key)) continue;
      std::size_t length = 0;
      check_netcdf(nc_inq_dimlen(from, dimension, &length), key);
      require_sum(key, [&] { return sum_of_dimension(key, length); });
      check_netcdf(nc_def_dim(to, name.c_str(), length, &dimensions_[dimension]), key);
    }
    for (const int variable : netcdf_numbers(from, nc_inq_varids, "variables")) {
      define_variable(from, variable, to, path);
    }
    for (const int inside : netcdf_numbers(from, nc_inq_grps, "groups")) {
      const std::string name = netcdf_name(from, inside, group_name, "group");
      if (!takes("group " + path + "/" + name)) continue;
      int made = -1;
      check_netcdf(nc_def_grp(to, name.c_str(), &made), name);
      define(inside, made, path + "/" + name);
    }
  }

  void define_variable(int from, int variable, int to, const std::string& path) {
    const std::string name = netcdf_name(from, variable, nc_inq_varname, "variable");
    const std::string key = "variable " + path + "/" + name;
    nc_type type = NC_NAT;
    int rank = 0;
    check_netcdf(nc_inq_var(from, variable, nullptr, &type, &rank, nullptr, nullptr), key);
    if (!takes(key) || (!listed_ && !is_plain(type))) return;
    std::vector<int> dimensions(static_cast<std::size_t>(rank));
    check_netcdf(nc_inq_vardimid(from, variable, dimensions.data()), key);
    for (int& one : dimensions) {
      const auto at = dimensions_.find(one);
      if (at == dimensions_.end()) throw NetcdfDamage(key + " has a dimension without a sum");
      one = at->second;
    }
    Variable made{
        .key = key, .from_group = from, .from = variable, .to_group = to, .to = -1, .packing = {}};
    if (!listed_ && type != NC_CHAR && type != NC_STRING) {
      made.packing = packing_of(key, from, variable);
      if (made.packing && type != NC_FLOAT) type = NC_DOUBLE;
      if (made.packing && made.packing->is_packed()) type = NC_DOUBLE;
    }
    check_netcdf(nc_def_var(to, name.c_str(), type, rank, dimensions.data(), &made.to), key);
    copy_attributes(key, from, variable, to, made.to, made.packing.has_value());
    variables_.push_back(std::move(made));
  }

  std::uint64_t size_;  ///< of the file
  std::uint64_t available_ = available_bytes();
  double bytes_of_values_ = 0;  ///< no length overflows
  OpenFile from_, to_;
  std::optional<Entries> listed_;
  std::set<std::string> found_;
  std::map<int, int> dimensions_;
  std::vector<Variable> variables_;
  NetcdfCopy copy_;
};

}  // namespace

std::string netcdf_sums(int root) {
  std::string text;
  add_sums(root, "", text);
  return text;
}

NetcdfCopy checked_netcdf_copy(std::string& bytes) {
  try {
    return Copier(bytes).copy();
  } catch (const NetcdfDamage&) {
    throw;
  } catch (const NetcdfError& error) {
    // What begins as such a file is one.
    if (bytes.starts_with("\x89HDF") || bytes.starts_with("CDF")) throw NetcdfDamage(error.what());
    throw;
  }
}

std::string netcdf_trailer(std::string_view bytes) {
  Sha256 sum;
  sum.add(std::as_bytes(std::span(bytes)));
  return std::string(trailer_start) + sum.digest() + "\n";
}

Trailer trailer_of(std::string_view bytes) {
  if (bytes.size() < netcdf_trailer_size) return Trailer::none;
  const std::string_view content = bytes.substr(0, bytes.size() - netcdf_trailer_size);
  const std::string_view trailer = bytes.substr(content.size());
  if (!trailer.starts_with(trailer_start) || !trailer.ends_with('\n')) return Trailer::none;
  return netcdf_trailer(content) == trailer ? Trailer::right : Trailer::wrong;
}

}  // namespace headlab
