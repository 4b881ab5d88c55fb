// SPDX-License-Identifier: Apache-2.0
/// \file headlab help figures.
#pragma once

#include <cstddef>
#include <string>

namespace headlab::tools {

/// What each heading of the tables of `run` and `theory` means, with its name in JSON and NetCDF.
/// \param width of the lines; 0: no limit
std::string figures_help(std::size_t width);

}  // namespace headlab::tools
