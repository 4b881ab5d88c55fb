// SPDX-License-Identifier: Apache-2.0
/// \file What a user should know although nothing is refused.
#pragma once

#include <functional>
#include <string>

namespace headlab {

/// Who hears notes; nobody until it is set.
void set_notes(std::function<void(const std::string& line)> listener);

/// Says a line, once however often it comes.
void note(const std::string& line);

}  // namespace headlab
