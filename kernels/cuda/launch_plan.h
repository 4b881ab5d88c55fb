// SPDX-License-Identifier: Apache-2.0
/// \file How a plan is divided among thread blocks: chosen from the plan only, so that the bits of
/// a result depend on nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/controls.h"
#include "kernels/cuda/device.h"
#include "kernels/hd.h"
#include "kernels/mechanism.h"

namespace headlab {
struct KernelLaw;
struct Plan;
}  // namespace headlab

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Successive tokens at successive positions, up to the position of the next range.
struct TokenRange {
  std::uint64_t token, position;
};

/// Number of the token at a position.
struct TokenNumbers {
  const TokenRange* ranges = nullptr;
  int count = 0;  ///< 0: token i stands at position i

  HEADLAB_HD std::uint64_t of(std::uint64_t position) const {
    if (count == 0) return position;
    int r = 0;
    while (r + 1 < count && ranges[r + 1].position <= position) ++r;
    return ranges[r].token + (position - ranges[r].position);
  }
};

/// Which tokens of a training set are stored, and where: those that some head sees, side by
/// side, so that nothing else is drawn, projected or weighed.
struct TokenLayout {
  std::uint64_t tokens = 1;        ///< stored
  std::vector<TokenRange> ranges;  ///< empty: token i stands at position i
  /// [H], positions that a head sees; empty: every head sees all that is stored. Tokens of a block
  /// of `levels` are stored together, whether all of them are seen or not.
  std::vector<SeenTokens> seen;
  std::uint64_t points = 1;  ///< drawn
  bool separate = false;     ///< points are kept apart from the tokens that are made of them

  explicit TokenLayout(const Plan& plan);
  /// Tokens that a head sees.
  std::uint64_t seen_by(int head) const {
    return seen.empty() ? tokens : seen[static_cast<std::size_t>(head)].count();
  }
};

/// n is padded to a multiple of this many keys, and tiles of keys are multiples of it.
inline constexpr int key_group = 64;
/// Keys that are staged in shared memory together where kernel values are stored there as well.
inline constexpr int weight_tile_keys = key_group;

/// Floats from one row of a staged tile to the next. Eight more than a tile: the four rows that the
/// lanes of a tensor-core fragment read then fall into different banks.
HEADLAB_HD constexpr int stage_stride(int tile_keys) {
  return tile_keys + 8;
}
/// Rounds up to 4 modulo 32: neighbours at this distance, of 16 bytes each, hit different banks.
HEADLAB_HD constexpr int spread(int floats) {
  return floats + (36 - floats % 32) % 32;
}
HEADLAB_HD constexpr int power_of_two_from(int x) {
  int power = 1;
  while (power < x) power *= 2;
  return power;
}

/// Floats from the keys of one head in a staged tile to the next: its rows and their norms.
HEADLAB_HD constexpr int head_stride(int padded_k, int tile_keys) {
  return spread((padded_k + 1) * stage_stride(tile_keys));
}
/// Floats of a staged tile: heads, values, noise scales.
HEADLAB_HD constexpr int stage_floats(int group_heads, int padded_k, int tile_keys) {
  return group_heads * head_stride(padded_k, tile_keys) + 2 * stage_stride(tile_keys);
}

/// Floats from one head's row of kernel values to the next: 16 modulo 32, so that a fragment of two
/// heads and sixteen keys hits every bank once.
inline constexpr int weight_stride = weight_tile_keys + 16;
/// Place of a kernel value in the rows of its query where pairs of heads are summed: threads that
/// store the same keys of several heads hit different banks. `key` is the first of two or four.
HEADLAB_HD constexpr int weight_place(int head, int key) {
  return head * weight_stride + (key ^ head / 2 % 4 * 4);
}
/// Rows of the kernel values of a query, a multiple of 32 and what keeps neighbours apart.
HEADLAB_HD constexpr int weight_query_stride(int head_rows, bool tensor, int query_columns) {
  const int rows = head_rows * weight_stride;
  return rows + (32 - rows % 32) % 32 + (tensor || query_columns == 2 ? 8 : 4);
}
/// First kernel value of a query. On the tensor cores a warp stores four queries of eight keys at a
/// time, and eight queries are read together.
HEADLAB_HD constexpr int weight_query(int query, int stride, bool tensor) {
  return query * stride + (tensor ? query / 4 % 2 * 4 : 0);
}

/// Sums over pairs of many heads: a warp multiplies 16 by 16 heads for one query.
inline constexpr int pair_side = 16;
inline constexpr int pair_threads = 256;
/// Maximum queries times pairs of sides of a warp, whose sums are in registers.
inline constexpr int pair_units = 6;
HEADLAB_HD constexpr int pair_sides(int heads) {
  return (heads + pair_side - 1) / pair_side;
}
/// Pairs (first, second) of sides with first <= second.
HEADLAB_HD constexpr int side_pairs(int heads) {
  return pair_sides(heads) * (pair_sides(heads) + 1) / 2;
}
/// Warps that share the keys of a tile where there are fewer than eight units.
HEADLAB_HD constexpr int pair_splits(int units) {
  return units > 4 ? 1 : units > 2 ? 2 : 4;
}
/// Floats of the values of a tile as a fragment reads them: upper parts, ones, lower parts, zeros.
inline constexpr int pair_value_floats = 4 * weight_stride;
/// Sums of a unit: products of heads, then three sums for each head of the first side.
inline constexpr int pair_sums_of_unit = pair_side * pair_side + 3 * pair_side;

/// Inner loop that computes exponents. The number is the padded per-head dimension.
enum class Microkernel {
  distances1,  ///< squared differences in registers, any kernel law
  distances2,
  distances4,
  distances8,
  dots1,  ///< products of query and key with the norms apart: Gaussian near the centre
  dots2,
  dots3,
  dots4,
  shifted1,  ///< the same with a shift in every exponent: softmax
  shifted2,
  shifted4,  ///< any kernel law
  tensor8,   ///< the same on the tensor cores
  tensor16,
  tensor32,
  tensor64,
  any  ///< one query per thread, any dimension
};

/// Keys that the sums of each head stage together.
HEADLAB_HD constexpr int sum_tile_keys(int padded_k) {
  return padded_k == 0 ? 64 : padded_k > 32 ? 128 : 256;
}

/// Keys that the sums over pairs of heads in registers stage together.
HEADLAB_HD constexpr int pair_tile_keys(int padded_k) {
  return padded_k > 32 ? 16 : padded_k > 16 ? 32 : padded_k > 4 ? 64 : 128;
}

/// Steps of eight keys that share a reading of the queries on the tensor cores, where pairs are
/// summed in registers: at d_k = 64 those suffice for two unless keys are read as well.
HEADLAB_HD constexpr int pair_steps(int padded_k, bool projects) {
  return projects || padded_k < 64 ? 2 : 1;
}

/// Queries of a thread on the CUDA cores: in the sums of each head, in the sums over pairs in
/// registers, and where kernel values are stored.
inline constexpr int sum_queries = 8;
inline constexpr int pair_queries = 2;
inline constexpr int weight_queries = 4;
/// The same on the tensor cores where pairs of heads are summed.
inline constexpr int pair_fragment_queries = 2;

/// Keys of a tile that is projected where it is weighed.
HEADLAB_HD constexpr int projected_tile_keys(int padded_k, bool pairs) {
  return pairs ? pair_tile_keys(padded_k) : key_group;
}
/// Coordinates of points that the tensor cores multiply together, and how many times for all d.
inline constexpr int chunk_coordinates = 16;
HEADLAB_HD constexpr int projection_chunks(int d) {
  return (d + chunk_coordinates - 1) / chunk_coordinates;
}
/// Groups of eight keys whose projections a warp has in registers: as many as those leave room for.
HEADLAB_HD constexpr int projected_eights(int padded_k, int tile_keys) {
  return tile_keys < 32 || (tile_keys > 32 && padded_k >= 32) ? 2 : 4;
}
/// Floats of a tile that is projected, one after another: the state of the block, values and noise
/// scales as they are copied [2][stride]; what is staged; points split into float16 [2][coordinates
/// of all chunks][stride], upper parts before lower; points as they are copied [d][stride].
inline constexpr int state_floats = 4;
HEADLAB_HD constexpr int projected_front(int tile_keys) {
  return state_floats + 2 * stage_stride(tile_keys);
}
constexpr int split_points_at(int group_heads, int padded_k, int tile_keys) {
  return projected_front(tile_keys) + stage_floats(group_heads, padded_k, tile_keys);
}
constexpr int copied_points_at(int group_heads, int padded_k, int tile_keys, int d) {
  return split_points_at(group_heads, padded_k, tile_keys) +
         chunk_coordinates * projection_chunks(d) * stage_stride(tile_keys);
}
constexpr int projected_floats(int group_heads, int padded_k, int tile_keys, int d) {
  return copied_points_at(group_heads, padded_k, tile_keys, d) + d * stage_stride(tile_keys);
}

/// Maximum steps of four keys that a thread of the ensemble's pass has in a tile.
inline constexpr int ensemble_steps = 4;

/// Division of the work of one replicate among the thread blocks of a kernel.
struct Tiling {
  int threads = 128;
  int group_heads = 1;    ///< heads whose keys are staged together
  int head_groups = 1;    ///< ceil(H / group_heads)
  int query_columns = 1;  ///< threads side by side along the queries
  int block_queries = 1;  ///< queries of a thread block: query_columns x queries of a thread
  int query_groups = 1;   ///< ceil(Q / block_queries)
  int splits = 1;         ///< threads that share the keys of one head and its queries
  std::int64_t panel_keys = key_group;  ///< keys of a thread block, a multiple of key_group
  std::int64_t panels = 1;              ///< of a replicate
  std::uint64_t shared_bytes = 0;
};

inline constexpr int numbers_of_head = sizeof(HeadNumbers) / sizeof(double);

/// Layout of the float64 sums of one replicate and query: sum w [H], sum w (value - centre) [H],
/// then sum w_g w_l for the pairs of heads or for g = l only, the same with s w in place of w where
/// the noise varies, then the ensemble's noise where a second pass computes it, and for exact
/// controls the shifts of the exponents [H] where the fallback made the sums, and HeadNumbers [H].
struct TotalsLayout {
  int heads = 1;
  bool pairs = false;
  bool scaled = false;
  bool ensemble = false;
  bool controls = false;

  HEADLAB_HD int squares() const { return pairs ? heads * (heads + 1) / 2 : heads; }
  HEADLAB_HD int weight(int h) const { return h; }
  HEADLAB_HD int value(int h) const { return heads + h; }
  HEADLAB_HD int pair(int g, int l) const { return g * heads - g * (g + 1) / 2 + l; }
  HEADLAB_HD int square(int g, int l) const { return 2 * heads + (pairs ? pair(g, l) : g); }
  /// Position of the squares that the noise enters.
  HEADLAB_HD int noise(int g, int l) const { return square(g, l) + (scaled ? squares() : 0); }
  HEADLAB_HD int ensemble_noise() const { return 2 * heads + (scaled ? 2 : 1) * squares(); }
  /// Sums of the first pass over the keys.
  HEADLAB_HD int row() const { return 2 * heads + squares(); }
  HEADLAB_HD int shift(int h) const { return ensemble_noise() + (ensemble ? 1 : 0) + h; }
  HEADLAB_HD int head_numbers(int h) const { return shift(heads) + numbers_of_head * h; }
  HEADLAB_HD int size() const { return controls ? head_numbers(heads) : shift(0); }
};

/// Coordinate that the keys of a head have after their own, so that the kernels that weigh keys
/// need not know why a weight is smaller.
enum class ExtraRow {
  none,
  prior,  ///< of `levels` with distances: sqrt(D_i); 0 in the queries
  mask    ///< of heads that see different tokens, with products: far below 0 where the head does
          ///< not see a token; 1 in the queries. With distances such a key is far away.
};

struct LaunchPlan {
  explicit LaunchPlan(const Plan& plan) : tokens(plan) {}

  TokenLayout tokens;
  ExtraRow extra_row = ExtraRow::none;
  bool masks = false;  ///< heads see different tokens, and tiles of keys hold those of all
  Microkernel microkernel = Microkernel::any;
  bool on_tensor_cores() const {
    return microkernel >= Microkernel::tensor8 && microkernel <= Microkernel::tensor64;
  }
  int padded_k = 1;
  std::int64_t padded_n = key_group;  ///< of tokens
  std::int64_t padded_points = 0;     ///< of points that are kept apart
  TotalsLayout totals;
  int register_heads = 0;  ///< 2, 4, 8 of which a thread has all pairs; 0: sides of 16 heads
  /// Every query takes the fallback: with stage `keep`, and with more heads than the pair sums are
  /// written for.
  bool fallback_only = false;
  /// Sums of w^2 are upper bounds: narrow windows, which the plain estimator needs them for, are
  /// far below where there are many keys.
  bool bounds_squares = false;
  /// Keys are projected where they are weighed, and stored only for the fallback.
  bool projects = false;
  Tiling weigh;     ///< sums or pair sums
  Tiling ensemble;  ///< second pass of the aggregate moments
};

/// Limits of a launch plan.
struct LaunchLimits {
  bool no_tensor_cores = false;
  bool stores_keys = false;  ///< all keys, though they could be projected where needed
  int keys_of_thread = 256;  ///< max. keys summed in float32 before float64
  std::uint64_t shared_bytes = 160 << 10;  ///< max. shared memory of a thread block
};

/// Points that keys and queries are measured from [d]: the median of the queries, coordinate by
/// coordinate. Points far from all queries need no accuracy.
std::vector<double> centre_of(const Plan& plan);

/// Factor from lengths of the design to the units in which keys are kept.
double key_unit(const KernelLaw& kernel);

/// Projected queries in these units [H][k][Q], relative to the centre except for softmax: a shift
/// of its keys is a factor that normalisation removes, a shift of its queries is not.
std::vector<double> projected_queries(const Plan& plan);

LaunchPlan plan_launch(const Plan& plan, const LaunchLimits& limits = {});

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
