// SPDX-License-Identifier: Apache-2.0
// The NPY reader on arbitrary bytes: it returns an array that fits its shape, or refuses.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/files/error.h"
#include "engine/files/npy_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const headlab::NpyArray array =
        headlab::parse_npy_array({reinterpret_cast<const char*>(data), size}, "fuzz", 1, 3);
    std::size_t count = 1;
    for (const std::uint64_t length : array.shape) count *= length;
    if (count == 0 || count != array.values.size() || count > size) std::abort();
    for (const double value : array.values) {
      if (!std::isfinite(value)) std::abort();
    }
  } catch (const headlab::InvalidInput& refusal) {
    if (std::string_view(refusal.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
