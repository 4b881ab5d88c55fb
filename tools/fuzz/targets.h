// SPDX-License-Identifier: Apache-2.0
/// \file The targets that a program of tests replays.
#pragma once

#include <vector>

#include "tools/fuzz/target.h"

namespace headlab::fuzz {

extern const std::vector<const Target*> targets;

}  // namespace headlab::fuzz
