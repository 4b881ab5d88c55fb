// SPDX-License-Identifier: Apache-2.0
/// \file Activations made in a test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/array_file.h"

namespace headlab::test {

/// Arrays that are in memory.
class ArraysInMemory : public ArrayFile {
 public:
  using ArrayFile::read;

  ArraysInMemory() : ArrayFile("memory") {}

  void put(const std::string& name, const std::vector<std::uint64_t>& shape,
           std::vector<double> values, NumberKind kind = NumberKind::exact) {
    arrays_[name] = {kind, shape};
    values_[name] = std::move(values);
  }
  void say(const std::string& name, const std::string& text) { texts_[name] = text; }
  void remove(const std::string& name) { arrays_.erase(name); }
  std::vector<double>& values(const std::string& name) { return values_.at(name); }

  /// All arrays and texts of another file, but for `without`.
  void take(ArrayFile& other, const std::vector<std::string>& without = {}) {
    texts_ = other.texts();
    for (const auto& [name, info] : other.arrays()) {
      if (std::find(without.begin(), without.end(), name) != without.end()) continue;
      put(name, info.shape, other.read(name), info.kind);
    }
  }

  std::vector<double> read(const std::string& name, std::uint64_t first,
                           std::uint64_t count) override {
    const std::vector<double>& all = values_.at(name);
    const std::uint64_t items = arrays_.at(name).shape.empty() ? 1 : arrays_.at(name).shape[0];
    const auto size = static_cast<std::ptrdiff_t>(all.size() / items);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first) * size;
    return {begin, begin + static_cast<std::ptrdiff_t>(count) * size};
  }

 private:
  std::map<std::string, std::vector<double>> values_;
};

}  // namespace headlab::test
