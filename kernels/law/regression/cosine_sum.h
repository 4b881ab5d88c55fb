// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numbers>

#include "kernels/law/regression/regression.h"

namespace headlab {

/// m(x) = sum_j amplitude_j cos(frequency_j.x + phase_j): the form of `cosines`, `random_cosines`
/// and `single_index`. Frequencies and phases are kept in turns (divided by 2 pi).
struct CosineSum {
  int terms = 0;
  int d = 0;
  std::int64_t amplitudes = 0;   ///< [terms]
  std::int64_t frequencies = 0;  ///< [terms][d], turns
  std::int64_t phases = 0;       ///< [terms], turns
  bool operator==(const CosineSum&) const = default;

  template <class Number, class T, class Row>
  HEADLAB_HD T operator()(const Number* table, const T* x, std::ptrdiff_t stride,
                          const Row&) const {
    T sum(0);
    constexpr int together = dots_together<T>;
    int j = 0;
    if constexpr (together != 1) {
      for (; j + together <= terms; j += together) {
        T turns[together];
        dots(table + frequencies + j * d, x, d, stride, turns);
        for (int i = 0; i < together; ++i) {
          turns[i] = T(table[phases + j + i]) + turns[i];
          sum = math::fused(table[amplitudes + j + i], math::cos_turns(turns[i]), sum);
        }
      }
    }
    for (; j < terms; ++j) {
      const T turns = T(table[phases + j]) + dot(table + frequencies + j * d, x, d, stride);
      sum = math::fused(table[amplitudes + j], math::cos_turns(turns), sum);
    }
    return sum;
  }
};

/// Puts a cosine sum, in radians, into the table. frequency is [terms][d].
inline CosineSum cosine_sum(Table& table, const std::vector<double>& amplitude,
                            const std::vector<std::vector<double>>& frequency,
                            const std::vector<double>& phase) {
  const double turn = 1 / (2 * std::numbers::pi);
  CosineSum sum{.terms = static_cast<int>(amplitude.size()),
                .d = frequency.empty() ? 0 : static_cast<int>(frequency[0].size())};
  auto in_turns = frequency;
  for (auto& row : in_turns) {
    for (auto& u : row) u *= turn;
  }
  auto phase_in_turns = phase;
  for (auto& p : phase_in_turns) p *= turn;
  sum.amplitudes = table.add(amplitude);
  sum.frequencies = table.add(in_turns);
  sum.phases = table.add(phase_in_turns);
  return sum;
}

}  // namespace headlab
