// SPDX-License-Identifier: Apache-2.0
// From the sums over keys to the statistics of one replicate at one query. Included once per SIMD
// target.

/// What the conditional estimator knows of a query besides the sums of each head.
struct NoiseSums {
  std::optional<double> variance;  ///< of the noise, where it is the same everywhere
  const double* products;          ///< [H(H+1)/2], sum_i w_hi w_li, or null
  const double* noise_products;    ///< [H(H+1)/2], sum_i s_i^2 w_hi w_li, or null
  std::optional<double> ensemble;  ///< sum_i s_i^2 (sum_h a_h w_hi / sum w_h)^2, where it is known
};

/// Writes the statistics [layout.per_query()] of heads with the weights a [H] from their sums [H],
/// see kernels/moments.h. `inverse` is scratch.
inline void write_statistics(const MomentLayout& layout, std::span<const double> a,
                             std::span<const Sums> sums, double centre, const NoiseSums& known,
                             std::vector<double>& inverse, double* out) {
  const std::size_t count = sums.size();
  inverse.resize(count);  // 1 / sum w
  for (std::size_t h = 0; h < count; ++h) {
    inverse[h] = 1 / sums[h].weight;
    out[h] = centre + sums[h].weighted_value * inverse[h];
  }
  if (!layout.pairwise()) {
    out[count] = 0;
    for (std::size_t h = 0; h < count; ++h) out[count] += a[h] * out[h];
  }
  if (!layout.conditional) return;

  double* noise = out + layout.noise_offset();
  const double s2 = known.variance.value_or(1.0);
  const double* scaled = known.variance ? known.products : known.noise_products;
  if (!layout.pairwise()) {
    for (std::size_t h = 0; h < count; ++h) {
      const double square = !known.ensemble  ? scaled[pair_index(count, h, h)]
                            : known.variance ? sums[h].weight_squared
                                             : sums[h].noise;
      noise[h] = s2 * square * inverse[h] * inverse[h];
    }
    if (known.ensemble) {
      noise[count] = *known.ensemble;
      return;
    }
    noise[count] = 0;
    for (std::size_t h = 0; h < count; ++h) inverse[h] *= a[h];
    for (std::size_t h = 0; h < count; ++h) {
      for (std::size_t l = h; l < count; ++l) {
        noise[count] +=
            (h == l ? 1 : 2) * s2 * scaled[pair_index(count, h, l)] * inverse[h] * inverse[l];
      }
    }
    return;
  }
  for (std::size_t h = 0, pair = 0; h < count; ++h) {
    for (std::size_t l = h; l < count; ++l, ++pair) {
      noise[pair] = s2 * scaled[pair] * inverse[h] * inverse[l];
    }
  }
  if (!layout.has_alignment()) return;
  for (std::size_t h = 0; h < count; ++h) {
    inverse[h] = 1 / std::sqrt(known.products[pair_index(count, h, h)]);
  }
  double cosines = 0;
  for (std::size_t h = 0, pair = 0; h < count; ++h) {
    ++pair;  // (h, h)
    for (std::size_t l = h + 1; l < count; ++l, ++pair) {
      cosines += known.products[pair] * inverse[h] * inverse[l];
    }
  }
  out[layout.alignment_offset()] = cosines / static_cast<double>(count * (count - 1) / 2);
}
