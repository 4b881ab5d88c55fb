// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>

#include "kernels/kernel_laws.h"
#include "kernels/plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Shared memory with which two thread blocks still fit on a multiprocessor of compute capability
/// 9.0, and what of it a group of heads may take for its keys.
constexpr std::uint64_t comfortable_bytes = 112 << 10;
constexpr std::uint64_t comfortable_stage_bytes = 48 << 10;
/// With what registers leave room for, three thread blocks.
constexpr std::uint64_t comfortable_projected_bytes = 75 << 10;
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
  return m >= Microkernel::tensor8 && m <= Microkernel::tensor64;
}

/// Maximum keys of which the plain estimator sums w^2. Of more keys, those with weight seldom meet
/// in one sum of a thread unless they are many.
constexpr std::uint64_t max_squared_keys = 1024;
/// Maximum |query|^2 for which weights times 2^(|query|^2) and their squares have sums in float32.
constexpr double max_unshifted_norm = 40;

/// Largest |query|^2 in the units of the exponent.
double largest_query_norm(const Plan& plan) {
  const std::vector<double> queries = projected_queries(plan);
  const auto count = static_cast<std::size_t>(plan.queries);
  const auto k = static_cast<std::size_t>(plan.k);
  double largest = 0;
  for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
    for (std::size_t q = 0; q < count; ++q) {
      double norm2 = 0;
      for (std::size_t j = 0; j < k; ++j) {
        const double x = queries[(h * k + j) * count + q];
        norm2 += x * x;
      }
      if (!(norm2 <= largest)) largest = norm2;
    }
  }
  return largest;
}
/// True where products are accurate at every query.
/// \param is_law the exponent is a law of the distance, of which small values have to be accurate
bool products_are_accurate(double query_norm, bool is_law) {
  const double far = std::sqrt(query_norm) + reach;
  return far * far <= (is_law ? max_norm / 8 : max_norm);
}

/// \param k coordinates of a key
Microkernel choose_microkernel(const Plan& plan, int k, const LaunchLimits& limits) {
  using enum Microkernel;
  const auto norm_coefficient = norm_coefficient_of(*plan.kernel);
  const bool only_products = norm_coefficient == 0.0;
  const double norm = largest_query_norm(plan);
  const bool products = only_products || products_are_accurate(norm, !norm_coefficient);
  if (plan.queries < 3) return any;
  if (k <= 4 && norm_coefficient == -1.0 && norm <= max_unshifted_norm) {
    return std::array{dots1, dots2, dots3, dots4}[static_cast<std::size_t>(k - 1)];
  }
  if (k <= 2 && !only_products) return k == 1 ? distances1 : distances2;
  if (k <= 4) return !products ? distances4 : k == 1 ? shifted1 : k == 2 ? shifted2 : shifted4;
  if (products && !limits.no_tensor_cores && k <= 64) {
    return k <= 8 ? tensor8 : k <= 16 ? tensor16 : k <= 32 ? tensor32 : tensor64;
  }
  return k <= 8 && !only_products ? distances8 : any;
}

int padded_k_of(Microkernel microkernel, int k) {
  switch (microkernel) {
    case Microkernel::distances1:
    case Microkernel::dots1:
    case Microkernel::shifted1:
      return 1;
    case Microkernel::distances2:
    case Microkernel::dots2:
    case Microkernel::shifted2:
      return 2;
    case Microkernel::dots3:
      return 3;
    case Microkernel::distances4:
    case Microkernel::dots4:
    case Microkernel::shifted4:
      return 4;
    case Microkernel::distances8:
    case Microkernel::tensor8:
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

/// True where pairs of heads can be summed in registers.
bool in_registers(Microkernel m, const KernelLaw& kernel) {
  using enum Microkernel;
  return m != any && m != distances8 &&
         ((m != tensor32 && m != tensor64) || norm_coefficient_of(kernel));
}
/// Heads of the instance of register_pairs.cu that has them; 0: none.
int register_heads_of(int heads) {
  return heads <= 2 ? 2 : heads <= 4 ? 4 : heads <= 8 ? 8 : 0;
}

/// Queries of a thread of a microkernel; `most` where registers allow it.
int queries_of_thread(Microkernel microkernel, int most) {
  if (microkernel == Microkernel::any) return 1;
  return microkernel == Microkernel::tensor64 ? std::min(most, 4) : most;
}

/// Tilings of a kernel that weighs keys.
class Tiler {
 public:
  /// \param queries of a thread
  Tiler(const Plan& plan, const LaunchLimits& limits, const LaunchPlan& launch, int queries,
        int tile_keys)
      : plan_(plan),
        limits_(limits),
        microkernel_(launch.microkernel),
        padded_k_(launch.padded_k),
        padded_n_(launch.padded_n),
        projects_(launch.projects),
        queries_(queries),
        tile_keys_(tile_keys) {}

  /// Sums in registers: a thread block has the queries of a few heads. Threads left over share the
  /// keys.
  std::optional<Tiling> sums() const {
    Tiling tiling;
    const int groups = divide_up(columns(), 32);
    tiling.query_columns = round_columns(divide_up(columns(), groups));
    // With few keys more heads in a block pay more than more threads at the same keys, and heads
    // whose keys are projected share the points.
    const auto wanted_splits =
        projects_
            ? 1
            : static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::clamp<std::int64_t>(
                  divide_up<std::int64_t>(padded_n_, limits_.keys_of_thread), 1, max_splits()))));
    int heads = std::clamp(
        tiling.threads / (tiling.query_columns * std::max(wanted_splits, lanes())), 1, plan_.heads);
    return finish(tiling, balanced(heads), [&] {
      tiling.panel_keys = std::int64_t{limits_.keys_of_thread} * tiling.splits;
      // Three sums per query of a thread.
      const auto end = static_cast<std::uint64_t>(tiling.threads * 3 * queries_);
      return std::max(stage_bytes(tiling.group_heads), end * sizeof(float));
    });
  }

  /// Pairs of `heads` heads in registers.
  std::optional<Tiling> register_pairs(int heads) const {
    Tiling tiling;
    const int groups = divide_up(columns(), 32);
    tiling.query_columns = round_columns(divide_up(columns(), groups));
    tiling.group_heads = heads;
    tiling.head_groups = 1;
    tiling.block_queries = tiling.query_columns * queries_;
    tiling.query_groups = divide_up(plan_.queries, tiling.block_queries);
    const int steps = on_tensor_cores(microkernel_) ? pair_steps(padded_k_, projects_) : 1;
    tiling.splits = std::min(tile_keys_ / (2 * steps),
                             power_of_two_below(tiling.threads / tiling.query_columns));
    tiling.panel_keys = std::min(std::int64_t{limits_.keys_of_thread} * tiling.splits, padded_n_);
    tiling.panels = divide_up(padded_n_, tiling.panel_keys);
    const int sums_of_query = heads * (heads + 1) / 2 + 2 * heads;
    const auto end = static_cast<std::uint64_t>(tiling.threads * queries_ * sums_of_query);
    tiling.shared_bytes = std::max(stage_bytes(heads), end * sizeof(float));
    if (tiling.shared_bytes > limits_.shared_bytes) return std::nullopt;
    return tiling;
  }

  /// Kernel values of all heads in shared memory, of which warps sum pairs.
  std::optional<Tiling> pairs() const {
    const int of_query = side_pairs(plan_.heads);
    Tiling tiling;
    tiling.threads = pair_threads;
    const int warps = tiling.threads / 32;
    // Registers leave room for one thread block on a multiprocessor.
    return largest_tiling(tiling, warps * pair_units / of_query, limits_.shared_bytes, [&] {
      const int units = tiling.block_queries * of_query;
      const int splits = pair_splits(units);
      // A sum of 512 keys is rounded 192 times.
      tiling.panel_keys = std::int64_t{limits_.keys_of_thread} * 2 * splits;
      const auto end = static_cast<std::uint64_t>(units * splits * pair_sums_of_unit);
      return std::max(with_weights(tiling, pair_sides(plan_.heads) * pair_side) +
                          pair_value_floats * sizeof(float),
                      end * sizeof(float));
    });
  }

  /// Kernel values of a group of heads in shared memory, summed over the heads.
  std::optional<Tiling> ensemble() const {
    Tiling tiling;
    return largest_tiling(
        tiling, tiling.threads * ensemble_steps / (tile_keys_ / 4), comfortable_bytes, [&] {
          tiling.panel_keys =
              std::int64_t{limits_.keys_of_thread} * (tiling.threads / tiling.block_queries);
          const auto factors = static_cast<std::uint64_t>(plan_.heads * tiling.block_queries);
          return std::max(with_weights(tiling, tiling.group_heads) + factors * sizeof(float),
                          static_cast<std::uint64_t>(tiling.threads) * sizeof(float));
        });
  }

 private:
  int columns() const { return divide_up(plan_.queries, queries_); }
  /// A warp on the tensor cores has eight columns.
  int round_columns(int columns) const {
    return on_tensor_cores(microkernel_) ? divide_up(columns, 8) * 8 : columns;
  }
  /// Lanes of a warp that share a step of keys.
  int lanes() const { return on_tensor_cores(microkernel_) ? 4 : 1; }
  int max_splits() const {
    return on_tensor_cores(microkernel_) ? 4 * tile_keys_ / 8 : tile_keys_ / 4;
  }

  /// Bytes of two staged tiles, one of which is used while the other is copied; or of a tile that
  /// is projected.
  std::uint64_t stage_bytes(int heads) const {
    const int floats = projects_ ? projected_floats(heads, padded_k_, tile_keys_, plan_.d)
                                 : 2 * stage_floats(heads, padded_k_, tile_keys_);
    return static_cast<std::uint64_t>(floats) * sizeof(float);
  }
  /// Heads of a group, at most `most`: those that fit, in groups of about equal size.
  int balanced(int most) const {
    // Points of many dimensions leave room for two thread blocks, whatever the heads.
    const std::uint64_t comfortable = !projects_ ? comfortable_stage_bytes
                                      : stage_bytes(most) <= comfortable_projected_bytes
                                          ? comfortable_projected_bytes
                                          : comfortable_bytes;
    while (most > 1 && stage_bytes(most) > comfortable) --most;
    return divide_up(plan_.heads, divide_up(plan_.heads, most));
  }

  std::uint64_t with_weights(const Tiling& tiling, int head_rows) const {
    return stage_bytes(tiling.group_heads) +
           static_cast<std::uint64_t>(tiling.block_queries) *
               static_cast<std::uint64_t>(weight_query_stride(
                   head_rows, on_tensor_cores(microkernel_), tiling.query_columns)) *
               sizeof(float);
  }

  /// Fills in what follows from the query columns and the heads of a group; `bytes` sets the panel
  /// and returns the shared memory. None where it does not fit.
  template <class Bytes>
  std::optional<Tiling> finish(Tiling& tiling, int group_heads, const Bytes& bytes) const {
    tiling.group_heads = group_heads;
    tiling.head_groups = divide_up(plan_.heads, group_heads);
    tiling.block_queries = tiling.query_columns * queries_;
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

  /// Tiling with the most queries per thread block, up to `max_queries`, whose memory is at most
  /// `comfortable`, else with the fewest. All heads are one group where they fit: their queries
  /// stay in registers.
  template <class Bytes>
  std::optional<Tiling> largest_tiling(Tiling& tiling, int max_queries, std::uint64_t comfortable,
                                       const Bytes& bytes) const {
    std::optional<Tiling> best;
    for (int wanted = power_of_two_below(columns() * 2 - 1); wanted >= 1; wanted /= 2) {
      tiling.query_columns = round_columns(wanted);
      if (tiling.query_columns * queries_ > max_queries) continue;
      const int heads =
          balanced(std::clamp(tiling.threads / (tiling.query_columns * lanes()), 1, plan_.heads));
      // Smaller groups of heads keep more queries comfortable.
      const int fewest = divide_up(plan_.heads, heads);
      for (int groups = fewest; groups <= plan_.heads; ++groups) {
        const auto found = finish(tiling, divide_up(plan_.heads, groups), bytes);
        if (found && found->shared_bytes <= comfortable) return found;
        if (found && groups == fewest) best = found;
      }
    }
    return best;
  }

  const Plan& plan_;
  const LaunchLimits& limits_;
  Microkernel microkernel_;
  int padded_k_;
  std::int64_t padded_n_;
  bool projects_;
  int queries_;
  int tile_keys_;
};

/// True where projecting the keys of a head takes fewer issue slots, counted in the machine code of
/// sm_90 (docs/measured/slots.md), in each pass over every group of queries than once in a kernel
/// of its own. Both counts are slots a weight times the queries. In a group of queries, points are
/// copied and split once for the heads that share them; 16 rows of a head take 22 for each 16
/// coordinates, and 50 to be split and stored, and a head 100; keys that are read would be split
/// too.
bool projecting_pays(const Plan& plan, const LaunchPlan& launch, const Tiling& tiling) {
  const double row_blocks = std::max(launch.padded_k, 16) / 16.0;
  const double in_group = 12.0 * plan.d / tiling.group_heads +
                          row_blocks * (22 * projection_chunks(plan.d) + 50) + 100 -
                          (5.0 * launch.padded_k + 13);
  const double alone = 1.26 * plan.d * launch.padded_k;
  return (launch.totals.scaled ? 2 : 1) * tiling.query_groups * in_group < alone;
}

/// True where the kernels can project the keys that they weigh: on the tensor cores, keys that no
/// stage of the mechanism changes and that a single pass reads.
bool can_project(const Plan& plan, const LaunchLimits& limits, const LaunchPlan& launch) {
  return on_tensor_cores(launch.microkernel) && !limits.stores_keys && !launch.masks &&
         plan.mechanism.levels.off() && !launch.totals.ensemble &&
         (launch.register_heads > 0 || !launch.totals.pairs);
}

/// Divides the work for a microkernel whose keys are projected where they are weighed, or read.
/// False where it cannot be.
bool tile(const Plan& plan, const LaunchLimits& limits, Microkernel m, bool projects,
          LaunchPlan& launch) {
  const int k = plan.k + (launch.extra_row == ExtraRow::none ? 0 : 1);
  launch.microkernel = m;
  launch.padded_k = padded_k_of(m, k);
  launch.register_heads =
      launch.totals.pairs && in_registers(m, *plan.kernel) ? register_heads_of(plan.heads) : 0;
  launch.projects = projects;
  if (projects && !can_project(plan, limits, launch)) return false;
  const auto tiler = [&](int queries, int tile_keys) {
    return Tiler(plan, limits, launch, queries, tile_keys);
  };
  const int on_cuda_cores = queries_of_thread(m, weight_queries);
  const auto weigh =
      launch.register_heads > 0 ? tiler(pair_queries, pair_tile_keys(launch.padded_k))
                                      .register_pairs(launch.register_heads)
      : launch.totals.pairs
          ? tiler(on_tensor_cores(m) ? pair_fragment_queries : on_cuda_cores, weight_tile_keys)
                .pairs()
          : tiler(queries_of_thread(m, sum_queries),
                  projects ? projected_tile_keys(launch.padded_k, false)
                           : sum_tile_keys(m == Microkernel::any ? 0 : launch.padded_k))
                .sums();
  const auto ensemble =
      launch.totals.ensemble ? tiler(on_cuda_cores, weight_tile_keys).ensemble() : Tiling{};
  if (!weigh || !ensemble) return false;
  if (projects && !projecting_pays(plan, launch, *weigh)) return false;
  launch.weigh = *weigh;
  launch.ensemble = *ensemble;
  return true;
}

struct Interval {
  std::uint64_t begin, end;
};

/// Whole blocks of tokens that some head sees, as few intervals in order.
std::vector<Interval> stored_intervals(const Mechanism& mechanism, std::uint64_t tokens) {
  if (mechanism.seen.empty()) return {{0, tokens}};
  const std::uint64_t block = mechanism.levels.block();
  std::vector<Interval> all;
  const auto add = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    all.push_back({begin / block * block, std::min((end + block - 1) / block * block, tokens)});
  };
  for (const SeenTokens& seen : mechanism.seen) {
    add(0, seen.sinks);
    add(seen.begin, seen.end);
  }
  std::ranges::sort(all, {}, &Interval::begin);
  std::vector<Interval> merged;
  for (const Interval& next : all) {
    if (!merged.empty() && next.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, next.end);
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

}  // namespace

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
  const bool centred = norm_coefficient_of(*plan.kernel) != 0.0;
  const std::vector<double> centre =
      centred ? centre_of(plan) : std::vector<double>(static_cast<std::size_t>(plan.d), 0.0);
  const double unit = key_unit(*plan.kernel);
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
                   .ensemble = conditional && !pairwise && plan.heads > max_pair_heads,
                   .controls = plan.controls != nullptr};
  launch.bounds_squares = !conditional && launch.tokens.tokens > max_squared_keys;
  const auto whole_tiles = [](std::uint64_t points) {
    return divide_up<std::int64_t>(static_cast<std::int64_t>(points), key_group) * key_group;
  };
  launch.padded_n = whole_tiles(launch.tokens.tokens);
  launch.padded_points = launch.tokens.separate ? whole_tiles(launch.tokens.points) : 0;
  const std::optional<double> norm_coefficient = norm_coefficient_of(*plan.kernel);
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

  // One query per thread fits where four do not, and keys that are read where points do not.
  const Microkernel chosen = choose_microkernel(plan, k, limits);
  launch.fallback_only =
      !(tile(plan, limits, chosen, true, launch) || tile(plan, limits, chosen, false, launch) ||
        tile(plan, limits, Microkernel::any, false, launch));
  return launch;
}

TokenLayout::TokenLayout(const Plan& plan) {
  const Mechanism& mechanism = plan.mechanism;
  const Merge& merge = mechanism.merge;
  const std::uint64_t all = merge.tokens(plan.n);
  const std::vector<Interval> intervals = stored_intervals(mechanism, all);
  tokens = 0;
  for (const Interval& interval : intervals) {
    ranges.push_back({interval.begin, tokens});
    tokens += interval.end - interval.begin;
  }
  const auto position = [&](std::uint64_t token) {
    const auto next = std::ranges::upper_bound(ranges, token, {}, &TokenRange::token);
    const TokenRange& range = *std::prev(next);
    return range.position + (token - range.token);
  };
  for (const SeenTokens& one : mechanism.seen) {
    const std::uint64_t begin = position(one.begin);
    seen.push_back({.sinks = one.sinks, .begin = begin, .end = begin + (one.end - one.begin)});
  }
  if (std::ranges::all_of(seen, [&](const SeenTokens& one) { return one.count() == tokens; })) {
    seen.clear();
  }
  const std::uint64_t end = intervals.back().end;
  if (ranges.size() == 1 && ranges[0].token == 0) ranges.clear();
  separate = !merge.off() || (plan.ar1 && !ranges.empty());
  // A sequence is drawn from its first point on.
  const std::uint64_t drawn = (plan.ar1 ? end : tokens) * merge.stride;
  const std::uint64_t missing = end == all ? all * merge.stride - plan.n : 0;
  points = drawn - missing;
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
