// SPDX-License-Identifier: Apache-2.0
/// \file The serial float64 backend: the definition that every fast path is tested against. It is
/// written to be read, and never tuned.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace headlab {

std::unique_ptr<Backend> make_reference_backend();

}  // namespace headlab
