// SPDX-License-Identifier: Apache-2.0
// A NetCDF file as a tree in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <netcdf.h>

namespace headlab::fuzz {

/// Elements that a variable keeps: one with more is larger than what refusal_of() lets readers
/// take.
inline constexpr std::size_t max_numbers = std::size_t{1} << 21, max_texts = std::size_t{1} << 16;

using Text = std::optional<std::string>;

inline std::size_t item_of(nc_type type) {
  return type == NC_CHAR ? 1 : type == NC_FLOAT ? 4 : 8;
}

struct Values {
  nc_type type = NC_NAT;
  std::string bytes = {};        ///< of numbers and characters
  std::vector<Text> texts = {};  ///< of NC_STRING
  std::size_t size() const {
    return type == NC_STRING ? texts.size() : bytes.size() / item_of(type);
  }
  bool are_numbers() const { return type != NC_STRING && type != NC_CHAR; }
};

struct Attribute {
  std::string name;
  std::shared_ptr<const Values> values;
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

/// What stands where nothing was put.
inline void add_fill(Values& values, std::size_t count) {
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

}  // namespace headlab::fuzz
