// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/allocate_options.h"

#include <string>

#include "engine/files/error.h"

namespace headlab {

void require_replicates(const AllocateOptions& options) {
  if (options.replicates >= min_selection_look) return;
  throw InvalidInput("--replicates " + std::to_string(options.replicates) +
                     ": too few for a selection (allowed: at least " +
                     std::to_string(min_selection_look) + ")");
}

}  // namespace headlab
