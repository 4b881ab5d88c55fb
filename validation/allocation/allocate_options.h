// SPDX-License-Identifier: Apache-2.0
/// \file What studies of allocations are asked.
#pragma once

#include <cstdint>
#include <vector>

#include "validation/allocation/allocations.h"
#include "validation/allocation/selection.h"

namespace headlab {

struct AllocateOptions {
  BandwidthRule rule = BandwidthRule::fixed;
  std::vector<int> dims = {};        ///< d_k to choose from; all without one
  std::uint64_t replicates = 65536;  ///< most, of each allocation; at least min_selection_look
  SelectionGuarantee guarantee = {};
};

/// Throws InvalidInput for too few replicates.
void require_replicates(const AllocateOptions& options);

}  // namespace headlab
