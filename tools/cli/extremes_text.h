// SPDX-License-Identifier: Apache-2.0
/// \file The most extreme replicates of a run, with the commands that show them in full.
#pragma once

#include <string>

#include "engine/results/result.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// Of all conditions the replicate with the largest squared error, and the one with the least
/// effective sample size, two lines each: how extreme it is, and the command that replays it into a
/// folder of --out. Empty where neither is known.
std::string extremes_text(const RunResult& result, const RunArguments& arguments);

}  // namespace headlab::tools
