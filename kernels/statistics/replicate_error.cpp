// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/replicate_error.h"

#include <array>

namespace headlab {
namespace {

/// Sums in several accumulators: one alone would wait for each addition.
double dot_product(const double* a, const double* b, std::size_t count) {
  std::array<double, 4> sums = {};
  std::size_t i = 0;
  for (; i + sums.size() <= count; i += sums.size()) {
    for (std::size_t s = 0; s < sums.size(); ++s) sums[s] += a[i + s] * b[i + s];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

ReplicateError::ReplicateError(const MomentLayout& layout, std::span<const double> head_weights,
                               std::span<const double> truth)
    : layout_(layout),
      head_weights_(head_weights.begin(), head_weights.end()),
      truth_(truth.begin(), truth.end()) {
  if (!layout.pairwise() || !layout.conditional) return;
  for (std::size_t g = 0; g < layout.components(); ++g) {
    for (std::size_t l = g; l < layout.components(); ++l) {
      pair_weights_.push_back((g == l ? 1 : 2) * head_weights_[g] * head_weights_[l]);
    }
  }
}

double ReplicateError::ensemble(const double* statistics) const {
  const auto heads = static_cast<std::size_t>(layout_.heads);
  if (!layout_.pairwise()) return statistics[heads];
  return dot_product(head_weights_.data(), statistics, heads);
}

double ReplicateError::noise(const double* statistics) const {
  if (!layout_.conditional) return 0;
  const double* noise = statistics + layout_.noise_offset();
  if (!layout_.pairwise()) return noise[layout_.heads];
  return dot_product(pair_weights_.data(), noise, pair_weights_.size());
}

double ReplicateError::at_query(std::size_t q, const double* statistics) const {
  const double error = ensemble(statistics) - truth_[q];
  return error * error + noise(statistics);
}

double ReplicateError::operator()(std::span<const double> statistics) const {
  double sum = 0;
  for (std::size_t q = 0; q < truth_.size(); ++q) {
    sum += at_query(q, &statistics[q * layout_.per_query()]);
  }
  return sum / static_cast<double>(truth_.size());
}

}  // namespace headlab
