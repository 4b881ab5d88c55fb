// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/training_set.h"

#include <algorithm>
#include <cmath>
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

TrainingSet tokens_of(const Plan& plan, TrainingSet sample) {
  const Merge& merge = plan.mechanism.merge;
  if (merge.off()) return sample;
  const auto d = static_cast<std::size_t>(plan.d);
  const auto stride = static_cast<std::size_t>(merge.stride);
  const std::size_t n = sample.regression.size();
  TrainingSet tokens;
  for (std::size_t first = 0; first < n; first += stride) {
    const std::size_t points = std::min(stride, n - first);
    const double v = merge.weight(points);
    double regression = 0;
    double variance = 0;
    double noise = 0;
    std::vector<double> x(d);
    for (std::size_t i = first; i < first + points; ++i) {
      for (std::size_t c = 0; c < d; ++c) x[c] += v * sample.x[i * d + c];
      regression += v * sample.regression[i];
      variance += v * v * sample.noise_sd[i] * sample.noise_sd[i];
      noise += v * sample.noise[i];
    }
    tokens.x.insert(tokens.x.end(), x.begin(), x.end());
    tokens.regression.push_back(regression);
    tokens.noise_sd.push_back(std::sqrt(variance));
    tokens.noise.push_back(noise);
  }
  return tokens;
}

}  // namespace headlab
