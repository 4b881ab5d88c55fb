// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace headlab::tools {

/// `headlab list [laws|scenarios]`: what a scenario may contain, and those that come with headlab;
/// both for an empty `what`. Returns the exit code; throws Refused for anything else.
int command_list(const std::string& what);

}  // namespace headlab::tools
