// SPDX-License-Identifier: Apache-2.0
// The safetensors reader on arbitrary bytes: every tensor it lists can be read in full or is
// refused.
#include "engine/files/safetensors.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "engine/files/error.h"

namespace {

void refuse_two_lines(const headlab::InvalidInput& refusal) {
  if (std::string_view(refusal.what()).find('\n') != std::string_view::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    headlab::SafetensorsFile file(std::make_unique<std::istringstream>(
                                      std::string(reinterpret_cast<const char*>(data), size)),
                                  "fuzz");
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : file.tensors()) {
      bytes += tensor.end - tensor.begin;
      try {
        for (const double value : file.read(name)) {
          if (!std::isfinite(value)) std::abort();
        }
      } catch (const headlab::InvalidInput& refusal) {
        refuse_two_lines(refusal);
      }
    }
    if (bytes > size) std::abort();
  } catch (const headlab::InvalidInput& refusal) {
    refuse_two_lines(refusal);
  }
  return 0;
}
