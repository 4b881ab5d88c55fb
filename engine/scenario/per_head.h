// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/counted.h"
#include "kernels/parameter.h"

namespace headlab {

/// A parameter: one whole number for every head, or one each.
struct PerHead {
  std::vector<std::uint64_t> values;

  bool operator==(const PerHead&) const = default;

  std::uint64_t operator[](int head) const {
    return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(head)];
  }
  /// Throws ParameterError(key, ...) unless there is one number, or one for each head.
  void check(const char* key, int heads) const {
    if (values.size() > 1 && values.size() != static_cast<std::size_t>(heads)) {
      throw ParameterError(key, "has " + counted(values.size(), "element") +
                                    ", needs one for all heads or one each (" +
                                    std::to_string(heads) + ")");
    }
  }
};

}  // namespace headlab
