// SPDX-License-Identifier: Apache-2.0
/// \file Launches a kernel on a stream: on the device under nvcc, on the host where emulated.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/sizes.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Thread blocks of a grid, threads of a block and bytes of shared memory.
struct Launch {
  std::int64_t blocks_x = 1;
  unsigned blocks_y = 1;
  unsigned threads = 128;
  std::uint64_t shared_bytes = 0;
};

/// What a grid has of thread blocks, which a device numbers by an int too.
inline unsigned blocks_of(const Launch& grid) {
  return static_cast<unsigned>(
      count_of("thread blocks of a kernel", {static_cast<std::uint64_t>(grid.blocks_x)}));
}

/// Shared memory of a thread block above which a kernel has to opt in [bytes].
inline constexpr std::uint64_t large_shared_memory = 48 * 1024;

#if defined(__CUDACC__)
template <class... Arguments>
void launch(Stream& stream, const char* name, const Launch& grid, void (*kernel)(Arguments...),
            const Arguments&... arguments) {
  if (grid.shared_bytes > large_shared_memory) {
    stream.allow_shared_memory(reinterpret_cast<const void*>(kernel));
  }
  kernel<<<dim3(blocks_of(grid), grid.blocks_y), grid.threads, grid.shared_bytes,
           static_cast<cudaStream_t>(stream.handle())>>>(arguments...);
  stream.check_launch(name);
}
#elif defined(HEADLAB_EMULATE_CUDA)
template <class... Arguments>
void launch(Stream& stream, const char* name, const Launch& grid, void (*kernel)(Arguments...),
            const Arguments&... arguments) {
  if (grid.shared_bytes > large_shared_memory) {
    stream.allow_shared_memory(reinterpret_cast<const void*>(kernel));
  }
  emulate({blocks_of(grid), grid.blocks_y, grid.threads, grid.shared_bytes},
          [&] { kernel(arguments...); });
  stream.check_launch(name);
}
#endif

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
