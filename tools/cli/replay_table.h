// SPDX-License-Identifier: Apache-2.0
/// \file A replayed replicate as text.
#pragma once

#include <cstddef>
#include <string>

#include "engine/replay/replay.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

/// A row for each head at each query, and for the ensemble where it is one of several heads; of
/// more than 32 windows those of least effective sample size.
std::string replay_table(const Scenario& scenario, std::size_t condition, const Replay& replay);

}  // namespace headlab::tools
