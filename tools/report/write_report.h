// SPDX-License-Identifier: Apache-2.0
/// \file Where a report goes.
#pragma once

#include <string>
#include <vector>

#include "tools/report/source.h"

namespace headlab::tools {

/// Throws InvalidInput, naming `option`, where no report can be written at `path`: it is "-", one
/// of `inputs`, cannot be written, or is a file that is no report.
void require_report_writable(const std::string& option, const std::string& path,
                             const std::vector<std::string>& inputs = {});

/// Writes the report whole or not at all; throws RunFailed.
void write_report(const std::string& path, const std::vector<Source>& sources);

}  // namespace headlab::tools
