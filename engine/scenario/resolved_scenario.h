// SPDX-License-Identifier: Apache-2.0
/// \file A scenario as it was understood, to be read again.
#pragma once

#include <string>

namespace headlab {

struct Scenario;

/// The TOML text of a scenario after --set: keys that were not given stand at their defaults, and
/// paths are absolute. It has the conditions of the scenario, and their bits. Laws that are values
/// of a sweep stay as written.
std::string resolved_toml(const Scenario& scenario);

}  // namespace headlab
