// SPDX-License-Identifier: Apache-2.0
/// \file Which condition of a sweep each condition is compared with.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace headlab {

struct Scenario;

struct References {
  std::string text = {};  ///< "condition #3", "heads.dim = 2"; empty: nothing is compared
  /// [conditions], numbers of conditions from 0; none for a condition that is its own reference,
  /// or has none.
  std::vector<std::optional<std::size_t>> of = {};
};

/// Reads "#3", that condition for all, or "KEY=VALUE": for all the only condition with this value
/// of a swept key or, where several have it, for each the one that has the same values of all other
/// keys. A key may be its last parts (key_names.h), text needs no quotes, and a law may be given by
/// its name. Throws InvalidInput("--against: ...").
References references_against(const Scenario& scenario, const std::string& text);

/// For each condition the one with the first value of a swept key and the same values of all
/// others. Throws InvalidInput("--difference: ...").
References references_by_key(const Scenario& scenario, const std::string& key);

}  // namespace headlab
