// SPDX-License-Identifier: Apache-2.0
// Reading and writing of the values of variables and attributes in trees, with the status of the
// NetCDF library.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netcdf.h>

#include "tools/fuzz/libfuzzer/open_trees.h"
#include "tools/fuzz/libfuzzer/tree.h"

namespace headlab::fuzz {

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
inline int read_part(int id, const Variable& variable, const std::size_t* start,
                     const std::size_t* count, Values& part) {
  part.type = variable.values->type;
  const Values& all = *variable.values;
  return for_runs(id, variable, start, count, [&](std::size_t first, std::size_t number) {
    const std::size_t there = std::min(number, all.size() - std::min(first, all.size()));
    if (all.type == NC_STRING) {
      for (std::size_t i = 0; i < there; ++i) part.texts.push_back(all.texts[first + i]);
    } else if (there > 0) {
      part.bytes.append(all.bytes, first * item_of(all.type), there * item_of(all.type));
    }
    add_fill(part, number - there);
  });
}

inline int write_part(int id, Variable& variable, const std::size_t* start,
                      const std::size_t* count, const Values& part) {
  if (variable.values.use_count() > 1) variable.values = std::make_shared<Values>(*variable.values);
  Values& all = *variable.values;
  const std::size_t most = all.type == NC_STRING ? max_texts : max_numbers;
  std::size_t done = 0;
  return for_runs(id, variable, start, count, [&](std::size_t first, std::size_t number) {
    if (first < most && number <= most - first) {
      if (first + number > all.size()) add_fill(all, first + number - all.size());
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

inline Slab whole(int id, const Variable& variable) {
  Slab slab{{}, lengths_of(id, variable)};
  slab.start.assign(slab.count.size(), 0);
  return slab;
}

inline std::size_t elements(const std::size_t* count, std::size_t rank) {
  std::size_t all = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) all *= count[axis];
  return all;
}

inline char* copy_of(const Text& text) {
  return text ? ::strdup(text->c_str()) : nullptr;
}

inline int copy(const Values& values, void* to) {
  if (values.type == NC_STRING) {
    std::ranges::transform(values.texts, static_cast<char**>(to), copy_of);
  } else {
    std::ranges::copy(values.bytes, static_cast<char*>(to));
  }
  return NC_NOERR;
}

inline int read_raw(int id, int number, const std::size_t* start, const std::size_t* count,
                    void* to) {
  const Variable* const variable = variable_of(id, number);
  if (variable == nullptr) return NC_ENOTVAR;
  Values part;
  if (const int status = read_part(id, *variable, start, count, part)) return status;
  return copy(part, to);
}

template <class T>
int read_numbers(int id, int number, const std::size_t* start, const std::size_t* count, T* to) {
  const Variable* const variable = variable_of(id, number);
  if (variable == nullptr) return NC_ENOTVAR;
  if (!variable->values->are_numbers()) return NC_ECHAR;
  Values part;
  if (const int status = read_part(id, *variable, start, count, part)) return status;
  for (std::size_t i = 0; i < part.size(); ++i) to[i] = number_at<T>(part, i);
  return NC_NOERR;
}

template <class T>
int write_numbers(int id, int number, const std::size_t* start, const std::size_t* count,
                  const T* from) {
  Variable* const variable = variable_of(id, number);
  if (variable == nullptr) return NC_ENOTVAR;
  Values part{.type = variable->values->type};
  if (!part.are_numbers()) return NC_ECHAR;
  const std::size_t all = elements(count, variable->dimensions.size());
  for (std::size_t i = 0; i < all; ++i) add_number(part, from[i]);
  return write_part(id, *variable, start, count, part);
}

inline int write_raw(int id, int number, const std::size_t* start, const std::size_t* count,
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

inline int put_attribute(int id, int variable, const char* name, Values values) {
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
  if (!one->values->are_numbers()) return NC_ECHAR;
  for (std::size_t i = 0; i < one->values->size(); ++i) to[i] = number_at<T>(*one->values, i);
  return NC_NOERR;
}

}  // namespace headlab::fuzz
