// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/cli/progress.h"
#include "validation/allocation/session.h"

namespace headlab::tools {

/// Shows how far a study of allocations is: a bar with its share, and words.
void show(ProgressDisplay& display, const std::string& setting, const AllocationProgress& progress,
          double seconds);

}  // namespace headlab::tools
