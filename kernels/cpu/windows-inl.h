// SPDX-License-Identifier: Apache-2.0
// What is known and summed of one head at one query, when its exponents are safe, and the passes
// over a training set that it may need. Included once per SIMD target.

inline constexpr double log2_e = 1.4426950408889634;

/// Below this sum of unshifted kernel values a window is done again with the largest exponent
/// subtracted. Above it nothing that matters underflows: what is lost is below 2^-86 of the sum,
/// and in sums of squares below 2^-46.
inline constexpr double least_safe_sum = 0x1p-40;
/// Exponents without a bound of their own (softmax) begin at most this large, and may become this
/// large: then sums of (s w)^2 stay below 2^128 for a noise scale s up to 2^28.
inline constexpr float largest_first_exponent = 16;
inline constexpr float largest_exponent = 32;
/// Exponents from here on need no clamp.
inline constexpr double least_plain_exponent = -124;

/// Inner products of queries and keys in place of distances cost an exponent no more than eps times
/// this, which is where (|query| + reach)^2, in length scales, may not be above it.
inline constexpr double largest_product_norm = 64;
inline constexpr double product_reach = 3;

inline constexpr std::int64_t no_key = -1;

/// Heads whose products of all pairs are cheaper than a second look at weights that are kept.
inline constexpr std::size_t most_paired = 4;

/// Tiles over which sums are float32: 128 additions in every lane.
inline constexpr std::size_t block_tiles = 128 * lane_count / tile_points;
static_assert(chunk_unit % (block_tiles * tile_points) == 0);

/// Sums over the keys of one head and query.
struct Sums {
  double weight = 0;          ///< sum w
  double weighted_value = 0;  ///< sum w (value - centre)
  double weight_squared = 0;  ///< sum w^2, where it is needed
  double noise = 0;           ///< sum s^2 w^2, in aggregate mode with noise that varies
};

/// One head at one query.
struct Window {
  Sums sums;
  float whole = 0;        ///< added to the exponents; a constant factor 2^whole of all weights
  float reach2 = 0;       ///< blocks whose keys are no longer, |key|^2, need no clamp
  float norm = 0;         ///< softmax: |exponent| <= norm |key|
  bool repaired = false;  ///< exponents are taken relative to `shift`
  bool again = false;     ///< to be summed once more
  float shift = 0;
  float nearest = 0;               ///< least squared distance that was probed
  std::int64_t only_key = no_key;  ///< all other keys have weight zero
};

/// What the training set is gone through for, in this order; most replicates need the first alone.
enum class Pass {
  sums,      ///< the sums of all windows
  probe,     ///< the largest exponent and the nearest key of windows that held too little weight
  repair,    ///< their sums again, relative to that exponent
  ensemble,  ///< the noise of the ensemble, where it is cheaper than the products of all pairs
};
inline constexpr Pass all_passes[] = {Pass::sums, Pass::probe, Pass::repair, Pass::ensemble};

/// The conditions of a sweep that have one kernel law, d_k and set of queries in common.
class Ensembles {
 public:
  virtual ~Ensembles() = default;
  /// True if this pass over the training set is needed.
  virtual bool begin(Pass pass) = 0;
  /// The next chunk of the training set in the pass that was begun.
  virtual void add(const TrainingSet& set) = 0;
  /// Writes the statistics [layout.statistics()] of each condition to its place, see
  /// kernels/moments.h, and counts its windows.
  virtual void finish(double centre, std::span<const std::span<double>> statistics,
                      std::span<WindowCounts> counts) = 0;
};
