// SPDX-License-Identifier: Apache-2.0
/// \file What compression of heads loses, as a table for a person.
#pragma once

#include <string>

#include "validation/compression/compression.h"

namespace headlab::tools {

/// The losses of heads of a file; `inputs` is the file of inputs, or the argument that takes one.
std::string compression_text(const Compression& compression, const std::string& file,
                             const std::string& inputs);

}  // namespace headlab::tools
