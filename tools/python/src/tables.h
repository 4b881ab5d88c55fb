// SPDX-License-Identifier: Apache-2.0
/// \file Results as tables, in process.
#pragma once

#include <nanobind/nanobind.h>

namespace headlab::python {

/// Adds the function that makes a table of a run, a document or a file.
void bind_tables(nanobind::module_& module);

}  // namespace headlab::python
