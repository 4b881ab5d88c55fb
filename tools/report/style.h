// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace headlab::tools {

/// The style of a report: light, dark, and print on A4.
extern const char* const report_style;

}  // namespace headlab::tools
