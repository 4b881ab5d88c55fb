// SPDX-License-Identifier: Apache-2.0
/// \file Conditions of a scenario found by their swept values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/document.h"

namespace headlab {

struct Scenario;

/// One value of each of some swept keys.
using SweptValues = std::vector<std::pair<std::string, Value>>;

/// A number, or an array of numbers as one list, nested ones in their order.
std::optional<std::vector<double>> numbers_of(const Value& value);

/// The name of a law, where the value is the table of one.
const std::string* law_of(const Value& value);

/// The conditions of a scenario by their swept values.
class SweptConditions {
 public:
  explicit SweptConditions(const Scenario& scenario);

  /// Values of a condition: "heads.count = 4, heads.subspaces = orthogonal", a law by its name
  /// unless the sweep has another of that name.
  std::string text(std::size_t i) const;

  /// L of a condition of a study of depth.
  std::optional<std::size_t> layers(std::size_t i) const { return layers_[i]; }

  /// Names of the measures of the scenario.
  const std::vector<std::string>& measures() const { return measures_; }

  bool is_swept(const std::string& key) const;

  /// Throws InvalidInput where the key is not swept.
  void require_swept(const Location& location, const std::string& key,
                     const std::string& swept) const;

  /// The one condition with these values, a law by its name or its table; throws InvalidInput where
  /// there is none or more than one.
  std::size_t find(const Location& location, const std::string& key,
                   const SweptValues& wanted) const;

  /// The distinct values of `keys` together, in the order of the conditions; one empty choice for
  /// no key.
  std::vector<SweptValues> choices(const std::vector<std::string>& keys) const;

 private:
  const Value* value_of(std::size_t i, const std::string& key) const;
  std::string value_text(std::size_t i, const std::string& key) const;

  std::vector<std::string> keys_, measures_;
  std::vector<SweptValues> values_;                 ///< [conditions]
  std::vector<std::optional<std::size_t>> layers_;  ///< [conditions]
};

}  // namespace headlab
