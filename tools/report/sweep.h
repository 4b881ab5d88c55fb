// SPDX-License-Identifier: Apache-2.0
/// \file What differs between the conditions of a run, and how a picture lays it out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/report/key_words.h"
#include "tools/report/scale.h"
#include "tools/report/source.h"

namespace headlab::tools {

/// One value of a swept key.
struct Level {
  std::string text;
  double number;  ///< NaN where the value is not one number
};

/// A swept key, with keys that move along with it.
struct SweptKey {
  std::string key;
  std::vector<std::string> along;
  std::vector<Level> levels;  ///< numbers ascending, others in the order of the conditions
  bool numeric = false;

  /// "data.n (with heads.dim)"
  std::string title() const;
  /// The same in words, as for an axis.
  std::string words() const;
};

/// Short texts that tell values apart: "0.5", "haar", "normal df 3", "(2, …, 2)".
std::vector<std::string> level_texts(const std::vector<const Value*>& values);

/// A value as tables and files have it: as the scenario writes it, a string without its quotes.
Value written_value(const std::string& text);

/// The same of values as tables and files have them, each in at most `most` characters.
std::vector<std::string> level_labels(const std::vector<std::string>& written, std::size_t most);

struct Sweep {
  std::vector<SweptKey> keys;
  std::vector<std::vector<std::size_t>> places;  ///< [conditions][keys], a level

  /// The last part of a key in words where no other ends in it: "n" of "data.n"; else all of it.
  std::string short_key(std::size_t key) const;
  /// A key with one of its values: "n 50", "order = together".
  std::string level_words(std::size_t key, std::size_t level) const;
  /// "n 50, order = together"
  std::string condition_text(std::size_t condition) const;
  /// The same of some conditions, without the keys that have one value in all of them.
  std::vector<std::string> condition_texts(const std::vector<std::size_t>& conditions) const;
  /// "Shows 4 of 6 conditions, without n 50 and n 100." Few that are missing are named, and one
  /// that is shown alone; empty where all are shown. \param all  the conditions of the results, of
  /// which the sweep may have fewer
  std::string shows_text(const std::vector<std::size_t>& shown, std::size_t all) const;
  /// At most `most` conditions, those of evenly spread levels of every key, so that groups compare.
  std::vector<std::size_t> thinned(std::size_t most) const;

 private:
  std::string text_of_keys(std::size_t condition, const std::vector<bool>& wanted) const;
};

/// A key by which the parameters of conditions differ, with the value of each.
struct DifferingKey {
  std::string key;
  std::vector<const Value*> values;
};

/// In the order of the parameters.
std::vector<DifferingKey> differing_keys(const Value::Array& conditions);

/// A key with its levels; `places` gets that of each value.
SweptKey swept_key(const DifferingKey& found, std::vector<std::size_t>& places);

/// Finds the keys by which the parameters of conditions differ.
Sweep sweep_of(const Value::Array& conditions);

/// Which conditions `some` are: "where memory is 0.5" by a key with other values in all others,
/// else "in some conditions"; nothing where they are all.
std::string where_of(const Value::Array& conditions, const std::vector<std::size_t>& some);

/// Conditions along one key, the others held fast.
struct Panel {
  std::string title;
  std::vector<std::size_t> conditions;  ///< in the order of their places
};

/// Small multiples: a panel for every combination of the keys that are not along the axis.
struct Layout {
  const SweptKey* along = nullptr;  ///< of the sweep; nullptr where nothing is swept
  std::size_t along_number = 0;
  std::vector<Panel> panels;
  std::string left_out;  ///< a sentence, where not all conditions are shown

  bool numeric() const { return along != nullptr && along->numeric; }
  /// Where a condition stands: its number, or that of its level.
  double place(const Sweep& sweep, std::size_t condition) const;
  ScaleKind scale() const;
  /// Round numbers, or every level by its words.
  std::vector<Tick> ticks(const Scale& x) const;
};

/// At most `panels` panels of `points` conditions.
Layout layout_of(const Sweep& sweep, std::size_t panels, std::size_t points);

}  // namespace headlab::tools
