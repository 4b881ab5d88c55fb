// SPDX-License-Identifier: Apache-2.0
#include "kernels/controls.h"

#include <algorithm>

namespace headlab {

void set_controlled(const Controls& controls, const MomentLayout& layout, std::size_t query,
                    std::span<double> weight_sums, std::span<const double> head_weights,
                    double* statistics) {
  const auto heads = static_cast<std::size_t>(layout.heads);
  const QueryControls of(controls, layout, query);
  for (std::size_t h = 0; h < heads; ++h) weight_sums[h] = of.sum(h, weight_sums[h]);
  double* estimates = statistics + layout.control_offset();
  if (layout.controls == ControlStatistics::sums) {
    std::ranges::copy(weight_sums, estimates);
    return;
  }
  std::vector<HeadNumbers> numbers;
  numbers.reserve(heads);
  double& ensemble = statistics[layout.controlled_ensemble()];
  ensemble = 0;
  for (std::size_t h = 0; h < heads; ++h) {
    numbers.push_back(of.numbers(h, statistics[h], weight_sums[h]));
    estimates[h] = of.controlled_estimate(h, statistics[h], numbers[h]);
    ensemble += head_weights[h] * estimates[h];
  }
  const double* noise = statistics + layout.noise_offset();
  double* controlled_noise = statistics + layout.controlled_noise_offset();
  for (std::size_t h = 0, pair = 0; h < heads; ++h) {
    for (std::size_t l = h; l < heads; ++l, ++pair) {
      controlled_noise[pair] = of.controlled_noise(h, l, noise[pair], numbers[h], numbers[l]);
    }
  }
}

}  // namespace headlab
