// SPDX-License-Identifier: Apache-2.0
// The registry of kernel laws, compiled in namespace headlab by kernels/kernel_laws.h, and for each
// SIMD target by kernels/cpu/kernel_laws-inl.h, because a formula is compiled for the instructions
// that it uses. It has no include guard: the macro HEADLAB_LAW_NAMESPACE says where the laws go.
//
// To add a law: its file, its line here, its name in the variant, its test, its row in
// docs/laws.md. The requirements on it are in kernels/law/kernel/kernel_law.h.
#include <variant>

#include "kernels/law/kernel/epanechnikov-inl.h"
#include "kernels/law/kernel/gaussian-inl.h"
#include "kernels/law/kernel/laplace-inl.h"
#include "kernels/law/kernel/softmax-inl.h"
#include "kernels/law/kernel/triangular-inl.h"

namespace HEADLAB_LAW_NAMESPACE {

using KernelLaws = std::variant<GaussianKernel, SoftmaxKernel, EpanechnikovKernel, LaplaceKernel,
                                TriangularKernel>;

}  // namespace HEADLAB_LAW_NAMESPACE
