// SPDX-License-Identifier: Apache-2.0
// The Nadaraya-Watson loop: every head's weights at every query, summed to the statistics of one
// replicate. Included once per SIMD target.
//
// Keys come in blocks, blocks in parts that all queries of a batch meet before the next one, parts
// in strips (kernels/cpu/chunk.h says how long). For each strip, head and group of queries the
// exponents are computed into a buffer (exponents), then turned into weights and summed row by row
// (sum_row); with AVX-512 four queries go through both without leaving the registers (weigh_fused),
// with the same bits. Where covariances of heads are wanted, the weights are left in the buffer,
// where the products of all pairs of heads are taken (add_products). Sums over a block are float32
// in SIMD lanes, over blocks float64.
//
// The ladder, in 10^9 weights a second, the best of many runs, for the machine is shared. One core
// of an AMD EPYC (Zen 3) with AVX2, 51.8e9 multiply-adds a second; n = 4096, d = 32, H = 8, Q = 64,
// d_k = 4 unless named. The limit (docs/benchmarks.md) is 3.24 for the plain estimator and 2.53 for
// conditional pairwise moments. Whole jobs, plain / pairwise / aggregate:
//   1. One loop over keys for four queries: distances, exp2, sums of w, w value and w^2; all
//      weights stored; the aggregate noise from a second pass.          1.02 / 0.79 / 0.57
//   2. All of what follows.                                             1.90 / 1.49 / 1.43
// Core loop alone (kernel values and sums), plain / pairwise:
//   a. Exponents in one loop, six queries by two vectors; weights in another. 2.49 / 1.72
//      (One loop for both spilled registers and was no faster.) Products in place of distances
//      where they are accurate; the shift of an exponent inside the rounding constant of exp2; no
//      clamp where the longest key of a strip allows none; w^2 only where a window may be narrow.
//   b. Products of heads in triangles of four and 2 x 4 rectangles. - / 1.83
//      (2 x 6 strips loaded columns twice and left 2 x 2 rests, which wait for their own sums.)
//   c. Steps of four coordinates: 1.17 to 1.44 at d_k = 16, 0.87 to 0.93 at 32.
//   d. Aggregate noise from the products of pairs while H <= 2 (d_k + 12); beyond, a second pass.
// Tried and dropped: strips of 128 keys with the running sums of all pairs in the first cache
// (pairwise 1.4: too short a loop); rows padded against cache aliasing (no change); exponents and
// weights of two queries in registers for d_k = 1 and 2 (3.05 to 3.28 at d_k = 1, 2.81 to 2.86 at
// 2, slower where weights are stored).
//
// What binds there: weights from exponents alone reach 4.2, 12.4 multiply-adds each, which is their
// limit; the exponents at d_k = 4 take 8 more where 4 would do, for stores and loads of the buffer.
//
// One core of an Intel Xeon (Sapphire Rapids) with AVX-512, 72e9 multiply-adds a second at the
// time; core loop at d_k = 1 / 4 / 16, limits 5.6 / 4.5 / 2.6:
//   3. The above, with vectors of 16.                                   3.6 / 2.8 / 1.6
//   4. Two of AVX-512's own operations round an exponent down and multiply by 2^n: 9 operations for
//      2^t in place of 11; two vectors at a time.                       3.7 / 3.1 / 1.6
//   5. Keys of a subspace one after another, and no division a tile.    4.6 / 3.6 / 1.8
//   6. Eight queries at a time; the longest key of a strip found once.  4.8 / 3.9 / 2.0
// Whole jobs there, as ratios of times of processes in turn: A plain, B conditional, both pairwise,
// d_k = 4; C the conditional job of tools/bench/time_to_se.py (n = 2048, d = 16, 16 queries):
//   7. Exponents that become weights in registers, four queries by four vectors; coefficients of
//      exp2 from memory, where they are for every window.    A 1.12, B 1.10, C 1.05
//      (Not for larger d_k: conditional 0.95 at 16, 0.75 at 64, where keys are read twice as
//      often.)
//   8. Sums of w^2 from the products of heads, and these of four by four heads in place of two by
//      four.                                                 A 1.00, B 1.04, C 1.06
//   9. Four cosines of a regression at a time (kernels/cpu/tile_dot.h): 1.7 to 2.3 for these alone.
//      All three: A 1.13, B 1.14, C 1.16; A and B with 64 cosines 1.18.
//   10. What is done once a strip costs as much as 50 keys do: with AVX-512 strips are as long as
//      the caches allow, up to a block of 2048 keys, but no shorter than 256 (128 heads, aggregate:
//      1.2 for the sums against 128); running sums of a row of pairs are found
//      through one pointer, and so are the coefficients of a group of queries or of projections
//      (panels).
//   11. Parts of a block whose keys stay in the second cache are met by all queries before the next
//      ones: 1.08 for the sums at d_k = 32.
//   12. Projections: panels, norms two vectors at a time, the clamp of far keys only where a norm
//      is far: 1.15 to 1.25 for these alone.
//   13. Draws: shuffles under a mask, and the two products of Philox that are the same for all
//      points once: 1.06 for these alone.
//   14. Where the noise of the ensemble takes a second pass anyway, the first one keeps no weights
//      and has strips as the plain estimator, and a batch has all queries: 128 heads, aggregate,
//      1.15 for the whole job by the one and 1.3 by the other.
//      10 to 13, both programs in turn in one process, as tools/bench/compare does: B 1.08, C 1.07
//      to 1.10, B with d_k = 16 1.10, with 32 1.16; A 1.02 to 1.06.
//   15. Without kept weights a strip's keys take a third of the first cache, and while queries meet
//      them the next ones are fetched into the second: with that four queries by four vectors win
//      for every d_k up to 64. Sums of the plain estimator 1.02 at d_k = 8, 1.08 at 16, 1.2 at 32
//      (1.15 to 1.25 for all three while others kept the third cache busy), 1.28 at 64. The same
//      shape with kept weights: 0.98 to 1.04 at 8 to 64.
//   16. No subnormal numbers: where windows are narrow, products of small weights took most of the
//      time (whole jobs as C with bandwidth 0.35 in place of 0.5: 1.4, with 0.25: 2.9). With
//      AVX-512 exponents need no clamp then, either: 1.04 for the sums of C.
// One core of an AMD EPYC (Zen 4) with AVX-512, 57.6e9 multiply-adds a second:
//   17. 2^f in sixteenths, which one shuffle looks up, and a polynomial of degree 3 in place of 6,
//      with an error of 1.0 ulp in place of 1.3: as many operations, but two fewer that wait for
//      the multipliers, which bind there. Sums of the plain estimator 1.17 at d_k = 1, 1.11 at 4,
//      1.08 at 8, 1.04 at 16, 1.02 at 32; A 1.07, B 1.05, C 1.05. Not measured on an Intel yet.
// Tried and dropped on the Intel: in 7, eight queries by two vectors were hardly faster than two
// loops, and a mask of each row for the clamp cost as much as it saved. After 10, products of heads
// in pieces of a strip that stay in the first cache (256 keys: 0.92, 512: 0.97, 1024: 0.99 for the
// sums of C: what is done once a piece costs more than the second cache), and a triangle of four
// heads together with the four next ones, 26 sums, which reads a quarter less (1.01). Huge pages
// for the keys (projection 1.03, sums 1.01, which clearing them takes away again in short jobs).
// After 16, exponents from the matrix unit (AMX), coordinates split into three bfloat16 and sixteen
// queries by sixteen keys at a time: at d_k = 64 they took as long as 30 multiply-adds a weight, in
// place of 64, but as 120 while another hardware thread kept the core busy, which is how it mostly
// is (the core loop 1.9 and 0.67).
//
// What binds now: multiplications. On the Zen 4 the core loop reaches 75 to 88 % of d_k + 5 of them
// a weight, at d_k = 1 to 64; on the Intel it had 81 % of the limit and more before step 17. By
// samples of C on the Zen 4 the loop is two fifths of the time, projections, draws and products of
// heads a sixth each; the rest are cosines, statistics and what is done once a replicate.

/// Exponents without a bound of their own (softmax) begin at most this large, and may become this
/// large: then sums of (s w)^2 stay below 2^128 for a noise scale s up to 2^28.
inline constexpr float largest_first_exponent = 16;
inline constexpr float largest_exponent = 32;
/// Tiles over which sums are float32: 128 additions in every lane.
inline constexpr std::size_t block_tiles = 128 * lane_count / tile_points;
static_assert(chunk_unit % (block_tiles * tile_points) == 0);

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

template <std::size_t LawIndex>
class EnsembleLoop : public Ensembles {
 public:
  /// Of plans[i] for each i of `members`. Registers their subspaces, each once, and evaluates a
  /// head that several of them have once.
  EnsembleLoop(Plans plans, const std::vector<std::size_t>& members, Subspaces& subspaces)
      : plan_(*plans[members.front()]),
        queries_(static_cast<std::size_t>(plan_.queries)),
        k_(static_cast<std::size_t>(plan_.k)),
        conditional_(plan_.estimator == Estimator::conditional),
        constant_scale_(
            std::visit([](const auto& noise) { return noise.constant_scale; }, plan_.noise)) {
    for (const std::size_t index : members) add_condition(*plans[index], index, subspaces);
    squares_in_products_ = std::ranges::all_of(conditions_, &Condition::has_squares);
    sums_squares_ = sums_squares_ || squares_in_products_;
    // The keys of a strip that one head has, the weights of all heads there, and the keys that all
    // heads have in a part: the first stays in the first cache, the others in the second. Short
    // strips are slow, for what is done once a strip, the more so where weights are kept: there
    // AVX-512 has twice the keys.
    const std::size_t rows = most_together * (conditional_ ? heads_.size() : 1);
    const std::size_t kept = std::min((lane_count == 16 ? 2 : 1) * most_strip_numbers / k_,
                                      std::max(most_weights / rows, 16 * lane_count));
    const std::size_t most_tiles = lane_count == 16 ? block_tiles : 16;
    key_tiles_ = std::clamp<std::size_t>(most_strip_numbers / k_ / tile_points, 2, most_tiles);
    weight_tiles_ = std::clamp<std::size_t>(kept / tile_points, 2, most_tiles);
    const std::size_t size =
        std::max(most_together * key_tiles_, rows * weight_tiles_) * tile_points;
    buffer_ = hwy::AllocateAligned<float>(size);
    std::fill_n(buffer_.get(), size, 0.0f);
    needs_pairs_ = conditional_ &&
                   !(constant_scale_ && std::ranges::all_of(conditions_, &Condition::recomputes));
    keep_weights(conditional_);
    part_strips_ =
        std::max<std::size_t>(most_part_numbers / (heads_.size() * k_) / strip_keys(), 1);
    std::size_t pairs = 1;
    for (const Condition& one : conditions_) {
      if (!one.recomputes()) pairs = std::max(pairs, one.pairs());
    }
    batch_ = std::max<std::size_t>(most_running_pairs / pairs / most_together, 1) * most_together;
    for (Condition& condition : conditions_) {
      std::vector<float*> places;
      for (std::size_t r = 0; r < most_together; ++r) {
        for (const std::size_t h : condition.heads()) places.push_back(row(r, h));
      }
      condition.place(std::move(places), std::min(batch_, queries_));
    }
    sums_ = LaneSums(queries_ * heads_.size() * 4);
    windows_.resize(queries_ * heads_.size());
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      Head<Law>& head = heads_[h];
      for (std::size_t q = 0; q < queries_; ++q) head.place(q, window(q, h));
      for_queries(0, queries_,
                  [&]<std::size_t Rows>(std::size_t q) { head.template pack<Rows>(q); });
    }
  }

  bool begin(Pass pass) override {
    pass_ = pass;
    keep_weights(conditional_ && (pass != Pass::sums || needs_pairs_));
    switch (pass) {
      case Pass::sums:
        forget_all();
        return true;
      case Pass::probe:
        return find_unsafe();
      case Pass::repair:
        forget_again();
        return !again_.empty();
      case Pass::ensemble:
        return set_factors();
    }
    return false;
  }

  HWY_ATTR void add(const TrainingSet& set) override {
    const WithoutSubnormals without_subnormals;
    unit_variance_ = set.noise_unit() * set.noise_unit();
    variance_ = unit_variance_;
    if (constant_scale_) {
      const double sd = static_cast<double>(set.scales(0)[0]);
      variance_ *= sd * sd;
    }
    for (std::size_t tile = 0; tile < set.tiles(); tile += block_tiles) {
      add_block(set, tile, std::min(block_tiles, set.tiles() - tile));
    }
  }

  HWY_ATTR void finish(double centre, std::span<const std::span<double>> statistics,
                       std::span<WindowCounts> counts) override {
    for (Condition& condition : conditions_) {
      for (std::size_t q = 0; q < queries_; ++q) {
        for (const std::size_t h : condition.heads()) {
          count_window(window(q, h), counts[condition.index()]);
        }
        condition.finish(q, &window(q, 0), centre, variance_, unit_variance_,
                         &statistics[condition.index()][q * condition.layout().per_query()]);
      }
    }
  }

 private:
  using Law = std::variant_alternative_t<LawIndex, KernelLaw>;
  static constexpr bool softmax = Law::has_key_prior;

  /// Whether sums of w^2 are taken for themselves.
  bool adds_squares() const {
    return !squares_in_products_ && (sums_squares_ || pass_ == Pass::repair);
  }
  std::size_t strip_keys() const { return strip_tiles_ * tile_points; }
  void keep_weights(bool keep) {
    keeps_weights_ = keep;
    strip_tiles_ = keep ? weight_tiles_ : key_tiles_;
  }
  Window& window(std::size_t q, std::size_t h) { return windows_[q * heads_.size() + h]; }
  const Window& window(std::size_t q, std::size_t h) const {
    return windows_[q * heads_.size() + h];
  }
  float largest_norm(const Strip& strip, std::size_t h) const {
    return strip_norms_[strip.index * heads_.size() + h];
  }
  /// Running sums of w, w value, w^2 and s^2 w^2.
  float* running(std::size_t q, std::size_t h) { return sums_.at(4 * (q * heads_.size() + h)); }
  /// Exponents, then weights of one head at query r of a group.
  float* row(std::size_t r, std::size_t h) {
    return &buffer_[(keeps_weights_ ? r * heads_.size() + h : r) * strip_keys()];
  }

  // Construction

  void add_condition(const Plan& plan, std::size_t index, Subspaces& subspaces) {
    // This target's own law has the members of the plan's.
    const Law law = __builtin_bit_cast(Law, *std::get_if<LawIndex>(&plan.kernel));
    std::vector<std::size_t> heads;
    for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
      const double* w = &plan.projections[h * static_cast<std::size_t>(plan.d) * k_];
      heads.push_back(
          add_head({subspaces.add(w, k_), law, plan, plan.query_projection(static_cast<int>(h))}));
    }
    conditions_.emplace_back(plan, index, std::move(heads));
    sums_squares_ = sums_squares_ || conditions_.back().recomputes();
  }

  /// The place of a head, new or known.
  std::size_t add_head(Head<Law> head) {
    const auto known = std::ranges::find_if(heads_, [&](const auto& one) { return one.is(head); });
    if (known != heads_.end()) return static_cast<std::size_t>(known - heads_.begin());
    heads_.push_back(std::move(head));
    return heads_.size() - 1;
  }

  // Passes

  void forget_all() {
    sums_squares_ = sums_squares_ || squares_next_;
    for (Window& at : windows_) {
      at.sums = {};
      at.repaired = false;
      at.only_key = no_key;
    }
    for (Condition& condition : conditions_) condition.forget();
    largest_norm_.assign(heads_.size(), 0.0f);
    again_.clear();
  }

  /// Finds the windows to be done again; true if some of them need a probe.
  bool find_unsafe() {
    bool probes = false;
    std::size_t uncounted = 0;
    for (std::size_t q = 0; q < queries_; ++q) {
      bool again = false;
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        Window& at = window(q, h);
        const float bound = softmax ? at.norm * std::sqrt(largest_norm_[h]) + at.whole : 0.5f;
        at.repaired =
            !(at.sums.weight >= min_safe_sum(plan_.estimator, plan_.n, Underflow::flushed)) ||
            bound > largest_exponent;
        // sum w^2 <= max w sum w: such a window is not narrow.
        const bool wide = at.sums.weight >= 2.001 * std::exp2(static_cast<double>(bound));
        if (!at.repaired && !wide && !sums_squares_) ++uncounted;
        at.again = at.repaired || (!wide && !sums_squares_);
        if (at.repaired) {
          at.shift = -std::numeric_limits<float>::infinity();
          at.nearest = std::numeric_limits<float>::infinity();
        }
        probes = probes || at.repaired;
        again = again || at.again;
      }
      if (again) again_.push_back(q);
    }
    // Where many windows are narrow, squares are summed in the first pass from now on.
    if (16 * uncounted > windows_.size()) squares_next_ = true;
    return probes;
  }

  void forget_again() {
    for (const std::size_t q : again_) {
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        Window& at = window(q, h);
        if (conditional_ || at.again) at.sums = {};
        if (at.shift != -std::numeric_limits<float>::infinity()) at.only_key = no_key;
      }
      for (Condition& condition : conditions_) condition.forget(q);
    }
  }

  /// True if some condition needs the second pass.
  bool set_factors() {
    bool any = false;
    for (Condition& condition : conditions_) {
      if (!condition.recomputes()) continue;
      any = true;
      for (std::size_t q = 0; q < queries_; ++q) condition.set_factors(q, &window(q, 0));
    }
    return any;
  }

  /// Calls body.template operator()<Rows>(q) for groups of queries that cover `count` from `first`
  /// on, which are all of them or a batch.
  template <class Body>
  HWY_ATTR void for_queries(std::size_t first, std::size_t count, const Body& body) {
    for_row_tiles<most_together>(count, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
      body.template operator()<Rows>(first + q);
    });
  }

  /// Brings keys that will be needed next nearer, into the second cache: of `tiles` tiles from
  /// `tile` on, as far as there are any, what falls to `count` queries from q on. Inline, because
  /// g++ 12 drops calls of a function that does nothing else.
  HWY_INLINE void fetch(const TrainingSet& set, std::size_t tile, std::size_t tiles,
                        std::size_t subspace, std::size_t q, std::size_t count) const {
    if (tile >= set.tiles()) return;
    constexpr std::size_t line = 64 / sizeof(float);
    const std::size_t lines = std::min(tiles, set.tiles() - tile) * tile_points * k_ / line;
    const std::size_t end = lines * (q + count) / queries_;
    const float* keys = set.keys(tile, subspace);
    for (std::size_t i = lines * q / queries_; i < end; ++i) {
      __builtin_prefetch(keys + i * line, 0, 2);
    }
  }

  /// A block of keys: strip by strip, then the running sums are drained.
  HWY_ATTR void add_block(const TrainingSet& set, std::size_t tile, std::size_t tiles) {
    strips_.clear();
    for (std::size_t t = 0; t < tiles; t += strip_tiles_) {
      const std::size_t count = std::min(strip_tiles_, tiles - t);
      const std::size_t before = (tile + t) * tile_points;
      strips_.push_back({set, tile + t, count, std::min(count * tile_points, set.points() - before),
                         strips_.size()});
    }
    strip_norms_.clear();
    for (const Strip& strip : strips_) {
      for (const auto& head : heads_) {
        const float* norms = set.norms(strip.tile, head.subspace());
        Float largest = hn::Zero(float_tag);
        for (std::size_t i = 0; i < strip.tiles * tile_points; i += lane_count) {
          largest = hn::Max(largest, hn::Load(float_tag, norms + i));
        }
        strip_norms_.push_back(hn::GetLane(hn::MaxOfLanes(float_tag, largest)));
      }
    }
    switch (pass_) {
      case Pass::probe:
        for (const Strip& strip : strips_) probe(strip);
        return;
      case Pass::repair:
        for (const std::size_t q : again_) {
          add_queries<1>(strips_, q, 0);
          drain(q, 0);
        }
        return;
      case Pass::sums:
        take_norms();
        break;
      case Pass::ensemble:
        break;
    }
    if (keeps_weights_) {
      for (std::size_t q = 0; q < queries_; q += batch_)
        add_batch(q, std::min(batch_, queries_ - q));
      return;
    }
    for (const Strip& strip : strips_) {
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        const bool last = h + 1 == heads_.size();
        const std::size_t next = strip.tile + (last ? strip.tiles : 0);
        const std::size_t next_head = heads_[last ? 0 : h + 1].subspace();
        for_queries(0, queries_, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
          fetch(set, next, strip.tiles, next_head, q, Rows);
          weigh<Rows>(strip, q, h);
        });
      }
    }
    for (std::size_t q = 0; q < queries_; ++q) drain(q, 0);
  }

  /// `count` queries from `first` on for all strips of a block, in parts whose keys stay in cache.
  HWY_ATTR void add_batch(std::size_t first, std::size_t count) {
    const std::span<const Strip> strips(strips_);
    for (std::size_t s = 0; s < strips.size(); s += part_strips_) {
      const auto part = strips.subspan(s, std::min(part_strips_, strips.size() - s));
      for_queries(first, count, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
        add_queries<Rows>(part, q, q - first);
      });
    }
    for (std::size_t i = 0; i < count; ++i) drain(first + i, i);
  }

  /// Rows queries, which begin at place `i` of the running sums, for some strips, heads innermost:
  /// their weights are multiplied.
  template <std::size_t Rows>
  HWY_ATTR void add_queries(std::span<const Strip> strips, std::size_t q, std::size_t i) {
    for (const Strip& strip : strips) {
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        if (pass_ == Pass::repair && !conditional_ && !window(q, h).again) continue;
        weigh<Rows>(strip, q, h);
      }
      if (!keeps_weights_) continue;
      for (std::size_t r = 0; r < Rows; ++r) add_noise(strip, q + r, r, i + r);
    }
  }

  /// Adds the running sums of query q, the i-th of its batch, to those of the replicate. What is
  /// rounded is rounded here, once a block: strips may depend on the conditions beside one.
  HWY_ATTR void drain(std::size_t q, std::size_t i) {
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      const std::size_t at = 4 * (q * heads_.size() + h);
      Sums unused;
      Sums& sums = pass_ == Pass::ensemble ? unused : window(q, h).sums;
      sums.weight += sums_.drain(at);
      sums.weighted_value += sums_.drain(at + 1);
      if (adds_squares()) sums.weight_squared += sums_.drain(at + 2);
      if (conditional_ && !constant_scale_) sums.noise += sums_.drain(at + 3);
    }
    for (Condition& condition : conditions_) {
      if (pass_ != Pass::ensemble) {
        condition.drain(q, i);
      } else if (condition.recomputes()) {
        condition.drain_ensemble(q, i);
      }
    }
    if (pass_ == Pass::ensemble || !squares_in_products_) return;
    for (const Condition& condition : conditions_) {
      for (std::size_t h = 0; h < condition.heads().size(); ++h) {
        window(q, condition.heads()[h]).sums.weight_squared = condition.square(q, h);
      }
    }
  }

  void take_norms() {
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      float norm = 0;
      for (const Strip& strip : strips_) norm = std::max(norm, largest_norm(strip, h));
      if constexpr (softmax) {
        if (first_key(strips_.front()) == 0) bound_exponents(h, std::sqrt(norm));
      }
      largest_norm_[h] = std::max(largest_norm_[h], norm);
    }
  }

  /// Softmax exponents have no bound until the first keys are seen.
  void bound_exponents(std::size_t h, float norm) {
    for (std::size_t q = 0; q < queries_; ++q) {
      Window& at = window(q, h);
      // Beyond that exp2 could not round; such a window exceeds `largest_exponent` and is repaired.
      at.set_whole(
          -std::ceil(std::clamp(at.norm * norm - largest_first_exponent, 0.0f, largest_whole)));
      const float reach = (at.whole - static_cast<float>(least_plain_exponent)) / at.norm;
      const bool plain = reach > 0 && at.whole >= -largest_plain_whole;
      at.reach2 = plain ? reach * reach : -1.0f;
    }
  }
  /// Exponents of Rows queries to the keys of a strip, into row(to) and those after it.
  template <std::size_t Rows>
  HWY_ATTR void exponents(const Strip& strip, std::size_t q, std::size_t h, std::size_t to,
                          bool products) {
    constexpr std::size_t vectors = std::min<std::size_t>(tile_points / lane_count, 2);
    float* out[Rows];
    for (std::size_t r = 0; r < Rows; ++r) out[r] = row(to + r, h);
    heads_[h].template exponents<Rows, vectors>(
        strip, 0, strip.tiles, q, products,
        [&](std::size_t r, std::size_t at, Float(&t)[vectors]) HWY_ATTR
        __attribute__((always_inline)) {
          for (std::size_t v = 0; v < vectors; ++v) {
            hn::Store(t[v], float_tag, out[r] + at + v * lane_count);
          }
        });
    // What fills the last tile up weighs nothing.
    const float never = -std::numeric_limits<float>::infinity();
    for (std::size_t r = to; r < to + Rows; ++r) {
      std::fill(row(r, h) + strip.points, row(r, h) + strip.tiles * tile_points, never);
    }
  }

  /// Weights of one head at Rows queries for a strip: adds their sums, and leaves them in row()
  /// where they are needed there.
  template <std::size_t Rows>
  HWY_ATTR void weigh(const Strip& strip, std::size_t q, std::size_t h) {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (Rows == fused_rows) {
      if (weigh_fused(strip, q, h)) return;
    }
#endif
    const bool partial = strip.points < strip.tiles * tile_points;
    const float norm = largest_norm(strip, h);
    exponents<Rows>(strip, q, h, 0, heads_[h].products());
    for (std::size_t r = 0; r < Rows; ++r) {
      const Window& at = window(q + r, h);
      float* sums = running(q + r, h);
      if (at.repaired) {
        exponents<1>(strip, q + r, h, r, softmax);
        shift(at, strip, row(r, h));
        add_row(true, strip, 0, row(r, h), sums);
      } else {
        add_row(partial || norm > at.reach2, strip, at.whole, row(r, h), sums);
      }
    }
  }

#if HWY_TARGET <= HWY_AVX3
  /// The same with the exponents in registers; false, and nothing done, where it cannot be.
  HWY_ATTR bool weigh_fused(const Strip& strip, std::size_t q, std::size_t h) {
    WeightRow rows[fused_rows];
    for (std::size_t r = 0; r < fused_rows; ++r) {
      const Window& at = window(q + r, h);
      if (at.repaired || at.whole < -largest_plain_whole) return false;
      rows[r] = {
          .exp2 = &at.exp2, .sums = running(q + r, h), .out = keeps_weights_ ? row(r, h) : nullptr};
    }
    const float* values = strip.set.values(strip.tile);
    const bool squares = adds_squares();
    constexpr std::size_t together = fused_vectors * lane_count / tile_points;
    const std::size_t most = strip.points / tile_points / together * together;
    heads_[h].template exponents<fused_rows, fused_vectors>(
        strip, 0, most, q, heads_[h].products(),
        [&](std::size_t r, std::size_t at, Float(&t)[fused_vectors]) HWY_ATTR
        __attribute__((always_inline)) { rows[r].add(t, values, at, squares); });
    if (most == strip.tiles) return true;
    constexpr std::size_t vectors = fused_vectors / together;
    const Float never = hn::Set(float_tag, -std::numeric_limits<float>::infinity());
    heads_[h].template exponents<fused_rows, vectors>(
        strip, most, strip.tiles - most, q, heads_[h].products(),
        [&](std::size_t r, std::size_t first, Float(&t)[vectors]) HWY_ATTR
        __attribute__((always_inline)) {
          const std::size_t at = most * tile_points + first;
          for (std::size_t v = 0; v < vectors; ++v) {
            // What fills the last tile up weighs nothing.
            const std::size_t there = strip.points - std::min(strip.points, at + v * lane_count);
            t[v] = hn::IfThenElse(hn::FirstN(float_tag, there), t[v], never);
          }
          rows[r].add(t, values, at, squares);
        });
    return true;
  }
#endif

  /// Exponents relative to the largest one of the window.
  static void shift(const Window& at, const Strip& strip, float* exponents) {
    if (at.only_key == no_key) {
      for (std::size_t i = 0; i < strip.keys(); ++i) exponents[i] -= at.shift;
      return;
    }
    std::fill_n(exponents, strip.keys(), -std::numeric_limits<float>::infinity());
    const std::int64_t only = at.only_key - static_cast<std::int64_t>(first_key(strip));
    if (only >= 0 && only < static_cast<std::int64_t>(strip.points)) exponents[only] = 0;
  }

  static std::uint64_t first_key(const Strip& strip) {
    return strip.set.first_point() + strip.tile * tile_points;
  }

  HWY_ATTR void add_row(bool clamp, const Strip& strip, float whole, float* row, float* sums) {
    const float* values = strip.set.values(strip.tile);
    const bool squares = adds_squares();
    auto add = [&]<bool Clamp, bool Squares>() HWY_ATTR {
      if (keeps_weights_) {
        sum_row<Clamp, Squares, true>(row, values, strip.keys(), whole, sums);
      } else {
        sum_row<Clamp, Squares, false>(row, values, strip.keys(), whole, sums);
      }
    };
    if (clamp) {
      squares ? add.template operator()<true, true>() : add.template operator()<true, false>();
    } else {
      squares ? add.template operator()<false, true>() : add.template operator()<false, false>();
    }
  }

  /// What the weights of all heads at query q, the i-th of its batch, which are in row(r), give
  /// together.
  HWY_ATTR void add_noise(const Strip& strip, std::size_t q, std::size_t r, std::size_t i) {
    const std::size_t keys = strip.keys();
    if (pass_ == Pass::ensemble) {
      for (Condition& condition : conditions_) {
        if (!condition.recomputes()) continue;
        condition.add_ensemble_noise(strip.set.scales(strip.tile), keys, q, r, i);
      }
      return;
    }
    for (Condition& condition : conditions_) condition.multiply_weights(keys, r, i);
    if (constant_scale_) return;
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      scale_by_noise(strip, row(r, h), running(q, h) + 3 * lane_count);
    }
    for (Condition& condition : conditions_) condition.multiply_scaled_weights(keys, r, i);
  }

  /// w_i <- s(X_i) w_i over a strip; adds (s w)^2 to a running sum.
  HWY_ATTR static void scale_by_noise(const Strip& strip, float* w, float* sum) {
    const float* scales = strip.set.scales(strip.tile);
    Float square = hn::Load(float_tag, sum);
    for (std::size_t i = 0; i < strip.keys(); i += lane_count) {
      const Float scaled = hn::Mul(hn::Load(float_tag, w + i), hn::Load(float_tag, scales + i));
      square = hn::MulAdd(scaled, scaled, square);
      hn::Store(scaled, float_tag, w + i);
    }
    hn::Store(square, float_tag, sum);
  }

  /// The largest exponent and the nearest key of the windows that held too little weight.
  HWY_ATTR void probe(const Strip& strip) {
    for (const std::size_t q : again_) {
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        Window& at = window(q, h);
        if (!at.repaired) continue;
        exponents<1>(strip, q, h, 0, softmax);
        Float largest = hn::Set(float_tag, at.shift);
        for (std::size_t i = 0; i < strip.keys(); i += lane_count) {
          largest = hn::Max(largest, hn::Load(float_tag, row(0, h) + i));
        }
        at.shift = hn::GetLane(hn::MaxOfLanes(float_tag, largest));
        if (at.shift == -std::numeric_limits<float>::infinity()) find_nearest(strip, q, h);
      }
    }
  }

  /// The first of the nearest keys, for a window in which no key has any weight.
  HWY_ATTR void find_nearest(const Strip& strip, std::size_t q, std::size_t h) {
    Window& at = window(q, h);
    const Panel<1> query{heads_[h].query(q)};
    float* distances = row(0, h);
    multiply_tiles<1, true>(strip.set.keys(strip.tile, heads_[h].subspace()), strip.tiles, k_,
                            query, nullptr, 0, &distances, [](Float r2) HWY_ATTR { return r2; });
    for (std::size_t i = 0; i < strip.points; ++i) {
      if (distances[i] < at.nearest || at.only_key == no_key) {
        at.nearest = distances[i];
        at.only_key = static_cast<std::int64_t>(first_key(strip) + i);
      }
    }
  }

  // Statistics

  void count_window(const Window& at, WindowCounts& counts) const {
    const auto least = static_cast<float>(-126.0);
    if (Law::counts_empty_windows && at.repaired && at.shift < least) ++counts.empty;
    // Two points of equal weight are not narrow, whichever way float32 rounds their squares.
    const bool counted = sums_squares_ || at.again;
    const double least_square = 2 * (1 - 1e-5) * at.sums.weight_squared;
    if (counted && at.sums.weight * at.sums.weight < least_square) ++counts.narrow;
  }

  Pass pass_ = Pass::sums;
  const Plan& plan_;  ///< the first member's
  std::size_t queries_;
  std::size_t k_;
  bool conditional_;
  bool constant_scale_;
  double unit_variance_ = 1;          ///< of a noise unit
  double variance_ = 1;               ///< that sums of w^2, or of s^2 w^2, are multiplied by
  bool squares_in_products_ = false;  ///< sums of w^2 are among those of products
  bool sums_squares_ = false;         ///< in the first pass already
  bool squares_next_ = false;         ///< from the next replicate on
  bool needs_pairs_ = false;          ///< weights of all heads together, in the first pass already
  bool keeps_weights_ = false;        ///< of all heads, in this pass
  std::size_t key_tiles_ = 0;         ///< of a strip where weights are not kept
  std::size_t weight_tiles_ = 0;      ///< and where they are
  std::size_t strip_tiles_ = 0;       ///< in this pass
  std::size_t part_strips_ = 0;  ///< that all queries of a batch go through before the next ones
  std::size_t batch_ = 0;        ///< queries that have running sums of pairs at once
  std::vector<Head<Law>> heads_;
  std::vector<Condition> conditions_;
  std::vector<Window> windows_;                ///< [Q][heads_]
  LaneSums sums_;                              ///< [Q][heads_][4], of the block under way
  std::vector<Strip> strips_;                  ///< of the block under way
  std::vector<float> strip_norms_;             ///< [strips_][heads_], the largest |key|^2
  std::vector<float> largest_norm_;            ///< [heads_], of the keys so far
  std::vector<std::size_t> again_;             ///< queries to be done again
  hwy::AlignedFreeUniquePtr<float[]> buffer_;  ///< [most_together][heads_ or 1][strip_keys]
};
