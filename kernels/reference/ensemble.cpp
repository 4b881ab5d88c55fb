// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/ensemble.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <variant>

namespace headlab {
namespace {

/// Windows whose largest kernel value is below 2^-126 count as empty.
const double log_empty = -126 * std::log(2.0);

}  // namespace

std::vector<double> nw_weights(const Plan& plan, const TrainingSet& sample, int head, int query,
                               WindowCounts& windows) {
  const int d = plan.d;
  const double* w = &plan.projections[static_cast<std::size_t>(head) * d * plan.k];
  const double* w_query = plan.query_projection(head);
  const double* x = &plan.query_points[static_cast<std::size_t>(query) * d];
  std::vector<double> weights;
  double largest = -std::numeric_limits<double>::infinity();
  double nearest = std::numeric_limits<double>::infinity();
  std::size_t nearest_key = 0;
  bool counts_empty = true;
  for (std::size_t i = 0; i < sample.regression.size(); ++i) {
    const double* key = &sample.x[i * static_cast<std::size_t>(d)];
    double r2 = 0;
    double norm2 = 0;
    for (int j = 0; j < plan.k; ++j) {
      double projected_difference = 0;
      double projected_key = 0;
      for (int c = 0; c < d; ++c) {
        projected_difference += w_query[c * plan.k + j] * x[c] - w[c * plan.k + j] * key[c];
        projected_key += w[c * plan.k + j] * key[c];
      }
      r2 += projected_difference * projected_difference;
      norm2 += projected_key * projected_key;
    }
    const double log_weight = std::visit(
        [&](const auto& law) {
          using Law = std::decay_t<decltype(law)>;
          counts_empty = Law::counts_empty_windows;
          const double unit = law.length_scale() * law.length_scale();
          double value = law.log_weight(r2 / unit);
          if constexpr (Law::has_key_prior) value += law.log_prior(norm2 / unit);
          return value;
        },
        plan.kernel);
    weights.push_back(log_weight);
    largest = std::max(largest, log_weight);
    if (r2 < nearest) {
      nearest = r2;
      nearest_key = i;
    }
  }
  if (counts_empty && largest < log_empty) ++windows.empty;
  if (largest == -std::numeric_limits<double>::infinity()) {
    std::ranges::fill(weights, 0.0);
    weights[nearest_key] = 1;
  } else {
    double sum = 0;
    for (double& weight : weights) {
      weight = std::exp(weight - largest);
      sum += weight;
    }
    for (double& weight : weights) weight /= sum;
  }
  if (effective_sample_size(weights) < 2) ++windows.narrow;
  return weights;
}

double effective_sample_size(std::span<const double> weights) {
  double square = 0;
  for (const double weight : weights) square += weight * weight;
  return 1 / square;
}

void query_statistics(const Plan& plan, const TrainingSet& sample,
                      std::span<const std::vector<double>> weights, double* out) {
  const MomentLayout layout = plan.layout();
  const auto heads = static_cast<std::size_t>(plan.heads);
  const std::size_t n = sample.regression.size();
  for (std::size_t h = 0; h < heads; ++h) {
    double estimate = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double value = sample.regression[i] + (layout.conditional ? 0.0 : sample.noise[i]);
      estimate += weights[h][i] * value;
    }
    out[h] = estimate;
  }
  if (!layout.pairwise()) {
    out[heads] = 0;
    for (std::size_t h = 0; h < heads; ++h) out[heads] += plan.head_weights[h] * out[h];
  }
  if (!layout.conditional) return;

  double* noise = out + layout.noise_offset();
  auto noise_covariance = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += sample.noise_sd[i] * sample.noise_sd[i] * a[i] * b[i];
    }
    return sum;
  };
  if (layout.pairwise()) {
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        noise[layout.pair(h, l)] = noise_covariance(weights[h], weights[l]);
      }
    }
  } else {
    std::vector<double> ensemble(n, 0.0);
    for (std::size_t h = 0; h < heads; ++h) {
      noise[h] = noise_covariance(weights[h], weights[h]);
      for (std::size_t i = 0; i < n; ++i) ensemble[i] += plan.head_weights[h] * weights[h][i];
    }
    noise[heads] = noise_covariance(ensemble, ensemble);
  }
  if (layout.has_alignment()) {
    auto dot = [&](std::size_t h, std::size_t l) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += weights[h][i] * weights[l][i];
      return sum;
    };
    double sum = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h + 1; l < heads; ++l) {
        sum += dot(h, l) / std::sqrt(dot(h, h) * dot(l, l));
      }
    }
    out[layout.alignment_offset()] = sum / static_cast<double>(heads * (heads - 1) / 2);
  }
}

std::vector<double> reference_statistics(const Plan& plan, const TrainingSet& sample,
                                         WindowCounts& windows, double* min_sample_size) {
  const MomentLayout layout = plan.layout();
  std::vector<double> statistics(layout.statistics());
  double least = std::numeric_limits<double>::infinity();
  for (int q = 0; q < plan.queries; ++q) {
    std::vector<std::vector<double>> weights;
    for (int h = 0; h < plan.heads; ++h) {
      weights.push_back(nw_weights(plan, sample, h, q, windows));
      least = std::min(least, effective_sample_size(weights.back()));
    }
    query_statistics(plan, sample, weights,
                     &statistics[static_cast<std::size_t>(q) * layout.per_query()]);
  }
  if (min_sample_size != nullptr) *min_sample_size = least;
  return statistics;
}

}  // namespace headlab
