// SPDX-License-Identifier: Apache-2.0
// Trees by the numbers in their files, and those that are open by the ids of the NetCDF library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netcdf.h>

#include "kernels/host.h"
#include "tools/fuzz/libfuzzer/tree.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

/// What a file of a tree begins with; its number follows.
inline constexpr std::string_view magic = "\x89HDF\r\n\x1a\n\x02tree ";

/// Trees by the numbers in their files: the first ones, which inputs begin with, and the last.
class Trees {
 public:
  std::size_t add(Tree tree) {
    all_[next_] = std::make_shared<Tree>(std::move(tree));
    if (next_ >= 2 * kept) all_.erase(next_ - kept);
    return next_++;
  }
  std::shared_ptr<Tree> find(std::string_view file) const {
    const auto at =
        all_.find(std::strtoull(std::string(file.substr(magic.size(), 20)).c_str(), nullptr, 10));
    require(at != all_.end(), "a tree that is gone");
    return at->second;
  }

 private:
  static constexpr std::size_t kept = 100;
  std::map<std::size_t, std::shared_ptr<Tree>> all_;
  std::size_t next_ = 0;
};

inline Trees& trees() {
  static auto* const all = new Trees;
  return *all;
}

/// An open file. One that is written is put into its place when it is closed.
struct Open {
  std::shared_ptr<Tree> tree;
  std::string path = {};
};

inline constexpr int first_id = 1 << 30, ids_of_file = 1 << 12;

inline std::map<int, Open>& all_open() {
  static auto* const all = new std::map<int, Open>;
  return *all;
}

inline bool in_trees() {
  static const bool library = headlab::environment_variable("FUZZ_NETCDF") != nullptr;
  return !library;
}

inline bool is_tree(int id) {
  return id >= first_id;
}

inline int opened(Open open, int* id) {
  static int next = 0;
  int file = 0;
  do {
    next = (next + 1) % 1000;
    file = first_id + next * ids_of_file;
  } while (all_open().contains(file));  // one that stays open
  all_open().emplace(file, std::move(open));
  *id = file;
  return NC_NOERR;
}

inline Tree& tree_of(int id) {
  return *all_open().at(id - (id - first_id) % ids_of_file).tree;
}
inline int number_of(int id) {
  return (id - first_id) % ids_of_file;
}
inline int group_id(int id, std::size_t group) {
  return id - number_of(id) + static_cast<int>(group);
}
inline Group& group_of(int id) {
  return tree_of(id).groups[static_cast<std::size_t>(number_of(id))];
}

inline Variable* variable_of(int id, int variable) {
  auto& all = group_of(id).variables;
  const auto at = static_cast<std::size_t>(variable);
  return variable >= 0 && at < all.size() ? &all[at] : nullptr;
}

inline std::vector<Attribute>* attributes_of(int id, int variable) {
  if (variable == NC_GLOBAL) return &group_of(id).attributes;
  Variable* const of = variable_of(id, variable);
  return of == nullptr ? nullptr : &of->attributes;
}

inline const Attribute* attribute_of(int id, int variable, const char* name) {
  const auto* const all = attributes_of(id, variable);
  if (all == nullptr) return nullptr;
  const auto at = std::ranges::find(*all, std::string_view(name), &Attribute::name);
  return at == all->end() ? nullptr : &*at;
}

template <class All>
bool has(const All& all, std::string_view name) {
  return std::ranges::any_of(all, [&](const auto& one) { return one.name == name; });
}

/// Whether the library takes `name`; letters outside ASCII, which it takes too, never occur.
inline bool is_name(std::string_view name) {
  const auto alone = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= NC_MAX_NAME && alone(name[0]) && name.back() != ' ' &&
         std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '/'; });
}

inline bool is_taken(int id, std::string_view name) {
  const Tree& tree = tree_of(id);
  if (has(group_of(id).variables, name)) return true;
  return std::ranges::any_of(tree.groups, [&](const Group& one) {
    return one.parent == number_of(id) && one.name == name;
  });
}

inline std::vector<int> own_dimensions(int id) {
  std::vector<int> ids;
  const auto& all = tree_of(id).dimensions;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].group == number_of(id)) ids.push_back(static_cast<int>(i));
  }
  return ids;
}

inline const Dimension* dimension_of(int id, int dimension) {
  const auto& all = tree_of(id).dimensions;
  const auto at = static_cast<std::size_t>(dimension);
  return dimension >= 0 && at < all.size() ? &all[at] : nullptr;
}

inline std::vector<std::size_t> lengths_of(int id, const Variable& variable) {
  std::vector<std::size_t> lengths;
  for (const int one : variable.dimensions) lengths.push_back(dimension_of(id, one)->length);
  return lengths;
}

inline std::string bytes_of(std::size_t number) {
  // Long enough for a trailer to be looked for.
  std::string text = std::string(magic) + std::to_string(number);
  text.resize(std::size_t{128}, ' ');
  return text;
}

inline std::string start_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(magic.size() + 20, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

}  // namespace headlab::fuzz
