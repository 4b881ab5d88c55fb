// SPDX-License-Identifier: Apache-2.0
// The Nadaraya-Watson loop: every head's weights at every query, summed to the statistics of one
// replicate. Included once per SIMD target.
//
// Work goes query group by query group (up to query_group queries share each key that is loaded),
// within it block by block of keys, within it head by head. Kernel values of a block stay in a
// buffer small enough for the first caches, where the products of all pairs of heads are taken.
// Sums over a block are float32, sums over blocks float64.

inline constexpr std::size_t query_group = 4;
inline constexpr std::size_t block_tiles = 8;
inline constexpr std::size_t block_keys = block_tiles * tile_points;

/// Below this sum of unshifted kernel values a window is done again with the largest exponent
/// subtracted. Above it nothing that matters underflows: what is lost is below 2^-86 of the sum,
/// and in sums of squares below 2^-46.
inline constexpr double least_safe_sum = 0x1p-40;

inline constexpr std::int64_t no_key = -1;

/// How the exponents of one head and query are taken.
struct Window {
  float shift = 0;                 ///< log weight that becomes weight 1
  std::int64_t only_key = no_key;  ///< all other keys have weight zero
};

/// Sums over the keys of one head and query.
struct Sums {
  double weight = 0;          ///< sum w
  double weighted_value = 0;  ///< sum w (value - centre)
  double weight_squared = 0;  ///< sum w^2
  double noise = 0;           ///< sum s^2 w^2, in aggregate mode with noise that varies
};

template <class Law>
class EnsembleLoop {
 public:
  EnsembleLoop(const Plan& plan, const Law& law)
      : plan_(plan),
        law_(law),
        layout_(plan.layout()),
        heads_(static_cast<std::size_t>(plan.heads)),
        k_(static_cast<std::size_t>(plan.k)),
        weights_(hwy::AllocateAligned<float>(query_group * heads_ * block_keys)),
        windows_(query_group * heads_),
        sums_(query_group * heads_),
        second_sums_(query_group * heads_),
        factors_(query_group * heads_) {
    constant_scale_ =
        std::visit([](const auto& noise) { return noise.constant_scale; }, plan.noise);
    if (layout_.conditional && layout_.pairwise()) {
      products_.resize(query_group * layout_.pairs());
      noise_products_.resize(constant_scale_ ? 0 : products_.size());
    }
    const auto d = static_cast<std::size_t>(plan.d);
    const double unit = length_scale(plan.kernel);
    for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
      for (std::size_t h = 0; h < heads_; ++h) {
        for (std::size_t j = 0; j < k_; ++j) {
          double sum = 0;
          for (std::size_t c = 0; c < d; ++c) {
            sum += plan.projections[(h * d + c) * k_ + j] * plan.query_points[q * d + c];
          }
          queries_.push_back(static_cast<float>(sum / unit));
        }
      }
    }
  }

  /// Statistics of one replicate [layout.statistics()], see kernels/moments.h.
  HWY_ATTR void replicate(const TrainingSet& set, std::span<double> statistics,
                          WindowCounts& counts) {
    const auto queries = static_cast<std::size_t>(plan_.queries);
    std::size_t q = 0;
    for (; q + query_group <= queries; q += query_group) {
      group<query_group>(set, q, statistics, counts);
    }
    for (; q < queries; ++q) group<1>(set, q, statistics, counts);
  }

 private:
  const float* query(std::size_t q, std::size_t head) const {
    return &queries_[(q * heads_ + head) * k_];
  }
  float* weights(std::size_t g, std::size_t head) {
    return &weights_[(g * heads_ + head) * block_keys];
  }

  /// A group of queries at the fast exponents, and again one by one where those were not safe.
  template <std::size_t Group>
  HWY_ATTR void group(const TrainingSet& set, std::size_t first, std::span<double> statistics,
                      WindowCounts& counts) {
    std::ranges::fill(windows_, Window{});
    if constexpr (Law::has_key_prior) {
      for (std::size_t g = 0; g < Group; ++g) {
        for (std::size_t h = 0; h < heads_; ++h) {
          windows_[g * heads_ + h].shift = probe(set, query(first + g, h), h).largest;
        }
      }
    }
    sum_keys<Group, Law::has_key_prior>(set, first);
    bool safe[Group];
    for (std::size_t g = 0; g < Group; ++g) {
      safe[g] = true;
      for (std::size_t h = 0; h < heads_; ++h) {
        safe[g] = safe[g] && sums_[g * heads_ + h].weight >= least_safe_sum;
      }
      if (safe[g]) finish(set, first, g, statistics, counts);
    }
    for (std::size_t g = 0; g < Group; ++g) {
      if (!safe[g]) robust(set, first + g, statistics, counts);
    }
  }

  /// One query with the largest exponent of each head subtracted.
  HWY_ATTR void robust(const TrainingSet& set, std::size_t q, std::span<double> statistics,
                       WindowCounts& counts) {
    const auto log_empty = static_cast<float>(-126 / log2_e);
    for (std::size_t h = 0; h < heads_; ++h) {
      const Probe found = probe(set, query(q, h), h);
      windows_[h] = {.shift = found.largest};
      if (Law::counts_empty_windows && found.largest < log_empty) ++counts.empty;
      if (found.largest == -std::numeric_limits<float>::infinity()) {
        windows_[h] = {.only_key = nearest_key(set, query(q, h), h, found.nearest)};
      }
    }
    sum_keys<1, true>(set, q);
    finish(set, q, 0, statistics, counts);
  }

  static constexpr double log2_e = 1.4426950408889634;

  /// Squared distances of Group queries to lane_count keys.
  template <std::size_t Group>
  HWY_ATTR HWY_INLINE void distances(const float* keys, const float* const* query,
                                     Float* r2) const {
    for (std::size_t g = 0; g < Group; ++g) r2[g] = hn::Zero(float_tag);
    for (std::size_t j = 0; j < k_; ++j) {
      const Float key = hn::Load(float_tag, keys + j * tile_points);
      for (std::size_t g = 0; g < Group; ++g) {
        const Float difference = hn::Sub(key, hn::Set(float_tag, query[g][j]));
        r2[g] = hn::MulAdd(difference, difference, r2[g]);
      }
    }
  }

  HWY_ATTR HWY_INLINE Float log_weight(Float r2, const float* prior) const {
    Lanes value = law_.log_weight(Lanes(r2));
    if constexpr (Law::has_key_prior) value = value + Lanes(hn::Load(float_tag, prior));
    return value.v;
  }

  /// Largest log weight and least squared distance over all keys.
  struct Probe {
    float largest;
    float nearest;
  };
  HWY_ATTR Probe probe(const TrainingSet& set, const float* query, std::size_t head) const {
    Float largest = hn::Set(float_tag, -std::numeric_limits<float>::infinity());
    Float nearest = hn::Set(float_tag, std::numeric_limits<float>::infinity());
    for (std::size_t tile = 0; tile < set.tiles(); ++tile) {
      for (std::size_t v = 0; v < tile_points; v += lane_count) {
        Float r2;
        distances<1>(set.keys(tile, head) + v, &query, &r2);
        nearest = hn::Min(nearest, r2);
        largest = hn::Max(largest, log_weight(r2, set.priors(tile, head) + v));
      }
    }
    return {hn::GetLane(hn::MaxOfLanes(float_tag, largest)),
            hn::GetLane(hn::MinOfLanes(float_tag, nearest))};
  }

  /// The first key at squared distance `nearest`.
  HWY_ATTR std::int64_t nearest_key(const TrainingSet& set, const float* query, std::size_t head,
                                    float nearest) const {
    const Float wanted = hn::Set(float_tag, nearest);
    for (std::size_t tile = 0; tile < set.tiles(); ++tile) {
      for (std::size_t v = 0; v < tile_points; v += lane_count) {
        Float r2;
        distances<1>(set.keys(tile, head) + v, &query, &r2);
        const std::intptr_t lane = hn::FindFirstTrue(float_tag, hn::Eq(r2, wanted));
        if (lane >= 0) return static_cast<std::int64_t>(tile * tile_points + v) + lane;
      }
    }
    return 0;
  }

  /// Kernel values of one head for a block of keys, into weights(); adds their sums to all_sums
  /// [query_group][H]. Shifted: exponents are taken relative to the window's shift.
  template <std::size_t Group, bool Shifted>
  HWY_ATTR void weigh(const TrainingSet& set, std::size_t first, std::size_t head,
                      std::size_t tile_begin, std::size_t tile_end, Sums* all_sums) {
    const float* queries[Group];
    Float weight[Group];
    Float weighted_value[Group];
    Float weight_squared[Group];
    for (std::size_t g = 0; g < Group; ++g) {
      queries[g] = query(first + g, head);
      weight[g] = weighted_value[g] = weight_squared[g] = hn::Zero(float_tag);
    }
    const Float to_base_2 = hn::Set(float_tag, static_cast<float>(log2_e));
    for (std::size_t tile = tile_begin; tile < tile_end; ++tile) {
      const float* keys = set.keys(tile, head);
      const float* values = set.values(tile);
      const float* priors = set.priors(tile, head);
      float* out = weights(0, head) + (tile - tile_begin) * tile_points;
      for (std::size_t v = 0; v < tile_points; v += lane_count) {
        Float r2[Group];
        distances<Group>(keys + v, queries, r2);
        const Float value = hn::Load(float_tag, values + v);
        for (std::size_t g = 0; g < Group; ++g) {
          Float exponent = log_weight(r2[g], priors + v);
          Float w;
          if constexpr (Shifted) {
            // Subtracted before the change of base, so that the largest becomes exactly 0.
            const Window& window = windows_[g * heads_ + head];
            exponent = hn::Sub(exponent, hn::Set(float_tag, window.shift));
            w = exp2(hn::Mul(exponent, to_base_2));
            if (window.only_key != no_key) {
              w = one_at(window.only_key - static_cast<std::int64_t>(tile * tile_points + v));
            }
          } else {
            w = exp2(hn::Mul(exponent, to_base_2));
          }
          weight[g] = hn::Add(weight[g], w);
          weighted_value[g] = hn::MulAdd(w, value, weighted_value[g]);
          weight_squared[g] = hn::MulAdd(w, w, weight_squared[g]);
          hn::Store(w, float_tag, out + g * heads_ * block_keys + v);
        }
      }
    }
    for (std::size_t g = 0; g < Group; ++g) {
      Sums& sums = all_sums[g * heads_ + head];
      sums.weight += total(weight[g]);
      sums.weighted_value += total(weighted_value[g]);
      sums.weight_squared += total(weight_squared[g]);
    }
  }

  /// 1 in lane `lane`, 0 elsewhere; 0 everywhere where there is no such lane.
  HWY_ATTR static HWY_INLINE Float one_at(std::int64_t lane) {
    const bool here = lane >= 0 && lane < static_cast<std::int64_t>(lane_count);
    const Float wanted = hn::Set(float_tag, here ? static_cast<float>(lane) : -1.0f);
    return hn::IfThenElseZero(hn::Eq(hn::Iota(float_tag, 0), wanted), hn::Set(float_tag, 1.0f));
  }

  HWY_ATTR static HWY_INLINE double total(Float lanes) {
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(float_tag, lanes)));
  }

  /// All sums over the keys for a group of queries.
  template <std::size_t Group, bool Shifted>
  HWY_ATTR void sum_keys(const TrainingSet& set, std::size_t first) {
    std::ranges::fill(sums_, Sums{});
    std::ranges::fill(products_, 0.0);
    std::ranges::fill(noise_products_, 0.0);
    for (std::size_t tile = 0; tile < set.tiles(); tile += block_tiles) {
      const std::size_t end = std::min(tile + block_tiles, set.tiles());
      for (std::size_t h = 0; h < heads_; ++h) {
        weigh<Group, Shifted>(set, first, h, tile, end, sums_.data());
      }
      if (!layout_.conditional) continue;
      const std::size_t keys = (end - tile) * tile_points;
      for (std::size_t g = 0; g < Group; ++g) {
        if (layout_.pairwise()) add_products(g, keys, &products_[g * layout_.pairs()]);
        if (constant_scale_) continue;
        for (std::size_t h = 0; h < heads_; ++h) {
          const double noise = scale_by_noise(set, tile, keys, weights(g, h));
          sums_[g * heads_ + h].noise += noise;
        }
        if (layout_.pairwise()) add_products(g, keys, &noise_products_[g * layout_.pairs()]);
      }
    }
    if (layout_.conditional && !layout_.pairwise()) {
      sum_ensemble_noise<Group, Shifted>(set, first);
    }
  }

  /// products(h, l) += sum_i w_hi w_li over the block in weights(), h <= l.
  HWY_ATTR void add_products(std::size_t g, std::size_t keys, double* products) {
    for (std::size_t h = 0; h < heads_; ++h) {
      std::size_t l = h;
      for (; l + 4 <= heads_; l += 4)
        add_products_of<4>(g, h, l, keys, products + layout_.pair(h, l));
      for (; l < heads_; ++l) add_products_of<1>(g, h, l, keys, products + layout_.pair(h, l));
    }
  }
  template <std::size_t Count>
  HWY_ATTR HWY_INLINE void add_products_of(std::size_t g, std::size_t h, std::size_t l,
                                           std::size_t keys, double* products) {
    Float sum[Count];
    for (Float& lanes : sum) lanes = hn::Zero(float_tag);
    const float* a = weights(g, h);
    const float* b = weights(g, l);
    for (std::size_t i = 0; i < keys; i += lane_count) {
      const Float w = hn::Load(float_tag, a + i);
      for (std::size_t c = 0; c < Count; ++c) {
        sum[c] = hn::MulAdd(w, hn::Load(float_tag, b + c * block_keys + i), sum[c]);
      }
    }
    for (std::size_t c = 0; c < Count; ++c) products[c] += total(sum[c]);
  }

  /// w_i <- s(X_i) w_i over a block; returns sum_i (s w)^2.
  HWY_ATTR double scale_by_noise(const TrainingSet& set, std::size_t tile, std::size_t keys,
                                 float* w) const {
    const float* scales = set.scales(tile);
    Float square = hn::Zero(float_tag);
    for (std::size_t i = 0; i < keys; i += lane_count) {
      const Float scaled = hn::Mul(hn::Load(float_tag, w + i), hn::Load(float_tag, scales + i));
      square = hn::MulAdd(scaled, scaled, square);
      hn::Store(scaled, float_tag, w + i);
    }
    return total(square);
  }

  /// ensemble_noise_[g] = sum_i s2_i (sum_h a_h w_hi)^2: a second pass over the keys, since every
  /// head's normalisation comes first.
  template <std::size_t Group, bool Shifted>
  HWY_ATTR void sum_ensemble_noise(const TrainingSet& set, std::size_t first) {
    for (std::size_t g = 0; g < Group; ++g) {
      ensemble_noise_[g] = 0;
      for (std::size_t h = 0; h < heads_; ++h) {
        const std::size_t at = g * heads_ + h;
        factors_[at] = static_cast<float>(plan_.head_weights[h] / sums_[at].weight);
      }
    }
    for (std::size_t tile = 0; tile < set.tiles(); tile += block_tiles) {
      const std::size_t end = std::min(tile + block_tiles, set.tiles());
      for (std::size_t h = 0; h < heads_; ++h) {
        weigh<Group, Shifted>(set, first, h, tile, end, second_sums_.data());
      }
      for (std::size_t g = 0; g < Group; ++g) {
        Float square = hn::Zero(float_tag);
        for (std::size_t i = 0; i < (end - tile) * tile_points; i += lane_count) {
          Float ensemble = hn::Zero(float_tag);
          for (std::size_t h = 0; h < heads_; ++h) {
            ensemble = hn::MulAdd(hn::Set(float_tag, factors_[g * heads_ + h]),
                                  hn::Load(float_tag, weights(g, h) + i), ensemble);
          }
          ensemble = hn::Mul(ensemble, hn::Load(float_tag, set.scales(tile) + i));
          square = hn::MulAdd(ensemble, ensemble, square);
        }
        ensemble_noise_[g] += total(square);
      }
    }
  }

  /// Statistics of query first + g from its sums.
  HWY_ATTR void finish(const TrainingSet& set, std::size_t first, std::size_t g,
                       std::span<double> statistics, WindowCounts& counts) {
    double* out = &statistics[(first + g) * layout_.per_query()];
    const Sums* sums = &sums_[g * heads_];
    for (std::size_t h = 0; h < heads_; ++h) {
      out[h] = set.centre() + sums[h].weighted_value / sums[h].weight;
      if (sums[h].weight * sums[h].weight < 2 * sums[h].weight_squared) ++counts.narrow;
    }
    if (!layout_.pairwise()) {
      out[heads_] = 0;
      for (std::size_t h = 0; h < heads_; ++h) out[heads_] += plan_.head_weights[h] * out[h];
    }
    if (!layout_.conditional) return;

    double* noise = out + layout_.noise_offset();
    const double sd = static_cast<double>(set.scales(0)[0]);
    const double s2 = constant_scale_ ? sd * sd : 1.0;
    if (!layout_.pairwise()) {
      for (std::size_t h = 0; h < heads_; ++h) {
        const double square = constant_scale_ ? sums[h].weight_squared : sums[h].noise;
        noise[h] = s2 * square / (sums[h].weight * sums[h].weight);
      }
      noise[heads_] = ensemble_noise_[g];
      return;
    }
    const double* plain = &products_[g * layout_.pairs()];
    const double* scaled = constant_scale_ ? plain : &noise_products_[g * layout_.pairs()];
    double cosines = 0;
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t l = h; l < heads_; ++l) {
        const std::size_t pair = layout_.pair(h, l);
        noise[pair] = s2 * scaled[pair] / (sums[h].weight * sums[l].weight);
        if (l > h) {
          cosines += plain[pair] / std::sqrt(plain[layout_.pair(h, h)] * plain[layout_.pair(l, l)]);
        }
      }
    }
    if (layout_.has_alignment()) {
      out[layout_.alignment_offset()] = cosines / static_cast<double>(heads_ * (heads_ - 1) / 2);
    }
  }

  const Plan& plan_;
  Law law_;
  MomentLayout layout_;
  std::size_t heads_;
  std::size_t k_;
  bool constant_scale_ = true;
  std::vector<float> queries_;                  ///< [Q][H][k], projected, in length scales
  hwy::AlignedFreeUniquePtr<float[]> weights_;  ///< [query_group][H][block_keys]
  std::vector<Window> windows_;                 ///< [query_group][H]
  std::vector<Sums> sums_;                      ///< [query_group][H]
  std::vector<double> products_;                ///< [query_group][P]
  std::vector<double> noise_products_;          ///< [query_group][P]
  std::vector<Sums> second_sums_;               ///< of the second pass, not used
  std::vector<float> factors_;                  ///< [query_group][H], a_h / sum w
  double ensemble_noise_[query_group] = {};
};
