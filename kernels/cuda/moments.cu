// SPDX-License-Identifier: Apache-2.0
// Moments from sums, in float64 and in a fixed order: panels one after the other, replicates of a
// leaf one after the other, leaves two by two along the tree. One thread computes one number, so
// that the order does not depend on the machine. The cost is small: about one number for n kernel
// values.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr unsigned moment_threads = 128;

Launch launch_over(std::int64_t numbers) {
  return {.blocks_x = (numbers + moment_threads - 1) / moment_threads, .threads = moment_threads};
}
HEADLAB_DEVICE std::int64_t number_of_thread() {
  return static_cast<std::int64_t>(block_index_x()) * block_threads() + thread_index();
}

HEADLAB_KERNEL void collect_kernel(const CollectArguments a) {
  const std::int64_t at = number_of_thread();
  if (at >= a.rows * a.count) return;
  const std::int64_t row = at / a.count;
  const std::int64_t i = at % a.count;
  if (a.keep != nullptr && a.keep[row] != 0) return;
  const std::int64_t replicate = row / a.queries;
  const std::int64_t query = row % a.queries;
  double sum = 0;
  for (std::int64_t panel = 0; panel < a.panels; ++panel) {
    sum += a.partials[((replicate * a.panels + panel) * a.queries + query) * a.row + a.from + i];
  }
  a.totals[row * a.size + a.to + i] = sum;
}

/// True where a statistic is a sum over all pairs of heads, which pair_statistic_kernel computes.
HEADLAB_HD bool sums_over_pairs(const MomentLayout& layout, const TotalsLayout& totals) {
  return layout.has_alignment() || (layout.conditional && !layout.pairwise() && !totals.ensemble);
}

/// Which statistic of a query that is: the alignment, or the noise of the ensemble.
HEADLAB_HD std::int64_t pair_statistic(const MomentLayout& layout) {
  return static_cast<std::int64_t>(layout.has_alignment()
                                       ? layout.alignment_offset()
                                       : layout.noise_offset() + layout.components() - 1);
}

/// Two components, the first not behind the second.
struct Components {
  int g, l;
};
/// Pair `index` of `count` components, row by row.
HEADLAB_HD Components pair_of(int index, int count) {
  int g = 0;
  while (index >= count - g) index -= count - g++;
  return {g, g + index};
}

/// One statistic of one query of one replicate, in the order of kernels/statistics/moments.h,
/// except those that are sums over all pairs of heads, and those of controls.
HEADLAB_KERNEL void statistics_kernel(const StatisticsArguments a) {
  const MomentLayout& layout = a.layout;
  const auto per_query = static_cast<std::int64_t>(layout.per_query());
  const std::int64_t at = number_of_thread();
  if (at >= a.replicates * layout.queries * per_query) return;
  if (sums_over_pairs(layout, a.totals) && at % per_query == pair_statistic(layout)) return;
  if (at % per_query >= static_cast<std::int64_t>(layout.control_offset())) return;
  const std::int64_t row = at / per_query;
  const int s = static_cast<int>(at % per_query);
  const TotalsLayout& totals = a.totals;
  const double* sums = a.sums + row * totals.size();
  const int heads = totals.heads;
  auto weight = [&](int h) { return sums[totals.weight(h)]; };
  auto estimate = [&](int h) { return a.centre + sums[totals.value(h)] / weight(h); };

  double result = 0;
  const int noise_offset = static_cast<int>(layout.noise_offset());
  if (s < heads) {
    result = estimate(s);
  } else if (s < noise_offset) {
    for (int h = 0; h < heads; ++h) result += a.head_weights[h] * estimate(h);
  } else if (layout.pairwise() && s - noise_offset < totals.squares()) {
    const auto [g, l] = pair_of(s - noise_offset, heads);
    result = a.noise_factor * sums[totals.noise(g, l)] / (weight(g) * weight(l));
  } else if (s - noise_offset < heads) {
    const int h = s - noise_offset;
    result = a.noise_factor * sums[totals.noise(h, h)] / (weight(h) * weight(h));
  } else if (totals.ensemble) {
    result = a.noise_factor * sums[totals.ensemble_noise()];
  }
  a.statistics[at] = result;
}

/// The last statistic of a row where it is a sum over all pairs of heads, by one warp: the
/// alignment of the heads, or the variance of the ensemble sum_gl a_g a_l S_gl / (W_g W_l).
HEADLAB_KERNEL void pair_statistic_kernel(const StatisticsArguments a) {
  const std::int64_t row = number_of_thread() / warp_threads;
  if (row >= a.replicates * a.layout.queries) return;
  const TotalsLayout& totals = a.totals;
  const double* sums = a.sums + row * totals.size();
  const int heads = totals.heads;
  const int lane = static_cast<int>(thread_index() % warp_threads);
  const bool alignment = a.layout.has_alignment();
  const auto product = [&](int g, int l) {
    return sums[a.aligns_noise ? totals.noise(g, l) : totals.square(g, l)];
  };
  double result = 0;
  for (int g = 0; g < heads; ++g) {
    const double norm_g = alignment ? product(g, g) : sums[totals.weight(g)];
    for (int l = g + lane; l < heads; l += static_cast<int>(warp_threads)) {
      if (alignment) {
        if (l == g) continue;
        result += product(g, l) / math::sqrt(norm_g * product(l, l));
      } else {
        const double both =
            a.head_weights[g] / norm_g * (a.head_weights[l] / sums[totals.weight(l)]);
        result += (l == g ? 1 : 2) * both * sums[totals.noise(g, l)];
      }
    }
  }
  for (int mask = 16; mask > 0; mask /= 2) result += shuffle_xor(result, mask);
  if (alignment) {
    result /= static_cast<double>(heads) * (heads - 1) / 2;
  } else {
    // A sum of squares, which only the rounding of the products can make negative.
    result = result > 0 ? a.noise_factor * result : 0.0;
  }
  const auto per_query = static_cast<std::int64_t>(a.layout.per_query());
  if (lane == 0) a.statistics[row * per_query + pair_statistic(a.layout)] = result;
}

/// The numbers of a head at a query of a replicate that controls are made of; its kernel sum is the
/// statistic of a pilot.
HEADLAB_KERNEL void head_numbers_kernel(const ControlArguments a) {
  constexpr double log_2 = 0.6931471805599453;
  const MomentLayout& layout = a.layout;
  const int heads = layout.heads;
  const std::int64_t at = number_of_thread();
  if (at >= a.replicates * layout.queries * heads) return;
  const std::int64_t row = at / heads;
  const auto head = static_cast<int>(at % heads);
  const std::int64_t query = row % layout.queries;
  const double* sums = a.sums + row * a.totals.size();
  double* statistics = a.statistics + row * static_cast<std::int64_t>(layout.per_query());
  const std::int64_t shifted = a.taken[row] != 0 ? 1 : 0;
  const double exponent = a.left_out[(shifted * layout.queries + query) * heads + head] +
                          (shifted != 0 ? sums[a.totals.shift(head)] : 0.0);
  const QueryControls of = a.of(query);
  const auto h = static_cast<std::size_t>(head);
  const double sum = of.sum(h, math::log(sums[a.totals.weight(head)]) + log_2 * exponent);
  a.numbers(row, head) = of.numbers(h, statistics[h], sum);
  if (!layout.controlled()) statistics[layout.control_offset() + h] = sum;
}

/// One controlled statistic of one query of one replicate, in the order of
/// kernels/statistics/moments.h.
HEADLAB_KERNEL void controlled_kernel(const ControlArguments a) {
  const MomentLayout& layout = a.layout;
  const auto per_query = static_cast<std::int64_t>(layout.per_query());
  const auto first = static_cast<std::int64_t>(layout.control_offset());
  const std::int64_t at = number_of_thread();
  if (at >= a.replicates * layout.queries * (per_query - first)) return;
  const std::int64_t row = at / (per_query - first);
  const auto i = static_cast<int>(at % (per_query - first));
  const int heads = layout.heads;
  double* statistics = a.statistics + row * per_query;
  const QueryControls of = a.of(row % layout.queries);
  const auto estimate = [&](int head) {
    return of.controlled_estimate(static_cast<std::size_t>(head), statistics[head],
                                  a.numbers(row, head));
  };
  double result = 0;
  if (i < heads) {
    result = estimate(i);
  } else if (i < heads + a.totals.squares()) {
    const auto [g, l] = pair_of(i - heads, heads);
    const double noise = statistics[layout.noise_offset() + static_cast<std::size_t>(i - heads)];
    result = of.controlled_noise(static_cast<std::size_t>(g), static_cast<std::size_t>(l), noise,
                                 a.numbers(row, g), a.numbers(row, l));
  } else {
    for (int h = 0; h < heads; ++h) result += a.head_weights[h] * estimate(h);
  }
  statistics[first + i] = result;
}

/// Component pair `index` of a layout.
HEADLAB_DEVICE Components components_of(const MomentArguments& a, int index) {
  if (a.ensemble >= 0 && index == a.pairs - 1) return {a.ensemble, a.ensemble};
  return a.pairwise ? pair_of(index, a.components) : Components{index, index};
}

/// One mean or comoment of a leaf, with the operations of leaf_moments in
/// kernels/statistics/moments.cpp.
HEADLAB_KERNEL void leaf_kernel(const MomentArguments a) {
  const std::int64_t numbers = a.per_query + a.pairs;
  const std::int64_t at = number_of_thread();
  if (at >= a.leaves * a.queries * numbers) return;
  const int i = static_cast<int>(at % numbers);
  const std::int64_t query = at / numbers % a.queries;
  const std::int64_t leaf = at / numbers / a.queries;
  const std::int64_t first = leaf * leaf_replicates;
  const auto left = static_cast<int>(a.replicates - first);
  const int count = left < leaf_replicates ? left : leaf_replicates;

  const std::int64_t step = static_cast<std::int64_t>(a.queries) * a.per_query;
  const double* from = a.statistics + first * step + query * a.per_query;
  auto mean = [&](int s) {
    double sum = 0;
    for (int r = 1; r < count; ++r) sum += from[r * step + s] - from[s];
    return count == 1 ? from[s] : from[s] + sum / count;
  };
  double result = 0;
  if (i < a.per_query) {
    result = mean(i);
  } else {
    const Components pair = components_of(a, i - a.per_query);
    const double mean_g = mean(pair.g);
    const double mean_l = mean(pair.l);
    for (int r = 0; count > 1 && r < count; ++r) {
      result += (from[r * step + pair.g] - mean_g) * (from[r * step + pair.l] - mean_l);
    }
  }
  a.nodes[at] = result;
}

/// Comoments of two whole nodes, with the operations of merge_moments; their means in a second
/// launch, because every comoment needs them unmerged.
HEADLAB_KERNEL void merge_kernel(const MomentArguments a, const bool means) {
  const std::int64_t numbers = a.per_query + a.pairs;
  const std::int64_t width = means ? a.per_query : a.pairs;
  const std::int64_t at = number_of_thread();
  const std::int64_t merges = a.leaves / (2 * a.stride);
  if (at >= merges * a.queries * width) return;
  const std::int64_t query = at / width % a.queries;
  const std::int64_t node = at / width / a.queries * 2 * a.stride;
  double* left = a.nodes + (node * a.queries + query) * numbers;
  const double* right = left + a.stride * a.queries * numbers;
  const auto count = static_cast<double>(a.stride * leaf_replicates);
  const int i = static_cast<int>(at % width);
  if (means) {
    left[i] += (right[i] - left[i]) * (count / (count + count));
    return;
  }
  const Components pair = components_of(a, i);
  const double scale = count * count / (count + count);
  double comoment = left[a.per_query + i];
  comoment += scale * (right[pair.g] - left[pair.g]) * (right[pair.l] - left[pair.l]);
  left[a.per_query + i] = comoment + right[a.per_query + i];
}

}  // namespace

void collect(Stream& stream, const CollectArguments& a) {
  launch(stream, "collect", launch_over(a.rows * a.count), collect_kernel, a);
}

void statistics(Stream& stream, const StatisticsArguments& a) {
  launch(stream, "statistics",
         launch_over(a.replicates * static_cast<std::int64_t>(a.layout.statistics())),
         statistics_kernel, a);
  if (!sums_over_pairs(a.layout, a.totals)) return;
  launch(stream, "pair sums", launch_over(a.replicates * a.layout.queries * warp_threads),
         pair_statistic_kernel, a);
}

void control_statistics(Stream& stream, const ControlArguments& a) {
  const std::int64_t rows = a.replicates * a.layout.queries;
  launch(stream, "head numbers", launch_over(rows * a.layout.heads), head_numbers_kernel, a);
  if (!a.layout.controlled()) return;
  const auto numbers = static_cast<std::int64_t>(a.layout.per_query() - a.layout.control_offset());
  launch(stream, "controlled statistics", launch_over(rows * numbers), controlled_kernel, a);
}

void leaves(Stream& stream, const MomentArguments& a) {
  launch(stream, "leaves", launch_over(a.leaves * a.queries * (a.per_query + a.pairs)), leaf_kernel,
         a);
}

void merge_leaves(Stream& stream, const MomentArguments& a) {
  const std::int64_t merges = a.leaves / (2 * a.stride) * a.queries;
  launch(stream, "merge comoments", launch_over(merges * a.pairs), merge_kernel, a, false);
  launch(stream, "merge means", launch_over(merges * a.per_query), merge_kernel, a, true);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
