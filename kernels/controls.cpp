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
  double* noise = estimates + heads;
  double& ensemble = statistics[layout.controlled_ensemble()];
  const auto of_head = [&](std::size_t h) {
    return of.of_estimate(h, statistics[h], weight_sums[h]);
  };
  ensemble = 0;
  for (std::size_t h = 0; h < heads; ++h) {
    estimates[h] = controlled(statistics[h], of.estimate_coefficients(h), of_head(h));
    ensemble += head_weights[h] * estimates[h];
  }
  for (std::size_t h = 0; h < heads; ++h) {
    const auto of_h = of_head(h);
    for (std::size_t l = h; l < heads; ++l) {
      const std::size_t pair = layout.pair(h, l);
      const double s = statistics[layout.noise_offset() + pair];
      noise[pair] = controlled(s, of.noise_coefficients(h, l), of.of_noise(h, l, s, of_h, of_head(l)));
    }
  }
}

}  // namespace headlab
