// SPDX-License-Identifier: Apache-2.0
/// \file The backends of this build, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace headlab {

/// The backends of this build, without "auto".
std::vector<std::string> backend_names();

/// The backend called `name`, or for "auto" the fastest one on this machine. Throws
/// std::invalid_argument with one line for a backend that this build or machine does not have.
std::unique_ptr<Backend> make_backend(const std::string& name);

}  // namespace headlab
