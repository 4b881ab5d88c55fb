// SPDX-License-Identifier: Apache-2.0
#include "engine/run/not_finite.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engine/files/document.h"
#include "engine/files/words.h"
#include "kernels/plan.h"
#include "kernels/reference/training_set.h"

namespace headlab {
namespace {

constexpr std::uint64_t max_points = 10000000;

/// As backends of float32 see it.
bool is_finite(double value) {
  return std::isfinite(static_cast<float>(value));
}

std::string at_point(const TrainingSet& set, int d, std::size_t i, std::uint64_t replicate) {
  std::string text;
  for (std::size_t j = 0; j < static_cast<std::size_t>(d); ++j) {
    const double x = set.x[i * static_cast<std::size_t>(d) + j];
    text += (j == 0 ? "" : ", ") + number_text(x);
  }
  return " at x = (" + one_line(text, 200) + "), point " + std::to_string(i) + " of replicate " +
         std::to_string(replicate);
}

}  // namespace

std::string why_not_finite(const Plan& plan, std::uint64_t replicates) {
  const std::uint64_t few = std::min(replicates, max_points / std::max<std::uint64_t>(plan.n, 1));
  for (std::uint64_t r = 0; r < few; ++r) {
    const TrainingSet set = draw_training_set(plan, r);
    for (std::size_t i = 0; i < set.regression.size(); ++i) {
      if (!is_finite(set.regression[i])) {
        return "the regression is " + number_text(set.regression[i]) + at_point(set, plan.d, i, r);
      }
      if (!is_finite(set.noise_sd[i])) {
        return "the noise has standard deviation " + number_text(set.noise_sd[i]) +
               at_point(set, plan.d, i, r);
      }
    }
  }
  return "values of the design, regression or noise leave the range of the numbers in use - try "
         "--backend reference";
}

}  // namespace headlab
