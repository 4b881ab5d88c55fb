// SPDX-License-Identifier: Apache-2.0
/// \file Tables of what commands leave in folders and files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/tables/table_source.h"

namespace headlab::tools {

/// All results of some folders of --out and files of --json, one below the other. The columns of a
/// results.nc stand for the summary.json beside it. Throws InvalidInput.
std::unique_ptr<TableSource> read_tables(const std::vector<std::string>& paths, TableOf of);

}  // namespace headlab::tools
