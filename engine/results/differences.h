// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/results/result.h"
#include "engine/scenario/references.h"

namespace headlab {

/// Gives every condition of a run its difference to its reference, from what both have now.
void set_differences(RunResult& result, const References& references);

}  // namespace headlab
