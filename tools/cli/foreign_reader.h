// SPDX-License-Identifier: Apache-2.0
/// \file The process that opens NetCDF files of others first is the program itself.
#pragma once

namespace headlab::tools {

/// True in that process, after it has served; in any other the program is set to start one where it
/// meets such a file, and to say on standard error what of it is not read.
bool served_foreign_files(int argc, const char* const* argv);

}  // namespace headlab::tools
