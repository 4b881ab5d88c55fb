// SPDX-License-Identifier: Apache-2.0
/// \file The [sweep] section: one scenario text, many conditions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/files/document.h"

namespace headlab {

/// The conditions of a scenario, made one at a time: there may be 10^6 of them.
class Sweep {
 public:
  static constexpr std::size_t max_conditions = 1000000;

  /// Takes the section [sweep] out of `root`, which becomes the base of every condition. Throws
  /// InvalidInput for a section that says nothing, contradicts itself or has more than 10^6
  /// conditions.
  explicit Sweep(Value root);

  std::size_t size() const { return size_; }
  /// Swept keys in the order of the file.
  std::vector<std::string> keys() const;

  /// The swept key whose values write over what stands at `path`, or over a part of it, or nullptr.
  const std::string* key_that_undoes(const std::vector<std::string>& path) const;

  /// Values that condition `index` has for the swept keys; the last key varies fastest, or all vary
  /// together with `zip = true`.
  std::vector<const Value*> values(std::size_t index) const;

  /// The scenario with these values in place.
  Value condition(std::size_t index) const;

 private:
  struct Axis {
    std::string key;
    Location location;
    std::vector<std::string> path;
    Value::Array values;
  };

  void read(const Value& table, const std::string& prefix);
  void check(const Value& section) const;

  Value base_;
  std::vector<Axis> axes_;
  bool zip_ = false;
  std::size_t size_ = 1;
};

}  // namespace headlab
