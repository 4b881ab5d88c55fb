// SPDX-License-Identifier: Apache-2.0
/// \file A report: one HTML file that needs no network and no script.
#pragma once

#include <string>
#include <vector>

#include "tools/report/source.h"

namespace headlab::tools {

/// The name by which a report is known again, in its head.
inline constexpr const char* report_generator = "headlab report";

/// The page of all sources: what survives of claims, then each in the order of ADEMP (Morris, White
/// and Crowther 2019). The same bytes for the same results: neither dates nor times of computation.
std::string report_page(const std::vector<Source>& sources);

/// Throws InvalidInput, naming `option`, where no report can be written at `path`: it is "-", one
/// of `inputs`, cannot be written, or is a file that is not a report.
void require_report_writable(const std::string& option, const std::string& path,
                             const std::vector<std::string>& inputs = {});

/// Writes the report whole or not at all; throws RunFailed.
void write_report(const std::string& path, const std::vector<Source>& sources);

}  // namespace headlab::tools
