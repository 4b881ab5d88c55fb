// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/training_set.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "kernels/design_point.h"

namespace headlab {

TrainingSet draw_training_set(const Plan& plan, std::uint64_t replicate) {
  const auto n = static_cast<std::size_t>(plan.n);
  const auto d = static_cast<std::size_t>(plan.d);
  const std::uint64_t design_seed = plan.fixed_design_seed.value_or(plan.seed);
  const std::uint64_t design_replicate = plan.fixed_design_seed ? 0 : replicate;
  TrainingSet sample;
  sample.x.resize(n * d);
  std::vector<float> point(4 * quads_per_point(plan.d));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t row = std::visit(
        [&](const auto& sampler) {
          return draw_design_point(sampler, plan.table.design(), plan.d, design_seed,
                                   plan.streams.design, plan.streams.design_choice,
                                   design_replicate, i, point.data());
        },
        plan.design);
    double* x = &sample.x[i * d];
    std::copy_n(point.begin(), d, x);
    sample.regression.push_back(std::visit(
        [&](const auto& m) { return m(plan.table.exact(), x, 1, row); }, plan.regression));
    const Words words = philox(plan.seed, subsequence(plan.streams.noise, replicate), i);
    std::visit(
        [&](const auto& noise) {
          const double sd = noise.scale(plan.table.exact(), x, 1);
          sample.noise_sd.push_back(sd);
          sample.noise.push_back(sd * static_cast<double>(noise.unit(words)));
        },
        plan.noise);
  }
  return sample;
}

}  // namespace headlab
