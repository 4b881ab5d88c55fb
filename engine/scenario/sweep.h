// SPDX-License-Identifier: Apache-2.0
/// \file The sweep of a scenario: one text, many conditions; values in equal steps, in equal
/// ratios, in steps of a given size, or by a formula of other keys.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/document.h"

namespace headlab {

/// Whether `value` is a table with one of the keys linspace, logspace and range.
bool is_progression(const Value& value);

/// The values that such a table stands for:
///   { linspace = [a, b, N] }   a + (b - a) i/(N - 1), i = 0 ... N - 1
///   { logspace = [a, b, N] }   a (b/a)^(i/(N - 1)), 0 < a, 0 < b
///   { range = [a, b, STEP] }   a, a + STEP, ... up to b, which is the last value if a step meets
///   it
/// The first and, for N, the last value are exact; the others have 15 significant digits. Values
/// are integers where a and b are integers and every value is one; `round = true` rounds every
/// value to an integer, `digits = N` to N significant digits, and both drop repeated ones.
/// \param max_values  more than these are refused
/// Throws InvalidInput, as at the table's location, for anything else. `key` names it.
Value::Array progression(const Value& table, const std::string& key, std::size_t max_values);

/// The section of a condition that holds the labels of its values, by the name of each column.
inline constexpr const char* labels_section = "labels";

/// The conditions of a scenario, made one at a time: there may be 10^6 of them.
class Sweep {
 public:
  static constexpr std::size_t max_conditions = 1000000;

  /// Takes the section [sweep], or the tables of an array [[sweep]], which are crossed with one
  /// another, out of `root`, which becomes the base of every condition. `labels` of a table become
  /// a key of their own, labels.NAME of its `label`. Throws InvalidInput for one
  /// that says nothing, contradicts itself or has more than 10^6 conditions.
  explicit Sweep(Value root);

  std::size_t size() const { return size_; }
  /// Swept keys in the order of the file.
  const std::vector<std::string>& keys() const { return keys_; }

  /// The swept key whose values write over what stands at `path`, or over a part of it, or nullptr.
  const std::string* key_that_undoes(const std::vector<std::string>& path) const;

  /// Scenarios of the first condition, each with one value of the file in place of what the sweep
  /// writes over it. Those that the sweep has too are left out.
  std::vector<Value> with_overwritten() const;

  /// The scenario of condition `index`, its formulas computed: the last key of the last table
  /// varies fastest; those of a table with `zip = true` vary together. Throws InvalidInput for a
  /// formula that has no value there.
  Value condition(std::size_t index) const;

 private:
  struct Axis {
    std::string key;
    Location location;
    std::vector<std::string> path;
    Value::Array values;
  };
  /// A table of the sweep.
  struct Grid {
    std::vector<Axis> axes;
    bool zip = false;
    std::size_t size() const;
  };

  void read_grid(const Value& table, const std::string& name);
  void read(const Value& table, const std::string& prefix, Grid& grid);
  void check(const Value& section) const;
  /// Throws InvalidInput where two conditions of a table would be the same.
  static void require_different(const Grid& grid);
  std::vector<const Axis*> all_axes() const;

  Value base_;
  std::vector<Grid> grids_;
  std::vector<Axis> formulas_;  ///< keys that are given by one, each with one value
  std::vector<std::string> keys_;
  std::size_t size_ = 1;
};

/// How the conditions of a sweep are read; either callback may be empty.
struct ReadHooks {
  std::function<bool()> stop = {};          ///< true: throw Stopped; asked every few conditions
  std::function<void(double)> report = {};  ///< hears the share of the conditions that was read
  /// False: closed forms alone are wanted. They are float64, and the mean of a design may lie
  /// farther from 0 where no point of it is drawn.
  bool simulates = true;
  /// False: the caller has no use for a study of depth, which is refused.
  bool depth = true;
};

/// A scenario after --set and sweep, without [sweep]. Of a sweep it keeps the place alone: there
/// may be 10^6 conditions, and a tree of values takes kilobytes.
class Parameters {
 public:
  Parameters() = default;
  Parameters(Value tree) : tree_(std::make_shared<const Value>(std::move(tree))) {}
  Parameters(std::shared_ptr<const Sweep> sweep, std::size_t condition)
      : sweep_(std::move(sweep)), condition_(condition) {}

  /// A copy of the values.
  Value tree() const {
    if (sweep_) return sweep_->condition(condition_);
    return tree_ ? *tree_ : Value();
  }

 private:
  std::shared_ptr<const Value> tree_;
  std::shared_ptr<const Sweep> sweep_;
  std::size_t condition_ = 0;
};

}  // namespace headlab
