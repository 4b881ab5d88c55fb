// SPDX-License-Identifier: Apache-2.0
// The heads of all kernel laws.
#include <cstddef>
#include <memory>
#include <variant>

#include "kernels/cpu/targets.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/heads.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/head_of_law-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

template <std::size_t Index>
std::unique_ptr<Head> head_of_law(std::size_t subspace, const Plan& plan, int head, double reach) {
  if constexpr (Index < std::variant_size_v<KernelLaws>) {
    if (const auto* law = std::get_if<Index>(&*plan.kernel)) {
      // This target's own law has the members of the plan's.
      using Law = std::variant_alternative_t<Index, laws::KernelLaws>;
      return std::make_unique<HeadOfLaw<Law>>(subspace, plan, head, reach,
                                              __builtin_bit_cast(Law, *law));
    }
    return head_of_law<Index + 1>(subspace, plan, head, reach);
  } else {
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<Head> make_head(std::size_t subspace, const Plan& plan, int head, double reach) {
  return head_of_law<0>(subspace, plan, head, reach);
}

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
