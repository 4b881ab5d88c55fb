// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Shared memory with which three thread blocks still fit on a multiprocessor.
constexpr std::uint64_t comfortable_bytes = 72 << 10;
/// Maximum H for which aggregate moments come from the sums of all pairs in one pass: (H + 1) / 2
/// slots per kernel value then cost less than computing the values twice.
constexpr int max_pair_heads = 16;
/// Maximum |query - key|^2 between a query and a key that matters, in the units of the exponent:
/// each rounding of a product then moves an exponent by at most 2^-13, to either side.
constexpr double max_norm = 2048;
/// Distance beyond which kernel values, below 2^-40, do not matter.
constexpr double reach = 6.4;

template <class Integer>
Integer divide_up(Integer a, Integer b) {
  return (a + b - 1) / b;
}
int power_of_two_below(int x) {
  return x < 1 ? 1 : static_cast<int>(std::bit_floor(static_cast<unsigned>(x)));
}

bool on_tensor_cores(Microkernel m) {
  return m == Microkernel::tensor16 || m == Microkernel::tensor32 || m == Microkernel::tensor64;
}

/// True where products are accurate at every query.
bool products_are_accurate(const Plan& plan) {
  const std::vector<double> queries = projected_queries(plan);
  const auto count = static_cast<std::size_t>(plan.queries);
  const auto k = static_cast<std::size_t>(plan.k);
  for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
    for (std::size_t q = 0; q < count; ++q) {
      double norm2 = 0;
      for (std::size_t j = 0; j < k; ++j) {
        const double x = queries[(h * k + j) * count + q];
        norm2 += x * x;
      }
      const double far = std::sqrt(norm2) + reach;
      if (!(far * far <= max_norm)) return false;
    }
  }
  return true;
}

/// \param k coordinates of a key
Microkernel choose_microkernel(const Plan& plan, int k, const LaunchLimits& limits) {
  const auto norm_coefficient = norm_coefficient_of(plan.kernel);
  const bool only_products = norm_coefficient == 0.0;
  const bool products = only_products || (norm_coefficient && products_are_accurate(plan));
  if (plan.queries < 3) return Microkernel::any;
  if (k <= 2 && !only_products) return Microkernel::distances2;
  if (k <= 4) return products ? Microkernel::dots4 : Microkernel::distances4;
  if (k <= 8) return products ? Microkernel::dots8 : Microkernel::distances8;
  if (!products || limits.no_tensor_cores || k > 64) return Microkernel::any;
  return k <= 16 ? Microkernel::tensor16 : k <= 32 ? Microkernel::tensor32 : Microkernel::tensor64;
}

int padded_k_of(Microkernel microkernel, int k) {
  switch (microkernel) {
    case Microkernel::distances2:
      return 2;
    case Microkernel::distances4:
    case Microkernel::dots4:
      return 4;
    case Microkernel::distances8:
    case Microkernel::dots8:
      return 8;
    case Microkernel::tensor16:
      return 16;
    case Microkernel::tensor32:
      return 32;
    case Microkernel::tensor64:
      return 64;
    case Microkernel::any:
      return k;
  }
  return k;
}

/// Bytes of two staged tiles: one is used while the other is copied.
std::uint64_t stage_bytes(int group_heads, int padded_k) {
  return 2 * static_cast<std::uint64_t>(stage_floats(group_heads, padded_k)) * sizeof(float);
}

/// Tilings of the kernels that weigh keys.
class Tiler {
 public:
  Tiler(const Plan& plan, const LaunchLimits& limits, Microkernel microkernel, int padded_k,
        std::int64_t padded_n)
      : plan_(plan),
        limits_(limits),
        microkernel_(microkernel),
        padded_k_(padded_k),
        padded_n_(padded_n) {}

  /// Sums in registers: a thread block has the queries of a few heads. Threads left over share the
  /// keys.
  std::optional<Tiling> sums() const {
    Tiling tiling;
    const int groups = divide_up(columns(), 32);
    tiling.query_columns = round_columns(divide_up(columns(), groups));
    // With few keys more heads in a block pay more than more threads at the same keys.
    const auto wanted_splits =
        static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::clamp<std::int64_t>(
            divide_up<std::int64_t>(padded_n_, limits_.keys_of_thread), 1, max_splits()))));
    int heads = std::clamp(
        tiling.threads / (tiling.query_columns * std::max(wanted_splits, lanes())), 1, plan_.heads);
    while (heads > 1 && stage_bytes(heads, padded_k_) > comfortable_bytes / 2) --heads;
    return finish(tiling, heads, [&] {
      tiling.panel_keys = std::int64_t{limits_.keys_of_thread} * tiling.splits;
      // Three sums per query of a thread.
      const auto end =
          static_cast<std::uint64_t>(tiling.threads * 3 * queries_of_thread(microkernel_));
      return std::max(stage_bytes(tiling.group_heads, padded_k_), end * sizeof(float));
    });
  }

  /// Kernel values of all heads in shared memory, summed pair by pair.
  std::optional<Tiling> pairs(int pair_tile) const {
    const int side = std::min(pair_tile, 8);
    const int tiles = divide_up(plan_.heads, side);
    const int tile_pairs = tiles * (tiles + 1) / 2;
    const int sums_of_thread = pair_tile == 16 ? side * side : side * (side + 1) / 2 + 2 * side;
    Tiling tiling;
    tiling.threads = pair_tile == 16 ? 256 : 128;
    return largest_tiling(tiling, tiling.threads / tile_pairs, [&] {
      const int items = tiling.block_queries * tile_pairs;
      const int splits = std::min(tile_keys / 4, power_of_two_below(tiling.threads / items));
      tiling.panel_keys = std::int64_t{limits_.keys_of_thread} * splits;
      const auto end = static_cast<std::uint64_t>(tiling.threads * sums_of_thread);
      return std::max(with_weights(tiling, tiles * side), end * sizeof(float));
    });
  }

  /// Kernel values of a group of heads in shared memory, summed over the heads.
  std::optional<Tiling> ensemble() const {
    Tiling tiling;
    return largest_tiling(tiling, tiling.threads * ensemble_steps / (tile_keys / 4), [&] {
      tiling.panel_keys =
          std::int64_t{limits_.keys_of_thread} * (tiling.threads / tiling.block_queries);
      return std::max(with_weights(tiling, tiling.group_heads),
                      static_cast<std::uint64_t>(tiling.threads) * sizeof(float));
    });
  }

 private:
  int columns() const { return divide_up(plan_.queries, queries_of_thread(microkernel_)); }
  /// A warp on the tensor cores has eight columns.
  int round_columns(int columns) const {
    return on_tensor_cores(microkernel_) ? divide_up(columns, 8) * 8 : columns;
  }
  /// Lanes of a warp that share a step of keys.
  int lanes() const { return on_tensor_cores(microkernel_) ? 4 : 1; }
  int max_splits() const {
    return on_tensor_cores(microkernel_) ? 4 * tile_keys / 8 : tile_keys / 4;
  }

  std::uint64_t with_weights(const Tiling& tiling, int head_rows) const {
    return stage_bytes(tiling.group_heads, padded_k_) +
           static_cast<std::uint64_t>(tiling.block_queries) *
               static_cast<std::uint64_t>(weight_query_stride(head_rows)) * sizeof(float);
  }

  /// Fills in what follows from the query columns and the heads of a group; `bytes` sets the panel
  /// and returns the shared memory. None where it does not fit.
  template <class Bytes>
  std::optional<Tiling> finish(Tiling& tiling, int group_heads, const Bytes& bytes) const {
    tiling.group_heads = group_heads;
    tiling.head_groups = divide_up(plan_.heads, group_heads);
    tiling.block_queries = tiling.query_columns * queries_of_thread(microkernel_);
    tiling.query_groups = divide_up(plan_.queries, tiling.block_queries);
    tiling.splits = std::min(
        max_splits(), power_of_two_below(tiling.threads / (group_heads * tiling.query_columns)));
    if (tiling.splits < lanes()) return std::nullopt;
    tiling.shared_bytes = bytes();
    if (tiling.shared_bytes > limits_.shared_bytes) return std::nullopt;
    tiling.panel_keys = std::min(tiling.panel_keys, padded_n_);
    tiling.panels = divide_up(padded_n_, tiling.panel_keys);
    return tiling;
  }

  /// Tiling with the most queries per thread block, up to `max_queries`, whose memory is
  /// comfortable, else with the fewest. All heads are one group where they fit: their queries stay
  /// in registers.
  template <class Bytes>
  std::optional<Tiling> largest_tiling(Tiling& tiling, int max_queries, const Bytes& bytes) const {
    std::optional<Tiling> best;
    for (int wanted = power_of_two_below(columns() * 2 - 1); wanted >= 1; wanted /= 2) {
      tiling.query_columns = round_columns(wanted);
      if (tiling.query_columns * queries_of_thread(microkernel_) > max_queries) continue;
      int heads = std::clamp(tiling.threads / (tiling.query_columns * lanes()), 1, plan_.heads);
      while (heads > 1 && stage_bytes(heads, padded_k_) > comfortable_bytes / 2) --heads;
      if (const auto found = finish(tiling, heads, bytes)) {
        best = found;
        if (found->shared_bytes <= comfortable_bytes) break;
      }
    }
    return best;
  }

  const Plan& plan_;
  const LaunchLimits& limits_;
  Microkernel microkernel_;
  int padded_k_;
  std::int64_t padded_n_;
};

}  // namespace

int queries_of_thread(Microkernel microkernel) {
  if (microkernel == Microkernel::any) return 1;
  return microkernel == Microkernel::tensor64 ? 2 : thread_queries;
}

std::vector<double> centre_of(const Plan& plan) {
  const auto d = static_cast<std::size_t>(plan.d);
  const auto count = static_cast<std::size_t>(plan.queries);
  std::vector<double> centre(d);
  std::vector<double> coordinate(count);
  for (std::size_t c = 0; c < d; ++c) {
    for (std::size_t q = 0; q < count; ++q) coordinate[q] = plan.query_points[q * d + c];
    const auto middle = coordinate.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(coordinate.begin(), middle, coordinate.end());
    centre[c] = static_cast<double>(static_cast<float>(*middle));
  }
  return centre;
}

double key_unit(const KernelLaw& kernel) {
  // Laws with a product form are kept in units in which log2 w = -|query - key|^2.
  const double unit = 1 / length_scale(kernel);
  return norm_coefficient_of(kernel) ? unit * std::sqrt(0.5 / std::log(2.0)) : unit;
}

std::vector<double> projected_queries(const Plan& plan) {
  const bool centred = norm_coefficient_of(plan.kernel) != 0.0;
  const std::vector<double> centre =
      centred ? centre_of(plan) : std::vector<double>(static_cast<std::size_t>(plan.d), 0.0);
  const double unit = key_unit(plan.kernel);
  const auto d = static_cast<std::size_t>(plan.d);
  const auto k = static_cast<std::size_t>(plan.k);
  const auto count = static_cast<std::size_t>(plan.queries);
  std::vector<double> projected(static_cast<std::size_t>(plan.heads) * k * count);
  for (std::size_t row = 0; row < static_cast<std::size_t>(plan.heads) * k; ++row) {
    const std::size_t head = row / k;
    for (std::size_t q = 0; q < count; ++q) {
      double sum = 0;
      for (std::size_t c = 0; c < d; ++c) {
        sum += plan.query_projection(static_cast<int>(head))[c * k + row % k] *
               (plan.query_points[q * d + c] - centre[c]);
      }
      projected[row * count + q] = sum * unit;
    }
  }
  return projected;
}

LaunchPlan plan_launch(const Plan& plan, const LaunchLimits& limits) {
  LaunchPlan launch(plan);
  const bool conditional = plan.estimator == Estimator::conditional;
  const bool pairwise = plan.moments == MomentMode::pairwise;
  launch.totals = {.heads = plan.heads,
                   .pairs = conditional && (pairwise || plan.heads <= max_pair_heads),
                   .scaled = conditional && !has_constant_noise(plan),
                   .ensemble = conditional && !pairwise && plan.heads > max_pair_heads};
  const auto whole_tiles = [](std::uint64_t points) {
    return divide_up<std::int64_t>(static_cast<std::int64_t>(points), tile_keys) * tile_keys;
  };
  launch.padded_n = whole_tiles(launch.tokens.tokens);
  launch.padded_points = launch.tokens.separate ? whole_tiles(launch.tokens.points) : 0;
  launch.slice_replicates = static_cast<int>(
      std::max<std::int64_t>(1, std::min(limits.slice_points, std::int64_t{1} << 30) /
                                    std::max(launch.padded_n, launch.padded_points)));
  launch.slice_points = launch.slice_replicates * launch.padded_n;
  launch.pair_tile = !launch.totals.pairs ? 0
                     : plan.heads <= 2    ? 2
                     : plan.heads <= 4    ? 4
                     : plan.heads <= 8    ? 8
                                          : 16;

  const std::optional<double> norm_coefficient = norm_coefficient_of(plan.kernel);
  launch.fallback_only = !plan.mechanism.keep.off();
  // The fallback weighs only what a head sees.
  launch.masks = !launch.tokens.seen.empty() && !launch.fallback_only;
  if (norm_coefficient && *norm_coefficient != 0 && !plan.mechanism.levels.off()) {
    launch.extra_row = ExtraRow::prior;
  } else if (norm_coefficient == 0.0 && launch.masks) {
    launch.extra_row = ExtraRow::mask;
  }
  const int k = plan.k + (launch.extra_row == ExtraRow::none ? 0 : 1);
  launch.padded_k = k;
  if (launch.fallback_only) return launch;

  // One query per thread fits where four do not.
  launch.fallback_only = true;
  for (const Microkernel m : {choose_microkernel(plan, k, limits), Microkernel::any}) {
    launch.microkernel = m;
    launch.padded_k = padded_k_of(m, k);
    const Tiler tiler(plan, limits, m, launch.padded_k, launch.padded_n);
    const auto weigh = launch.totals.pairs ? tiler.pairs(launch.pair_tile) : tiler.sums();
    const auto ensemble = launch.totals.ensemble ? tiler.ensemble() : Tiling{};
    if (!weigh || !ensemble) continue;
    launch.weigh = *weigh;
    launch.ensemble = *ensemble;
    launch.fallback_only = false;
    break;
  }
  return launch;
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
