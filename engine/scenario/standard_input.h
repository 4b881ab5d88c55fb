// SPDX-License-Identifier: Apache-2.0
/// \file Scenarios from standard input.
#pragma once

namespace headlab {

/// What stands in place of the file's name, in messages and in results.
inline constexpr const char* standard_input_name = "<stdin>";

}  // namespace headlab
