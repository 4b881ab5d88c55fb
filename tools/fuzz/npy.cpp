// SPDX-License-Identifier: Apache-2.0
// The NPY reader returns an array that fits its shape.
#include <cmath>

#include "engine/files/npy_file.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

const Target reader::npy = {
    "npy", [](const std::string& bytes) {
      const NpyArray array = parse_npy_array(bytes, "fuzz", 1, 3);
      std::size_t count = 1;
      for (const std::uint64_t length : array.shape) count *= length;
      require(count > 0 && count == array.values.size() && count <= bytes.size(),
              "numbers that do not fit the shape");
      for (const double value : array.values) {
        require(std::isfinite(value), "a number that is not finite");
      }
    }};

}  // namespace headlab::fuzz
