// SPDX-License-Identifier: Apache-2.0
/// \file Theory, verdicts, allocations, heads, differences and reports in process.
#pragma once

#include <nanobind/nanobind.h>

namespace headlab::python {

/// Adds the functions that start or compute them. What they find is the document of --json with the
/// text of the command.
void bind_studies(nanobind::module_& module);

/// Adds selections of heads and dimensions, their growth and maps.
void bind_allocations(nanobind::module_& module);

/// Adds data sets, replays and files of results.
void bind_data(nanobind::module_& module);

/// Adds estimates from arrays of the caller.
void bind_estimates(nanobind::module_& module);

}  // namespace headlab::python
