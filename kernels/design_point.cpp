// SPDX-License-Identifier: Apache-2.0
#include "kernels/design_point.h"

#include <variant>

#include "kernels/laws.h"

namespace headlab {

std::uint32_t draw_design_point(const DesignSampler& design, const float* table, int d,
                                std::uint64_t seed, Purpose base, Purpose choice,
                                std::uint64_t replicate, std::uint64_t point, float* x) {
  return std::visit(
      [&](const auto& sampler) {
        return draw_design_point(sampler, table, d, seed, base, choice, replicate, point, x);
      },
      design);
}

}  // namespace headlab
