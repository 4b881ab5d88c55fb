// SPDX-License-Identifier: Apache-2.0
// The calls of the NetCDF library that headlab makes, answered from trees in memory: reading an
// edited file with HDF5 takes ten milliseconds, of which headlab's readers, and libFuzzer, have
// nothing. The linker puts them in the place of the library's (--wrap); what is no tree goes on to
// the library. A file of a tree holds its number. FUZZ_NETCDF=library: everything goes to the
// library.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netcdf.h>
#include <netcdf_mem.h>

#include "tools/fuzz/libfuzzer/open_trees.h"
#include "tools/fuzz/libfuzzer/tree.h"
#include "tools/fuzz/libfuzzer/tree_values.h"
#include "tools/fuzz/libfuzzer/uncounted.h"

using namespace headlab::fuzz;

namespace {

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
    const Uncounted guard;                  \
    if (!is_tree(id)) return __real_##name(__VA_ARGS__);

extern "C" int __real_nc_open(const char*, int, int*);
extern "C" int __wrap_nc_open(const char* path, int mode, int* id) {
  const Uncounted guard;
  const std::string start = start_of(path);
  if (!start.starts_with(magic)) return __real_nc_open(path, mode, id);
  return opened({std::make_shared<Tree>(*trees().find(start)), (mode & NC_WRITE) != 0 ? path : ""},
                id);
}

extern "C" int __real_nc_create(const char*, int, int*);
extern "C" int __wrap_nc_create(const char* path, int mode, int* id) {
  const Uncounted guard;
  if (!in_trees()) return __real_nc_create(path, mode, id);
  return opened({std::make_shared<Tree>(), path}, id);
}

extern "C" int __real_nc_open_mem(const char*, int, size_t, void*, int*);
extern "C" int __wrap_nc_open_mem(const char* path, int mode, size_t size, void* memory, int* id) {
  const Uncounted guard;
  const std::string_view bytes(static_cast<const char*>(memory), size);
  if (!bytes.starts_with(magic)) return __real_nc_open_mem(path, mode, size, memory, id);
  return opened({trees().find(bytes)}, id);  // it is only read
}

extern "C" int __real_nc_open_memio(const char*, int, NC_memio*, int*);
extern "C" int __wrap_nc_open_memio(const char* path, int mode, NC_memio* image, int* id) {
  const Uncounted guard;
  if (!in_trees()) return __real_nc_open_memio(path, mode, image, id);
  std::free(image->memory);  // an empty file
  return opened({std::make_shared<Tree>()}, id);
}

extern "C" int __real_nc_free_string(size_t, char**);
extern "C" int __wrap_nc_free_string(size_t count, char** texts) {
  const Uncounted guard;
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

#define TREE_NUMBERS(name, type)                                                                  \
  TREE_CALL(                                                                                      \
      name,                                                                                       \
      (int id, int variable, const char* of, nc_type kind, size_t size, const type* numbers), id, \
      variable, of, kind, size, numbers)                                                          \
  Values values{kind};                                                                            \
  for (size_t i = 0; i < size; ++i) add_number(values, numbers[i]);                               \
  return put_attribute(id, variable, of, std::move(values));                                      \
  }
TREE_NUMBERS(nc_put_att_double, double)
TREE_NUMBERS(nc_put_att_longlong, long long)

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
give(one->values->size(), length);
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
return copy(*one->values, to);
}

TREE_CALL(nc_get_att_text, (int id, int variable, const char* name, char* to), id, variable, name,
          to)
const Attribute* const one = attribute_of(id, variable, name);
if (one == nullptr) return NC_ENOTATT;
if (one->values->type != NC_CHAR) return NC_ECHAR;
return copy(*one->values, to);
}

TREE_CALL(nc_get_att_string, (int id, int variable, const char* name, char** to), id, variable,
          name, to)
const Attribute* const one = attribute_of(id, variable, name);
if (one == nullptr) return NC_ENOTATT;
if (one->values->type != NC_STRING) return NC_ECHAR;
return copy(*one->values, to);
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
