// SPDX-License-Identifier: Apache-2.0
/// \file What every stage of `[heads.mechanism]` has. A stage is a struct with `name` (its key),
/// `summary`, its parameters as a law has them (kernels/parameter.h), and
///
///     static constexpr const char* shorthand = "stride";   // key = 4 means key = { stride = 4 }
///     void check(const StageSetting& setting) const;       // throws ParameterError
///     void apply(Mechanism& mechanism, const Sizes& sizes) const;  // with n and H of sizes;
///     void apply(Subspaces& subspaces) const;  // instead, where it changes projections
///
/// `shorthand` is empty where a stage has none. To add a stage write its file here, list it in
/// mechanism.h, and follow docs/architecture.md.
#pragma once

#include <cstdint>

#include "engine/scenario/per_head.h"
#include "kernels/mechanism.h"
#include "kernels/parameter.h"

namespace headlab {

/// What a stage may need to know to check its parameters.
struct StageSetting {
  Sizes sizes;
  bool is_softmax = false;       ///< the kernel
  bool is_compact = false;       ///< the kernel is 0 far away
  bool has_log_weights = false;  ///< log K is a sum over keys, see norm_coefficient_of()
  bool projects_queries_apart = false;
  std::uint64_t tokens = 0;  ///< N, after `merge`
};

/// Counts of points, tokens or blocks: [low, 2^40).
inline Range counts_from(double low) {
  return {.low = low, .high = 1099511627776.0, .low_open = false};
}

}  // namespace headlab
