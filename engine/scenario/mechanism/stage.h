// SPDX-License-Identifier: Apache-2.0
/// \file What every stage of `[heads.mechanism]` has. A stage is a struct with `name` (its key),
/// `summary`, its parameters as a law has them (kernels/parameter.h), and
///
///     static constexpr const char* shorthand = "stride";   // key = 4 means key = { stride = 4 }
///     void check(const StageSetting& setting) const;       // throws ParameterError
///     void apply(Plan& plan) const;            // or of Subspaces, where it changes projections
///
/// `shorthand` is empty where a stage has none. To add a stage write its file here, list it in
/// mechanism.h, and follow docs/architecture.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/laws.h"
#include "kernels/parameter.h"
#include "kernels/plan.h"

namespace headlab {

/// What a stage may need to know to check its parameters.
struct StageSetting {
  Sizes sizes;
  const KernelLaw& kernel;
  bool projects_queries_apart = false;
  std::uint64_t tokens = 0;  ///< N, after `merge`
};

/// Counts of points, tokens or blocks: [low, 2^40).
inline Range counts_from(double low) {
  return {.low = low, .high = 1099511627776.0, .low_open = false};
}

/// One whole number for every head, or one each.
struct PerHead {
  std::vector<std::uint64_t> values;

  std::uint64_t operator[](int head) const {
    return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(head)];
  }
  /// Throws ParameterError(key, ...) unless there is one number, or one for each head.
  void check(const char* key, int heads) const {
    if (values.size() > 1 && values.size() != static_cast<std::size_t>(heads)) {
      throw ParameterError(key, "has " + std::to_string(values.size()) +
                                    " elements, needs one for all heads or one each (" +
                                    std::to_string(heads) + ")");
    }
  }
};

}  // namespace headlab
