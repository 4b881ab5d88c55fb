// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sizes.h"

#include <algorithm>
#include <bit>

#include "kernels/plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

void check_sizes(const PlanSizes& sizes) {
  // At least what launch_plan.cpp and the fragments of tensor cores pad to, an extra coordinate of
  // a mechanism included.
  constexpr std::uint64_t side = 16, max_padded = 64, block_queries = 512;
  const std::uint64_t k = sizes.k + 1;
  const std::uint64_t rows = std::max(side, k <= max_padded ? std::bit_ceil(k) : k);
  const std::uint64_t heads = sizes.heads + 7;
  count_of("numbers of projections (heads, d_k, d)", {heads, rows, sizes.d + side});
  count_of("numbers of queries (heads, d_k, queries)",
           {heads, rows, sizes.queries + block_queries});
  if (sizes.pairs) count_of("sums over pairs of heads", {sizes.heads, sizes.heads + 3});
}

void check_sizes(const Plan& plan) {
  check_sizes(
      {.d = static_cast<std::uint64_t>(plan.d),
       .heads = static_cast<std::uint64_t>(plan.heads),
       .k = static_cast<std::uint64_t>(plan.k),
       .queries = static_cast<std::uint64_t>(plan.queries),
       .pairs = plan.estimator == Estimator::conditional && plan.moments == MomentMode::pairwise});
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
