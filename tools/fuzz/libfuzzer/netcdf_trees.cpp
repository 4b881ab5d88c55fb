// SPDX-License-Identifier: Apache-2.0
// The calls of the NetCDF library that headlab makes, answered from trees in memory: reading an
// edited file with HDF5 takes ten milliseconds, of which headlab's readers, and libFuzzer, have
// nothing. The linker puts them in the place of the library's (--wrap); what is no tree goes on to
// the library. A file of a tree holds its number. FUZZ_NETCDF=library: everything goes to the
// library.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <netcdf.h>
#include <netcdf_mem.h>

#include "kernels/host.h"
#include "tools/fuzz/libfuzzer/uncounted.h"
#include "tools/fuzz/target.h"

namespace {

using headlab::fuzz::require;

constexpr std::string_view magic = "\x89HDF\r\n\x1a\n\x02tree ";
/// Elements that a variable keeps: one with more is larger than what refusal_of() lets readers
/// take.
constexpr std::size_t max_numbers = std::size_t{1} << 21, max_texts = std::size_t{1} << 16;

using Text = std::optional<std::string>;

struct Values {
  nc_type type = NC_NAT;
  std::string bytes = {};        ///< of numbers and characters
  std::vector<Text> texts = {};  ///< of NC_STRING
};

std::size_t item_of(nc_type type) {
  return type == NC_CHAR ? 1 : type == NC_FLOAT ? 4 : 8;
}

struct Attribute {
  std::string name;
  std::shared_ptr<const Values> values;
  std::size_t size() const {
    return values->type == NC_STRING ? values->texts.size()
                                     : values->bytes.size() / item_of(values->type);
  }
};

struct Variable {
  std::string name;
  std::vector<int> dimensions;
  std::vector<Attribute> attributes = {};
  std::shared_ptr<Values> values;  ///< as far as something was put
};

struct Dimension {
  std::string name;
  int group;
  std::size_t length;
};

struct Group {
  std::string name;
  int parent;
  std::vector<Attribute> attributes = {};
  std::vector<Variable> variables = {};
};

struct Tree {
  std::vector<Group> groups = {{"/", -1}};
  std::vector<Dimension> dimensions = {};
};

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

Trees& trees() {
  static auto* const all = new Trees;
  return *all;
}

/// An open file. One that is written is put into its place when it is closed.
struct Open {
  std::shared_ptr<Tree> tree;
  std::string path = {};
};

constexpr int first_id = 1 << 30, ids_of_file = 1 << 12;

std::map<int, Open>& all_open() {
  static auto* const all = new std::map<int, Open>;
  return *all;
}

bool in_trees() {
  static const bool library = headlab::environment_variable("FUZZ_NETCDF") != nullptr;
  return !library;
}

bool is_tree(int id) {
  return id >= first_id;
}

int opened(Open open, int* id) {
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

Tree& tree_of(int id) {
  return *all_open().at(id - (id - first_id) % ids_of_file).tree;
}
int number_of(int id) {
  return (id - first_id) % ids_of_file;
}
int group_id(int id, std::size_t group) {
  return id - number_of(id) + static_cast<int>(group);
}
Group& group_of(int id) {
  return tree_of(id).groups[static_cast<std::size_t>(number_of(id))];
}

Variable* variable_of(int id, int variable) {
  auto& all = group_of(id).variables;
  const auto at = static_cast<std::size_t>(variable);
  return variable >= 0 && at < all.size() ? &all[at] : nullptr;
}

std::vector<Attribute>* attributes_of(int id, int variable) {
  if (variable == NC_GLOBAL) return &group_of(id).attributes;
  Variable* const of = variable_of(id, variable);
  return of == nullptr ? nullptr : &of->attributes;
}

const Attribute* attribute_of(int id, int variable, const char* name) {
  const auto* const all = attributes_of(id, variable);
  if (all == nullptr) return nullptr;
  const auto at = std::ranges::find(*all, std::string_view(name), &Attribute::name);
  return at == all->end() ? nullptr : &*at;
}

template <class All>
bool has(const All& all, std::string_view name) {
  return std::ranges::any_of(all, [&](const auto& one) { return one.name == name; });
}

/// As the library has it, but for letters that are not ASCII, of which there are none.
bool is_name(std::string_view name) {
  const auto alone = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= NC_MAX_NAME && alone(name[0]) && name.back() != ' ' &&
         std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '/'; });
}

bool is_taken(int id, std::string_view name) {
  const Tree& tree = tree_of(id);
  if (has(group_of(id).variables, name)) return true;
  return std::ranges::any_of(tree.groups, [&](const Group& one) {
    return one.parent == number_of(id) && one.name == name;
  });
}

std::vector<int> own_dimensions(int id) {
  std::vector<int> ids;
  const auto& all = tree_of(id).dimensions;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].group == number_of(id)) ids.push_back(static_cast<int>(i));
  }
  return ids;
}

const Dimension* dimension_of(int id, int dimension) {
  const auto& all = tree_of(id).dimensions;
  const auto at = static_cast<std::size_t>(dimension);
  return dimension >= 0 && at < all.size() ? &all[at] : nullptr;
}

std::vector<std::size_t> lengths_of(int id, const Variable& variable) {
  std::vector<std::size_t> lengths;
  for (const int one : variable.dimensions) lengths.push_back(dimension_of(id, one)->length);
  return lengths;
}

int list(const std::vector<int>& all, int* count, int* ids) {
  if (count != nullptr) *count = static_cast<int>(all.size());
  if (ids != nullptr) std::ranges::copy(all, ids);
  return NC_NOERR;
}

int say(const std::string& text, char* to) {
  if (to != nullptr) std::strcpy(to, text.c_str());
  return NC_NOERR;
}

template <class T>
int give(T value, T* to) {
  if (to != nullptr) *to = value;
  return NC_NOERR;
}

template <class T>
T item(const std::string& bytes, std::size_t i) {
  T number = {};
  std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
  return number;
}

/// A number of values, as double or as long long.
template <class T>
T number_at(const Values& values, std::size_t i) {
  if (values.type == NC_DOUBLE) return static_cast<T>(item<double>(values.bytes, i));
  if (values.type == NC_FLOAT) return static_cast<T>(item<float>(values.bytes, i));
  return static_cast<T>(item<std::int64_t>(values.bytes, i));
}

/// What stands where nothing was put.
void add_fill(Values& values, std::size_t count) {
  if (values.type == NC_STRING) return values.texts.resize(values.texts.size() + count);
  const auto add = [&](auto fill) {
    const std::size_t old = values.bytes.size();
    values.bytes.resize(old + count * sizeof fill);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(values.bytes.data() + old + i * sizeof fill, &fill, sizeof fill);
    }
  };
  if (values.type == NC_DOUBLE) return add(double{NC_FILL_DOUBLE});
  if (values.type == NC_FLOAT) return add(float{NC_FILL_FLOAT});
  if (values.type == NC_CHAR) return add('\0');
  add(std::int64_t{NC_FILL_INT64});
}

std::size_t kept(const Values& values) {
  return values.type == NC_STRING ? values.texts.size()
                                  : values.bytes.size() / item_of(values.type);
}

/// Calls use(first element, elements) for runs of a part of a variable along its last axis.
template <class Use>
int for_runs(int id, const Variable& variable, const std::size_t* start, const std::size_t* count,
             const Use& use) {
  const std::vector<std::size_t> lengths = lengths_of(id, variable);
  const std::size_t rank = lengths.size();
  std::size_t run = 1, runs = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (start[axis] > lengths[axis] || count[axis] > lengths[axis] - start[axis]) return NC_EEDGE;
    (axis + 1 == rank ? run : runs) *= count[axis];
  }
  if (run == 0) return NC_NOERR;
  std::vector<std::size_t> at(rank, 0);
  for (std::size_t k = 0; k < runs; ++k) {
    std::size_t first = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      first = first * lengths[axis] + start[axis] + at[axis];
    }
    use(first, run);
    for (std::size_t axis = rank > 0 ? rank - 1 : 0; axis-- > 0;) {
      if (++at[axis] < count[axis]) break;
      at[axis] = 0;
    }
  }
  return NC_NOERR;
}

/// The elements of a part, with what stands where nothing was put.
int read_part(int id, const Variable& variable, const std::size_t* start, const std::size_t* count,
              Values& part) {
  part.type = variable.values->type;
  const Values& all = *variable.values;
  return for_runs(id, variable, start, count, [&](std::size_t first, std::size_t number) {
    const std::size_t there = std::min(number, kept(all) - std::min(first, kept(all)));
    if (all.type == NC_STRING) {
      for (std::size_t i = 0; i < there; ++i) part.texts.push_back(all.texts[first + i]);
    } else if (there > 0) {
      part.bytes.append(all.bytes, first * item_of(all.type), there * item_of(all.type));
    }
    add_fill(part, number - there);
  });
}

int write_part(int id, Variable& variable, const std::size_t* start, const std::size_t* count,
               const Values& part) {
  if (variable.values.use_count() > 1) variable.values = std::make_shared<Values>(*variable.values);
  Values& all = *variable.values;
  const std::size_t most = all.type == NC_STRING ? max_texts : max_numbers;
  std::size_t done = 0;
  return for_runs(id, variable, start, count, [&](std::size_t first, std::size_t number) {
    if (first < most && number <= most - first) {
      if (first + number > kept(all)) add_fill(all, first + number - kept(all));
      if (all.type == NC_STRING) {
        std::copy_n(&part.texts[done], number, &all.texts[first]);
      } else {
        const std::size_t size = item_of(all.type);
        all.bytes.replace(first * size, number * size, part.bytes, done * size, number * size);
      }
    }
    done += number;
  });
}

struct Slab {
  std::vector<std::size_t> start, count;
};

Slab whole(int id, const Variable& variable) {
  Slab slab{{}, lengths_of(id, variable)};
  slab.start.assign(slab.count.size(), 0);
  return slab;
}

std::size_t elements(const std::size_t* count, std::size_t rank) {
  std::size_t all = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) all *= count[axis];
  return all;
}

char* copy_of(const Text& text) {
  return text ? ::strdup(text->c_str()) : nullptr;
}

int read_raw(int id, int number, const std::size_t* start, const std::size_t* count, void* to) {
  const Variable* const variable = variable_of(id, number);
  if (variable == nullptr) return NC_ENOTVAR;
  Values part;
  if (const int status = read_part(id, *variable, start, count, part)) return status;
  if (part.type == NC_STRING) {
    std::ranges::transform(part.texts, static_cast<char**>(to), copy_of);
  } else {
    std::ranges::copy(part.bytes, static_cast<char*>(to));
  }
  return NC_NOERR;
}

template <class T>
int read_numbers(int id, int number, const std::size_t* start, const std::size_t* count, T* to) {
  const Variable* const variable = variable_of(id, number);
  if (variable == nullptr) return NC_ENOTVAR;
  if (variable->values->type == NC_STRING || variable->values->type == NC_CHAR) return NC_ECHAR;
  Values part;
  if (const int status = read_part(id, *variable, start, count, part)) return status;
  for (std::size_t i = 0; i < kept(part); ++i) to[i] = number_at<T>(part, i);
  return NC_NOERR;
}

template <class T>
void add_number(Values& values, T number) {
  const auto add = [&](auto stored) {
    values.bytes.append(reinterpret_cast<const char*>(&stored), sizeof stored);
  };
  if (values.type == NC_DOUBLE) return add(static_cast<double>(number));
  if (values.type == NC_FLOAT) return add(static_cast<float>(number));
  if constexpr (std::is_same_v<T, double>) {
    add(number > -0x1p63 && number < 0x1p63 ? static_cast<std::int64_t>(number) : 0);
  } else {
    add(std::int64_t{number});
  }
}

template <class T>
int write_numbers(int id, int number, const std::size_t* start, const std::size_t* count,
                  const T* from) {
  Variable* const variable = variable_of(id, number);
  if (variable == nullptr) return NC_ENOTVAR;
  Values part{.type = variable->values->type};
  if (part.type == NC_STRING || part.type == NC_CHAR) return NC_ECHAR;
  const std::size_t all = elements(count, variable->dimensions.size());
  for (std::size_t i = 0; i < all; ++i) add_number(part, from[i]);
  return write_part(id, *variable, start, count, part);
}

int write_raw(int id, int number, const std::size_t* start, const std::size_t* count,
              const void* from) {
  Variable* const variable = variable_of(id, number);
  if (variable == nullptr) return NC_ENOTVAR;
  Values part{.type = variable->values->type};
  const std::size_t all = elements(count, variable->dimensions.size());
  if (part.type == NC_STRING) {
    const auto* const texts = static_cast<const char* const*>(from);
    for (std::size_t i = 0; i < all; ++i) {
      part.texts.push_back(texts[i] == nullptr ? Text() : Text(texts[i]));
    }
  } else {
    part.bytes.assign(static_cast<const char*>(from), all * item_of(part.type));
  }
  return write_part(id, *variable, start, count, part);
}

/// The same for a single element.
template <class Write>
int at_one(int id, int number, const std::size_t* at, const Write& write) {
  const Variable* const variable = variable_of(id, number);
  if (variable == nullptr) return NC_ENOTVAR;
  const std::vector<std::size_t> one(variable->dimensions.size(), 1);
  return write(at, one.data());
}

int put_attribute(int id, int variable, const char* name, Values values) {
  auto* const all = attributes_of(id, variable);
  if (all == nullptr) return NC_ENOTVAR;
  if (!is_name(name)) return NC_EBADNAME;
  auto shared = std::make_shared<const Values>(std::move(values));
  const auto at = std::ranges::find(*all, std::string_view(name), &Attribute::name);
  if (at != all->end()) {
    at->values = std::move(shared);
  } else {
    all->push_back({name, std::move(shared)});
  }
  return NC_NOERR;
}

template <class T>
int attribute_numbers(int id, int variable, const char* name, T* to) {
  const Attribute* const one = attribute_of(id, variable, name);
  if (one == nullptr) return NC_ENOTATT;
  if (one->values->type == NC_STRING || one->values->type == NC_CHAR) return NC_ECHAR;
  for (std::size_t i = 0; i < one->size(); ++i) to[i] = number_at<T>(*one->values, i);
  return NC_NOERR;
}

std::string bytes_of(std::size_t number) {
  // Long enough for a trailer to be looked for.
  std::string text = std::string(magic) + std::to_string(number);
  text.resize(std::size_t{128}, ' ');
  return text;
}

std::string start_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(magic.size() + 20, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

template <class All>
int rename(int id, All& all, int number, const char* name) {
  const auto at = static_cast<std::size_t>(number);
  if (number < 0 || at >= all.size()) return NC_ENOTVAR;
  if (!is_name(name)) return NC_EBADNAME;
  if (is_taken(id, name)) return NC_ENAMEINUSE;
  all[at].name = name;
  return NC_NOERR;
}

}  // namespace

// NOLINTBEGIN: the linker chooses the names
#define TREE_CALL(name, parameters, ...)    \
  extern "C" int __real_##name parameters;  \
  extern "C" int __wrap_##name parameters { \
    const headlab::fuzz::Uncounted guard;   \
    if (!is_tree(id)) return __real_##name(__VA_ARGS__);

extern "C" int __real_nc_open(const char*, int, int*);
extern "C" int __wrap_nc_open(const char* path, int mode, int* id) {
  const headlab::fuzz::Uncounted guard;
  const std::string start = start_of(path);
  if (!start.starts_with(magic)) return __real_nc_open(path, mode, id);
  return opened({std::make_shared<Tree>(*trees().find(start)), (mode & NC_WRITE) != 0 ? path : ""},
                id);
}

extern "C" int __real_nc_create(const char*, int, int*);
extern "C" int __wrap_nc_create(const char* path, int mode, int* id) {
  const headlab::fuzz::Uncounted guard;
  if (!in_trees()) return __real_nc_create(path, mode, id);
  return opened({std::make_shared<Tree>(), path}, id);
}

extern "C" int __real_nc_open_mem(const char*, int, size_t, void*, int*);
extern "C" int __wrap_nc_open_mem(const char* path, int mode, size_t size, void* memory, int* id) {
  const headlab::fuzz::Uncounted guard;
  const std::string_view bytes(static_cast<const char*>(memory), size);
  if (!bytes.starts_with(magic)) return __real_nc_open_mem(path, mode, size, memory, id);
  return opened({trees().find(bytes)}, id);  // it is only read
}

extern "C" int __real_nc_open_memio(const char*, int, NC_memio*, int*);
extern "C" int __wrap_nc_open_memio(const char* path, int mode, NC_memio* image, int* id) {
  const headlab::fuzz::Uncounted guard;
  if (!in_trees()) return __real_nc_open_memio(path, mode, image, id);
  std::free(image->memory);  // an empty file
  return opened({std::make_shared<Tree>()}, id);
}

extern "C" int __real_nc_free_string(size_t, char**);
extern "C" int __wrap_nc_free_string(size_t count, char** texts) {
  const headlab::fuzz::Uncounted guard;
  return __real_nc_free_string(count, texts);
}

TREE_CALL(nc_close_memio, (int id, NC_memio* image), id, image)
const std::string bytes = bytes_of(trees().add(std::move(*all_open().at(id).tree)));
image->size = bytes.size();
image->memory = std::malloc(bytes.size());
std::ranges::copy(bytes, static_cast<char*>(image->memory));
all_open().erase(id);
return NC_NOERR;
}

TREE_CALL(nc_close, (int id), id)
const Open& open = all_open().at(id);
if (!open.path.empty()) {
  std::ofstream(open.path, std::ios::binary | std::ios::trunc)
      << bytes_of(trees().add(std::move(*open.tree)));
}
all_open().erase(id);
return NC_NOERR;
}

TREE_CALL(nc_abort, (int id), id)
all_open().erase(id);
return NC_NOERR;
}

TREE_CALL(nc_enddef, (int id), id)
return NC_NOERR;
}

TREE_CALL(nc_def_grp, (int id, const char* name, int* made), id, name, made)
if (!is_name(name)) return NC_EBADNAME;
if (is_taken(id, name)) return NC_ENAMEINUSE;
auto& all = tree_of(id).groups;
if (all.size() >= ids_of_file) return NC_EHDFERR;
*made = group_id(id, all.size());
all.push_back({name, number_of(id)});
return NC_NOERR;
}

TREE_CALL(nc_def_dim, (int id, const char* name, size_t length, int* made), id, name, length, made)
if (!is_name(name)) return NC_EBADNAME;
auto& all = tree_of(id).dimensions;
for (const int one : own_dimensions(id)) {
  if (all[static_cast<std::size_t>(one)].name == name) return NC_ENAMEINUSE;
}
*made = static_cast<int>(all.size());
all.push_back({name, number_of(id), length});
return NC_NOERR;
}

TREE_CALL(nc_def_var,
          (int id, const char* name, nc_type type, int rank, const int* dimensions, int* made), id,
          name, type, rank, dimensions, made)
if (!is_name(name)) return NC_EBADNAME;
if (is_taken(id, name)) return NC_ENAMEINUSE;
for (const int known : {NC_DOUBLE, NC_FLOAT, NC_INT64, NC_CHAR, NC_STRING}) {
  if (type != known) continue;
  auto& all = group_of(id).variables;
  *made = static_cast<int>(all.size());
  all.push_back({.name = name,
                 .dimensions = std::vector<int>(dimensions, dimensions + rank),
                 .values = std::make_shared<Values>(Values{.type = type})});
  return NC_NOERR;
}
return NC_EBADTYPE;
}

TREE_CALL(nc_def_var_chunking, (int id, int variable, int storage, const size_t* sizes), id,
          variable, storage, sizes)
return NC_NOERR;
}

TREE_CALL(nc_def_var_fill, (int id, int variable, int none, const void* fill), id, variable, none,
          fill)
return NC_NOERR;
}

TREE_CALL(nc_rename_var, (int id, int variable, const char* name), id, variable, name)
return rename(id, group_of(id).variables, variable, name);
}

TREE_CALL(nc_rename_dim, (int id, int dimension, const char* name), id, dimension, name)
return rename(id, tree_of(id).dimensions, dimension, name);
}

TREE_CALL(nc_rename_grp, (int id, const char* name), id, name)
if (number_of(id) == 0) return NC_EBADGRPID;
return rename(group_id(id, static_cast<std::size_t>(group_of(id).parent)), tree_of(id).groups,
              number_of(id), name);
}

TREE_CALL(nc_put_att_text, (int id, int variable, const char* name, size_t size, const char* text),
          id, variable, name, size, text)
return put_attribute(id, variable, name, {NC_CHAR, {text, size}});
}

TREE_CALL(nc_put_att_string,
          (int id, int variable, const char* name, size_t size, const char** texts), id, variable,
          name, size, texts)
return put_attribute(id, variable, name, {NC_STRING, {}, {texts, texts + size}});
}

TREE_CALL(nc_put_att_double,
          (int id, int variable, const char* name, nc_type type, size_t size,
           const double* numbers),
          id, variable, name, type, size, numbers)
Values values{type};
for (size_t i = 0; i < size; ++i) add_number(values, numbers[i]);
return put_attribute(id, variable, name, std::move(values));
}

TREE_CALL(nc_put_att_longlong,
          (int id, int variable, const char* name, nc_type type, size_t size,
           const long long* numbers),
          id, variable, name, type, size, numbers)
Values values{type};
for (size_t i = 0; i < size; ++i) add_number(values, numbers[i]);
return put_attribute(id, variable, name, std::move(values));
}

TREE_CALL(nc_del_att, (int id, int variable, const char* name), id, variable, name)
auto* const all = attributes_of(id, variable);
if (all == nullptr) return NC_ENOTVAR;
const auto gone = std::erase_if(*all, [&](const Attribute& one) { return one.name == name; });
return gone > 0 ? NC_NOERR : NC_ENOTATT;
}

TREE_CALL(nc_inq_att, (int id, int variable, const char* name, nc_type* type, size_t* length), id,
          variable, name, type, length)
const Attribute* const one = attribute_of(id, variable, name);
if (one == nullptr) return NC_ENOTATT;
give(one->size(), length);
return give(one->values->type, type);
}

TREE_CALL(nc_inq_attid, (int id, int variable, const char* name, int* number), id, variable, name,
          number)
const Attribute* const one = attribute_of(id, variable, name);
if (one == nullptr) return NC_ENOTATT;
return give(static_cast<int>(one - attributes_of(id, variable)->data()), number);
}

TREE_CALL(nc_inq_attname, (int id, int variable, int number, char* name), id, variable, number,
          name)
const auto* const all = attributes_of(id, variable);
if (all == nullptr) return NC_ENOTVAR;
const auto at = static_cast<std::size_t>(number);
return at < all->size() ? say((*all)[at].name, name) : NC_ENOTATT;
}

TREE_CALL(nc_inq_atttype, (int id, int variable, const char* name, nc_type* type), id, variable,
          name, type)
const Attribute* const one = attribute_of(id, variable, name);
return one == nullptr ? NC_ENOTATT : give(one->values->type, type);
}

TREE_CALL(nc_inq_natts, (int id, int* count), id, count)
return give(static_cast<int>(group_of(id).attributes.size()), count);
}

TREE_CALL(nc_inq_varnatts, (int id, int variable, int* count), id, variable, count)
const auto* const all = attributes_of(id, variable);
return all == nullptr ? NC_ENOTVAR : give(static_cast<int>(all->size()), count);
}

TREE_CALL(nc_get_att, (int id, int variable, const char* name, void* to), id, variable, name, to)
const Attribute* const one = attribute_of(id, variable, name);
if (one == nullptr) return NC_ENOTATT;
if (one->values->type == NC_STRING) {
  std::ranges::transform(one->values->texts, static_cast<char**>(to), copy_of);
} else {
  std::ranges::copy(one->values->bytes, static_cast<char*>(to));
}
return NC_NOERR;
}

TREE_CALL(nc_get_att_text, (int id, int variable, const char* name, char* to), id, variable, name,
          to)
const Attribute* const one = attribute_of(id, variable, name);
if (one == nullptr) return NC_ENOTATT;
if (one->values->type != NC_CHAR) return NC_ECHAR;
std::ranges::copy(one->values->bytes, to);
return NC_NOERR;
}

TREE_CALL(nc_get_att_string, (int id, int variable, const char* name, char** to), id, variable,
          name, to)
const Attribute* const one = attribute_of(id, variable, name);
if (one == nullptr) return NC_ENOTATT;
if (one->values->type != NC_STRING) return NC_ECHAR;
std::ranges::transform(one->values->texts, to, copy_of);
return NC_NOERR;
}

TREE_CALL(nc_get_att_double, (int id, int variable, const char* name, double* to), id, variable,
          name, to)
return attribute_numbers(id, variable, name, to);
}

TREE_CALL(nc_get_att_longlong, (int id, int variable, const char* name, long long* to), id,
          variable, name, to)
return attribute_numbers(id, variable, name, to);
}

extern "C" int __real_nc_copy_att(int, int, const char*, int, int);
extern "C" int __wrap_nc_copy_att(int from, int variable, const char* name, int to, int target) {
  if (!is_tree(to)) return __real_nc_copy_att(from, variable, name, to, target);
  Values values;
  size_t length = 0, size = 0;
  if (const int status = nc_inq_att(from, variable, name, &values.type, &length)) return status;
  if (values.type == NC_STRING) {
    std::vector<char*> texts(length);
    if (const int status = nc_get_att_string(from, variable, name, texts.data())) return status;
    for (const char* const text : texts) {
      values.texts.push_back(text == nullptr ? Text() : Text(text));
    }
    nc_free_string(length, texts.data());
  } else {
    if (const int status = nc_inq_type(from, values.type, nullptr, &size)) return status;
    values.bytes.resize(length * size);
    if (const int status = nc_get_att(from, variable, name, values.bytes.data())) return status;
  }
  return put_attribute(to, target, name, std::move(values));
}

TREE_CALL(nc_inq_dimid, (int id, const char* name, int* number), id, name, number)
const auto& all = tree_of(id).dimensions;
for (int group = number_of(id); group >= 0;
     group = tree_of(id).groups[static_cast<std::size_t>(group)].parent) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].group == group && all[i].name == name) return give(static_cast<int>(i), number);
  }
}
return NC_EBADDIM;
}

TREE_CALL(nc_inq_dimlen, (int id, int number, size_t* length), id, number, length)
const Dimension* const one = dimension_of(id, number);
return one == nullptr ? NC_EBADDIM : give(one->length, length);
}

TREE_CALL(nc_inq_dimname, (int id, int number, char* name), id, number, name)
const Dimension* const one = dimension_of(id, number);
return one == nullptr ? NC_EBADDIM : say(one->name, name);
}

TREE_CALL(nc_inq_dimids, (int id, int* count, int* ids, int parents), id, count, ids, parents)
return list(own_dimensions(id), count, ids);
}

TREE_CALL(nc_inq_dim, (int id, int number, char* name, size_t* length), id, number, name, length)
const Dimension* const one = dimension_of(id, number);
if (one == nullptr) return NC_EBADDIM;
say(one->name, name);
return give(one->length, length);
}

TREE_CALL(nc_inq_grps, (int id, int* count, int* ids), id, count, ids)
std::vector<int> inside;
const auto& all = tree_of(id).groups;
for (std::size_t i = 0; i < all.size(); ++i) {
  if (all[i].parent == number_of(id)) inside.push_back(group_id(id, i));
}
return list(inside, count, ids);
}

TREE_CALL(nc_inq_grpname, (int id, char* name), id, name)
return say(group_of(id).name, name);
}

TREE_CALL(nc_inq_grp_ncid, (int id, const char* name, int* group), id, name, group)
const auto& all = tree_of(id).groups;
for (std::size_t i = 0; i < all.size(); ++i) {
  if (all[i].parent == number_of(id) && all[i].name == name) return give(group_id(id, i), group);
}
return NC_ENOGRP;
}

TREE_CALL(nc_inq_nvars, (int id, int* count), id, count)
return give(static_cast<int>(group_of(id).variables.size()), count);
}

TREE_CALL(nc_inq_varids, (int id, int* count, int* ids), id, count, ids)
std::vector<int> all;
for (std::size_t i = 0; i < group_of(id).variables.size(); ++i) all.push_back(static_cast<int>(i));
return list(all, count, ids);
}

TREE_CALL(nc_inq_varid, (int id, const char* name, int* number), id, name, number)
const auto& all = group_of(id).variables;
const auto at = std::ranges::find(all, std::string_view(name), &Variable::name);
return at == all.end() ? NC_ENOTVAR : give(static_cast<int>(at - all.begin()), number);
}

TREE_CALL(nc_inq_var,
          (int id, int number, char* name, nc_type* type, int* rank, int* dimensions, int* count),
          id, number, name, type, rank, dimensions, count)
const Variable* const one = variable_of(id, number);
if (one == nullptr) return NC_ENOTVAR;
say(one->name, name);
give(one->values->type, type);
give(static_cast<int>(one->attributes.size()), count);
return list(one->dimensions, rank, dimensions);
}

TREE_CALL(nc_inq_varname, (int id, int number, char* name), id, number, name)
return __wrap_nc_inq_var(id, number, name, nullptr, nullptr, nullptr, nullptr);
}

TREE_CALL(nc_inq_varndims, (int id, int number, int* rank), id, number, rank)
return __wrap_nc_inq_var(id, number, nullptr, nullptr, rank, nullptr, nullptr);
}

TREE_CALL(nc_inq_vardimid, (int id, int number, int* dimensions), id, number, dimensions)
return __wrap_nc_inq_var(id, number, nullptr, nullptr, nullptr, dimensions, nullptr);
}

TREE_CALL(nc_inq_vartype, (int id, int number, nc_type* type), id, number, type)
return __wrap_nc_inq_var(id, number, nullptr, type, nullptr, nullptr, nullptr);
}

TREE_CALL(nc_inq_var_fill, (int id, int number, int* none, void* fill), id, number, none, fill)
return give(0, none);
}

TREE_CALL(nc_inq_type, (int id, nc_type type, char* name, size_t* size), id, type, name, size)
return give(item_of(type), size);
}

TREE_CALL(nc_get_vara, (int id, int number, const size_t* start, const size_t* count, void* to), id,
          number, start, count, to)
return read_raw(id, number, start, count, to);
}

TREE_CALL(nc_get_vara_double,
          (int id, int number, const size_t* start, const size_t* count, double* to), id, number,
          start, count, to)
return read_numbers(id, number, start, count, to);
}

TREE_CALL(nc_put_vara,
          (int id, int number, const size_t* start, const size_t* count, const void* from), id,
          number, start, count, from)
return write_raw(id, number, start, count, from);
}

TREE_CALL(nc_put_vara_double,
          (int id, int number, const size_t* start, const size_t* count, const double* from), id,
          number, start, count, from)
return write_numbers(id, number, start, count, from);
}

#define TREE_WHOLE(name, type, call)                                   \
  TREE_CALL(name, (int id, int number, type data), id, number, data)   \
  const Variable* const one = variable_of(id, number);                 \
  if (one == nullptr) return NC_ENOTVAR;                               \
  const Slab slab = whole(id, *one);                                   \
  return call(id, number, slab.start.data(), slab.count.data(), data); \
  }
TREE_WHOLE(nc_get_var, void*, read_raw)
TREE_WHOLE(nc_get_var_string, char**, read_raw)
TREE_WHOLE(nc_get_var_double, double*, read_numbers)
TREE_WHOLE(nc_get_var_longlong, long long*, read_numbers)
TREE_WHOLE(nc_put_var, const void*, write_raw)
TREE_WHOLE(nc_put_var_string, const char**, write_raw)
TREE_WHOLE(nc_put_var_double, const double*, write_numbers)

#define TREE_ONE(name, type, call)                                                         \
  TREE_CALL(name, (int id, int number, const size_t* at, type data), id, number, at, data) \
  return at_one(id, number, at, [&](const size_t* start, const size_t* count) {            \
    return call(id, number, start, count, data);                                           \
  });                                                                                      \
  }
TREE_ONE(nc_put_var1_double, const double*, write_numbers)
TREE_ONE(nc_put_var1_longlong, const long long*, write_numbers)
TREE_ONE(nc_put_var1_text, const char*, write_raw)
TREE_ONE(nc_put_var1_string, const char**, write_raw)
// NOLINTEND
