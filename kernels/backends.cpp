// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends.h"

#include <stdexcept>

#include "kernels/cpu/backend.h"
#include "kernels/reference/backend.h"

#if defined(HEADLAB_HAVE_CUDA)
#include "kernels/cuda/backend.h"
#include "kernels/cuda/runtime.h"
#endif

namespace headlab {

std::vector<std::string> backend_names() {
#if defined(HEADLAB_HAVE_CUDA)
  return {"reference", "cpu", "cuda"};
#else
  return {"reference", "cpu"};
#endif
}

std::unique_ptr<Backend> make_backend(const std::string& name) {
  if (name == "reference") return make_reference_backend();
  if (name == "cpu") return make_cpu_backend();
#if defined(HEADLAB_HAVE_CUDA)
  if (name == "cuda" || name == "auto") {
    try {
      return cuda::make_cuda_backend();
    } catch (const cuda::Unavailable& missing) {
      if (name == "auto") return make_cpu_backend();
      throw std::invalid_argument("--backend cuda: " + std::string(missing.what()) +
                                  ", or use --backend cpu");
    }
  }
#else
  if (name == "auto") return make_cpu_backend();
  if (name == "cuda") {
    throw std::invalid_argument(
        "--backend cuda: this build has no CUDA backend - configure with cmake --preset cuda "
        "(needs the CUDA toolkit) or use --backend cpu");
  }
#endif
  throw std::invalid_argument("--backend " + name +
                              ": no such backend (allowed: auto, reference, cpu, cuda)");
}

}  // namespace headlab
