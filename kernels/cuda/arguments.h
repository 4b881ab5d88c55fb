// SPDX-License-Identifier: Apache-2.0
/// \file Arguments of the kernels, passed by value.
#pragma once

#include <cstdint>

#include "kernels/controls.h"
#include "kernels/cuda/device_variant.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/kernel_laws.h"
#include "kernels/mechanism.h"
#include "kernels/philox.h"
#include "kernels/sequence.h"
#include "kernels/statistics/moments.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Training sets of a batch in device memory, points or tokens: of each replicate matrices with its
/// points side by side, rows padded_n numbers apart.
struct TrainingSets {
  std::uint64_t n = 1;
  std::int64_t padded_n = 0;
  int d = 1;
  int draw_rows = 4;  ///< 4 ceil(d/4), the rows that the draw of a point writes
  int key_rows = 1;   ///< H times the padded dimension

  float* x = nullptr;       ///< [replicates][draw_rows][padded_n]
  float* keys = nullptr;    ///< [replicates][key_rows][padded_n], projected and scaled
  float* values = nullptr;  ///< [replicates][padded_n], m(X) or Y, less the centre
  float* scales = nullptr;  ///< [replicates][padded_n], s(X) times scale_factor

  HEADLAB_HD float* x_of(std::int64_t replicate) const {
    return x + replicate * draw_rows * padded_n;
  }
  /// Row `row` of a replicate's keys.
  HEADLAB_HD float* keys_of(std::int64_t replicate, int row = 0) const {
    return keys + (replicate * key_rows + row) * padded_n;
  }
  HEADLAB_HD float* values_of(std::int64_t replicate) const {
    return values + replicate * padded_n;
  }
  HEADLAB_HD float* scales_of(std::int64_t replicate) const {
    return scales + replicate * padded_n;
  }
};

/// Turns the base draws of points into a sequence.
struct SequenceArguments {
  TrainingSets sets;
  Ar1 ar1;
  std::int64_t replicates = 0;
};

/// Makes tokens of points.
struct TokenArguments {
  TrainingSets points;
  TrainingSets tokens;
  TokenNumbers numbers;
  bool sequence = false;  ///< points are those from the first on; else those of the tokens stored
  std::uint64_t n = 1;    ///< points of a training set
  std::uint64_t stride = 1;       ///< points of a token
  double gate = 0;                ///< weight of a point; 0: 1 / (points of the token)
  double group_weight = 1;        ///< sum of the weights of a complete group
  float value_centre = 0;         ///< subtracted from the values of points
  const float* centre = nullptr;  ///< [d], to be subtracted from their X
  std::int64_t replicates = 0;
};

/// Rows in order, and how many, on the device.
struct RowList {
  const std::uint32_t* rows = nullptr;    ///< null: all
  const std::uint32_t* counts = nullptr;  ///< of listed rows up to and with each of `looked_at`
  std::int64_t looked_at = 0;

  HEADLAB_HD std::uint32_t count() const { return counts[looked_at - 1]; }
};

/// Projects X to keys.
struct ProjectArguments {
  TrainingSets sets;
  const float* projections = nullptr;  ///< [d][projection_width(key_rows)]
  const float* centre = nullptr;       ///< [d], subtracted from X; null: X is centred
  std::int64_t replicates = 0;
  /// Of rows [replicates][queries]: only replicates with a listed row are projected. Without rows
  /// all are.
  RowList needed;
  int queries = 1;
};

/// Levels of the largest block of stage `levels`, 2048 tokens.
inline constexpr int max_levels = 12;

/// Works on projected keys: `levels`, the mean keys of blocks that `keep` scores, and the tokens
/// that a head does not see.
struct KeyArguments {
  TrainingSets sets;
  int heads = 1;
  int k = 1;         ///< coordinates of a key
  int padded_k = 1;  ///< rows of a head
  ExtraRow extra_row = ExtraRow::none;
  int levels = 1;
  float level_weights[max_levels] = {1};
  const SeenTokens* seen = nullptr;  ///< [H], positions
  std::uint64_t block = 1;           ///< tokens of a block of `keep`
  float* pooled = nullptr;           ///< [replicates][H padded_k][pooled_stride]
  std::int64_t pooled_stride = 1;
  std::int64_t replicates = 0;
};

/// Exponent of 2 from a kernel law, for microkernels of distances. Those of products (dots, tensor)
/// have log2 w = product + norm_factor |key|^2 + shift.
enum class Exponent {
  minus_distance,  ///< Gaussian: keys are scaled so that log2 w = -r^2
  law,             ///< log2 w = log_weight(r^2) log2(e)
  product          ///< softmax: log2 w = product + shift
};

/// Queries of a fragment of tensor cores, and heads that have fragments: whole groups of eight.
inline constexpr int fragment_queries = 16;
HEADLAB_HD constexpr int fragment_heads(int heads) {
  return (heads + 7) / 8 * 8;
}

/// Sets of four words that a lane has of a fragment.
HEADLAB_HD constexpr int fragment_quads(int padded_k) {
  return padded_k / 8 + 1;
}

/// Projected queries, in two arrays because a product has the factors of the law in its query.
struct Queries {
  int count = 1;
  int padded = 1;                   ///< row length
  const float* points = nullptr;    ///< [H][padded_k][padded], projected and scaled like the keys
  const float* products = nullptr;  ///< points times the factor of a product
  const float* shifts = nullptr;    ///< [H][padded], added to the exponents of a product
  /// The same for tensor cores [padded / 16][fragment_heads][fragment_quads][lane]. A word is two
  /// neighbouring coordinates in float16: upper parts of 16 coordinates, then lower parts; of 8
  /// coordinates two words of each. Behind them the shifts of the results of a lane.
  const FourWords* fragments = nullptr;
  const double* weights = nullptr;  ///< [H], a_h
};

/// A coordinate x of a point becomes x scale + offset, so that float16 has the digits that
/// projections need of it.
struct alignas(8) CoordinateUnit {
  float scale;   ///< a power of two near the largest projection of the coordinate, or 0 without any
  float offset;  ///< minus the centre times the scale
};

/// Projections of the heads for kernels that project the keys which they weigh.
struct Projections {
  /// On the tensor cores [H][projection_chunks(d)][ceil(padded_k / 16)][2][lane]: upper parts in
  /// float16, then lower parts, of projections that belong to coordinates as `units` make them.
  const FourWords* fragments = nullptr;
  const CoordinateUnit* units = nullptr;  ///< [d]
  const float* matrix = nullptr;          ///< as in struct ProjectArguments
  int chunks = 1;                         ///< projection_chunks(d)
  int head_words = 0;                     ///< of the fragments of a head
  int split_at = 0, copied_at = 0;        ///< split_points_at, copied_points_at
};

struct WeighArguments {
  TrainingSets sets;
  Projections projections;
  bool projects = false;  ///< keys; else those of `sets` are read
  Queries queries;
  Tiling tiling;
  TotalsLayout totals;
  int padded_k = 1;
  Exponent exponent = Exponent::law;
  float norm_factor = 0;
  int mask_row = -1;  ///< row of a key that hides it, see ExtraRow::mask; or -1
  DeviceVariant<KernelLaws> kernel;
  bool scaled = false;           ///< sums of (s w)^2 in place of w^2
  bool reads_scales = false;     ///< noise scales are staged
  bool bounds_squares = false;   ///< see LaunchPlan
  int zero = 0;                  ///< always, which the compiler does not know
  const double* sums = nullptr;  ///< [replicates][Q][totals.size()], for the second pass
  double* partials = nullptr;    ///< [replicates][panels][Q][row]
};

struct CollectArguments {
  const double* partials = nullptr;  ///< [replicates][panels][Q][row]
  std::int64_t panels = 1;
  int queries = 1;
  int row = 1;
  int from = 0;              ///< first number taken from a row
  int count = 1;             ///< numbers taken
  int to = 0;                ///< position of the first one in the totals
  double* totals = nullptr;  ///< [replicates][Q][size]
  int size = 1;
  const std::uint32_t* keep = nullptr;  ///< [replicates][Q], nonzero where the totals stay
  std::int64_t rows = 0;                ///< replicates x Q
};

/// Counters of one node: empty windows, narrow windows, queries that took the fallback.
inline constexpr int window_counters = 3;
struct WindowCounters {
  unsigned long long* counts = nullptr;  ///< [nodes][3]
  std::int64_t first = 0;                ///< position of the batch's first replicate in the segment
  int node_replicates = 1;
};

/// Bits of the tokens that a head keeps in a row, a query of a replicate.
struct KeptTokens {
  std::uint32_t* bits = nullptr;  ///< [rows][H][words]; null: a head keeps all that it sees
  std::int64_t words = 1;         ///< ceil(tokens / 32)

  HEADLAB_HD std::uint32_t* of(std::int64_t row, int heads, int head) const {
    return bits + (row * heads + head) * words;
  }
};

/// Stage `keep`.
struct KeepArguments {
  WeighArguments weigh;
  const SeenTokens* seen = nullptr;    ///< [H], positions
  const std::uint64_t* top = nullptr;  ///< [H]
  Keep::Rule rule = Keep::Rule::all;
  float log_ratio = 0;      ///< log2 of the ratio
  std::uint64_t block = 1;  ///< tokens of a block
  const float* pooled =
      nullptr;  ///< mean keys of the blocks, see KeyArguments; null: by their weight
  std::int64_t pooled_stride = 1;
  bool shared = false;       ///< each head keeps, of what it sees, what any head keeps
  std::uint64_t cached = 0;  ///< numbers of a row that fit in shared memory
  KeptTokens kept;
  std::int64_t rows = 0;
};

/// Memory of the selections over all rows of a batch.
struct RowScratch {
  void* memory = nullptr;
  std::int64_t bytes = 0;
};

struct FallbackArguments {
  WeighArguments weigh;
  const SeenTokens* seen = nullptr;  ///< [H], positions; null: every head sees all that is stored
  KeptTokens kept;
  double* totals = nullptr;        ///< [replicates][Q][totals.size()]
  std::uint32_t* taken = nullptr;  ///< [replicates][Q], 0, or by the fallback 1 + empty windows
  RowScratch scratch;              ///< row_scratch_bytes
  double min_sum = 0;              ///< smallest safe sum of kernel values
  bool counts_empty = false;
  WindowCounters windows;
};

struct StatisticsArguments {
  TotalsLayout totals;
  MomentLayout layout;
  const double* sums = nullptr;          ///< [replicates][Q][totals.size()]
  const double* head_weights = nullptr;  ///< [H]
  double centre = 0;
  double noise_factor = 1;  ///< s^2 where s is constant, else the squared unit of the noise scales
  /// The alignment is that of the sums which the noise enters: those of weights on responses.
  bool aligns_noise = false;
  double* statistics = nullptr;  ///< [replicates][Q][per_query], of this batch
  std::int64_t replicates = 0;
};

/// What the statistics of a query with exact controls are made of, beside those without.
struct ControlArguments {
  TotalsLayout totals;
  MomentLayout layout;
  ControlArrays controls;                ///< on the device
  double* sums = nullptr;                ///< [replicates][Q][totals.size()]
  const std::uint32_t* taken = nullptr;  ///< see FallbackArguments
  const double* left_out = nullptr;      ///< [2][Q][H], see Constants
  const double* head_weights = nullptr;  ///< [H]
  double* statistics = nullptr;          ///< [replicates][Q][per_query], the first ones made
  std::int64_t replicates = 0;

  HEADLAB_HD QueryControls of(std::int64_t query) const {
    return {controls, layout, static_cast<std::size_t>(query)};
  }
  HEADLAB_HD HeadNumbers& numbers(std::int64_t row, int head) const {
    return reinterpret_cast<HeadNumbers&>(sums[row * totals.size() + totals.head_numbers(head)]);
  }
};

/// Nodes of a segment: moments of leaf_replicates replicates each, merged two by two.
struct MomentArguments {
  int queries = 1;
  int components = 1;
  int pairs = 1;      ///< whose comoments are kept
  int ensemble = -1;  ///< statistic whose comoment with itself is the last one; or -1
  int per_query = 1;
  bool pairwise = false;
  const double* statistics = nullptr;  ///< [replicates][Q][per_query]
  double* nodes = nullptr;             ///< [leaves][Q][per_query + pairs]: means, comoments
  std::int64_t leaves = 0;
  std::int64_t replicates = 0;  ///< of all leaves; the last may be partial
  std::int64_t stride = 1;      ///< leaves of a node, which is merged with the next one
};

/// Tiles in shared memory when heads are learned: keys, queries, and coordinates of both. n and Q
/// are padded to whole tiles.
inline constexpr int fit_tile_keys = 64;
inline constexpr int fit_tile_queries = 32;
inline constexpr int fit_tile_coordinates = 32;

/// Tiles of keys divided among thread blocks: `count` panels of `tiles` tiles, the last one
/// possibly shorter.
struct KeyPanels {
  std::int64_t tiles = 1;
  std::int64_t count = 1;
};

/// Sums of a query over a panel of keys, weights relative to 2^largest.
struct FitWindow {
  double weight, value;
  float largest;
};

/// Normaliser of a query, from which its weights are recomputed: log2 sum_i K = largest + log_sum,
/// kept apart because their sum would round what is left of large exponents; and f.
struct FitNormaliser {
  float largest, log_sum, estimate;
};

/// ConditionEstimates and gradients of heads on one training set, see
/// kernels/learning/head_gradients.h. Keys and queries are in units in which log2 K = -|u - v|^2 or
/// u.v; the values Y have their mean subtracted.
struct FitArguments {
  std::int64_t n = 2, padded_n = fit_tile_keys;
  int d = 1, heads = 1, k = 1;
  int queries = 1, padded_queries = fit_tile_queries;
  bool distances = true;                           ///< log2 K = -|u - v|^2
  bool separate = false;                           ///< the queries have their own matrices
  double key_factor = 1, query_factor = 1;         ///< from sums in those units to gradients
  KeyPanels of_estimate, of_gradient, of_product;  ///< of the kernels of these names

  const float* x = nullptr;             ///< [d][padded_n], 0 beyond n
  const float* values = nullptr;        ///< [padded_n], 0 beyond n
  const float* keys = nullptr;          ///< [H][k][padded_n], v = W_K^T X
  const float* query_points = nullptr;  ///< [d][padded_queries], 0 beyond Q
  const float* projected = nullptr;     ///< [H][k][padded_queries], u = W_Q^T x
  const std::int64_t* own = nullptr;    ///< [padded_queries], the point left out, or -1
  const float* scales = nullptr;        ///< [H][padded_queries], s of the gradient, 0 beyond Q

  FitWindow* windows = nullptr;          ///< [H][of_estimate.count][padded_queries]
  FitNormaliser* normalisers = nullptr;  ///< [H][padded_queries]
  double* estimates = nullptr;           ///< [H][padded_queries], f less the mean of Y
  float* pulls = nullptr;                ///< [H][k][padded_n], a sum over queries for every key
  double* query_partials = nullptr;      ///< [H][of_gradient.count][k][padded_queries]
  double* query_sums = nullptr;          ///< [H][k][padded_queries], summed over the panels
  double* key_partials = nullptr;        ///< [H][of_product.count][d][k]
  double* of_keys = nullptr;             ///< [H][d][k], the gradient
  double* of_queries = nullptr;          ///< [H][d][k] where `separate`
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
