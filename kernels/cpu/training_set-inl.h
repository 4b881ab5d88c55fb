// SPDX-License-Identifier: Apache-2.0
// Draws one training set and projects it for every head. Included once per SIMD target.

/// Coordinate of the keys that fill up the last tile: so far from every query that any kernel
/// gives them no weight, so near that its square is a float (a sum of squares may be infinite).
inline constexpr float far_away = 1e18f;

/// One training set in tiles of tile_points: projected keys, values and noise scales.
///
/// Loops over the lanes of a tile are plain C++ on the shared functors: the compiler vectorises
/// them for this target, and the bits cannot depend on it.
class TrainingSet {
 public:
  explicit TrainingSet(const Plan& plan)
      : plan_(plan),
        heads_(static_cast<std::size_t>(plan.heads)),
        k_(static_cast<std::size_t>(plan.k)),
        d_(static_cast<std::size_t>(plan.d)),
        has_prior_(std::visit([](const auto& law) { return law.has_key_prior; }, plan.kernel)),
        tiles_((static_cast<std::size_t>(plan.n) + tile_points - 1) / tile_points),
        keys_(hwy::AllocateAligned<float>(tiles_ * heads_ * k_ * tile_points)),
        priors_(hwy::AllocateAligned<float>(has_prior_ ? tiles_ * heads_ * tile_points : 1)),
        values_(hwy::AllocateAligned<float>(tiles_ * tile_points)),
        scales_(hwy::AllocateAligned<float>(tiles_ * tile_points)),
        point_(hwy::AllocateAligned<Tile>(static_cast<std::size_t>(point_buffer(plan.d)))) {
    // [H k][d], so that one output coordinate reads one row; in units of the kernel's length scale.
    const double unit = length_scale(plan.kernel);
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t j = 0; j < k_; ++j) {
        for (std::size_t c = 0; c < d_; ++c) {
          rows_.push_back(static_cast<float>(plan.projections[(h * d_ + c) * k_ + j] / unit));
        }
      }
    }
    // The median of m over a few points: one far point or query must not move it.
    draw_points(0, 0);
    Tile m = std::visit(
        [&](const auto& function) {
          return function(plan.table.rounded(), point_.get(), 1, rows_drawn_);
        },
        plan.regression);
    const auto points = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(plan.n, tile_points));
    std::nth_element(m.v, m.v + points / 2, m.v + points);
    centre_ = static_cast<double>(m.v[points / 2]);
  }

  std::size_t tiles() const { return tiles_; }
  /// Constant subtracted from the values, near them: what is left has the digits of float32.
  double centre() const { return centre_; }
  /// Projected keys of a tile for one head [k][tile_points].
  const float* keys(std::size_t tile, std::size_t head) const {
    return &keys_[(tile * heads_ + head) * k_ * tile_points];
  }
  /// Log of the prior on the keys of a tile for one head [tile_points], for laws that have one.
  const float* priors(std::size_t tile, std::size_t head) const {
    return &priors_[(tile * heads_ + head) * tile_points];
  }
  /// m(X_i), for the plain estimator plus e_i, less the centre [tile_points].
  const float* values(std::size_t tile) const { return &values_[tile * tile_points]; }
  /// s(X_i) [tile_points].
  const float* scales(std::size_t tile) const { return &scales_[tile * tile_points]; }

  void draw(std::uint64_t replicate) {
    for (std::size_t tile = 0; tile < tiles_; ++tile) {
      draw_points(replicate, tile);
      evaluate(replicate, tile);
      project(tile);
    }
    fill_up();
  }

  /// Draws the design points of one tile into point() [4 ceil(d/4)].
  HWY_ATTR void draw_points(std::uint64_t replicate, std::size_t tile) {
    const std::uint64_t seed = plan_.fixed_design_seed.value_or(plan_.seed);
    const std::uint64_t design = plan_.fixed_design_seed ? 0 : replicate;
    const std::uint64_t first = tile * tile_points;
    std::visit(
        [&](const auto& sampler) {
          using Sampler = std::decay_t<decltype(sampler)>;
          if constexpr (Sampler::base != BaseDraw::none) {
            draw_base(Sampler::base, seed, subsequence(plan_.streams.design, design), first);
          }
          const float* table = plan_.table.rounded();
          if constexpr (Sampler::chooses) {
            const std::uint64_t stream = subsequence(plan_.streams.design_choice, design);
            for (std::size_t lane = 0; lane < tile_points; ++lane) {
              const std::uint32_t word = philox(seed, stream, first + lane).w[0];
              rows_drawn_.v[lane] = sampler(table, word, &point_[0].v[lane], tile_points);
            }
          } else {
            sampler(table, 0, point_.get(), 1);
          }
        },
        plan_.design);
  }
  const Tile* point() const { return point_.get(); }

 private:
  HWY_ATTR void draw_base(BaseDraw base, std::uint64_t seed, std::uint64_t stream,
                          std::uint64_t first) {
    const auto quads = static_cast<std::uint64_t>(quads_per_point(plan_.d));
    for (std::uint64_t quad = 0; quad < quads; ++quad) {
      float* HWY_RESTRICT to = point_[4 * quad].v;
      if (base == BaseDraw::normal) {
        for (std::size_t lane = 0; lane < tile_points; ++lane) {
          const Words words = philox(seed, stream, (first + lane) * quads + quad);
          const NormalPair a = normal_pair(words.w[0], words.w[1]);
          const NormalPair b = normal_pair(words.w[2], words.w[3]);
          to[lane] = a.first;
          to[tile_points + lane] = a.second;
          to[2 * tile_points + lane] = b.first;
          to[3 * tile_points + lane] = b.second;
        }
      } else {
        for (std::size_t lane = 0; lane < tile_points; ++lane) {
          const Words words = philox(seed, stream, (first + lane) * quads + quad);
          for (std::size_t j = 0; j < 4; ++j) {
            to[j * tile_points + lane] = uniform_symmetric(words.w[j]);
          }
        }
      }
    }
  }

  /// Values and noise scales of the tile's points.
  HWY_ATTR void evaluate(std::uint64_t replicate, std::size_t tile) {
    const float* table = plan_.table.rounded();
    const Tile* x = point_.get();
    float* HWY_RESTRICT value = &values_[tile * tile_points];
    float* HWY_RESTRICT scale = &scales_[tile * tile_points];
    const auto centre = static_cast<float>(centre_);
    std::visit(
        [&](const auto& m) {
          const Tile regression = m(table, x, 1, rows_drawn_);
          for (std::size_t i = 0; i < tile_points; ++i) value[i] = regression.v[i] - centre;
        },
        plan_.regression);
    const bool draws_noise = plan_.estimator == Estimator::plain;
    const std::uint64_t stream = subsequence(plan_.streams.noise, replicate);
    std::visit(
        [&](const auto& noise) {
          const Tile sd = noise.scale(table, x, 1);
          std::copy_n(sd.v, tile_points, scale);
          if (!draws_noise) return;
          for (std::size_t lane = 0; lane < tile_points; ++lane) {
            const Words words = philox(plan_.seed, stream, tile * tile_points + lane);
            value[lane] = math::fused(scale[lane], noise.unit(words), value[lane]);
          }
        },
        plan_.noise);
  }

  /// keys = W^T x for all heads at once, several output coordinates a pass over x.
  HWY_ATTR void project(std::size_t tile) {
    const std::size_t outputs = heads_ * k_;
    std::size_t c = 0;
    for (; c + 4 <= outputs; c += 4) project_rows<4>(tile, c);
    for (; c < outputs; ++c) project_rows<1>(tile, c);
    if (!has_prior_) return;
    for (std::size_t h = 0; h < heads_; ++h) {
      float* HWY_RESTRICT prior = &priors_[(tile * heads_ + h) * tile_points];
      const float* key = keys(tile, h);
      for (std::size_t lane = 0; lane < tile_points; ++lane) {
        float norm2 = 0;
        for (std::size_t j = 0; j < k_; ++j) {
          norm2 = math::fused(key[j * tile_points + lane], key[j * tile_points + lane], norm2);
        }
        prior[lane] = norm2;
      }
      std::visit(
          [&](const auto& law) {
            if constexpr (std::decay_t<decltype(law)>::has_key_prior) {
              for (std::size_t i = 0; i < tile_points; ++i) prior[i] = law.log_prior(prior[i]);
            }
          },
          plan_.kernel);
    }
  }

  template <std::size_t Rows>
  HWY_ATTR HWY_INLINE void project_rows(std::size_t tile, std::size_t first) {
    constexpr std::size_t vectors = tile_points / lane_count;
    constexpr std::size_t per_pass = vectors < 2 ? vectors : 2;
    float* out = &keys_[(tile * heads_ * k_ + first) * tile_points];
    for (std::size_t part = 0; part < vectors; part += per_pass) {
      Float sum[Rows][per_pass];
      for (auto& row : sum) {
        for (Float& lanes : row) lanes = hn::Zero(float_tag);
      }
      for (std::size_t c = 0; c < d_; ++c) {
        const float* x = &point_[c].v[part * lane_count];
        for (std::size_t v = 0; v < per_pass; ++v) {
          const Float lanes = hn::Load(float_tag, x + v * lane_count);
          for (std::size_t r = 0; r < Rows; ++r) {
            const Float w = hn::Set(float_tag, rows_[(first + r) * d_ + c]);
            sum[r][v] = hn::MulAdd(w, lanes, sum[r][v]);
          }
        }
      }
      for (std::size_t r = 0; r < Rows; ++r) {
        for (std::size_t v = 0; v < per_pass; ++v) {
          hn::Store(sum[r][v], float_tag, out + r * tile_points + (part + v) * lane_count);
        }
      }
    }
  }

  /// Puts the points beyond n where they weigh nothing.
  void fill_up() {
    for (std::size_t i = static_cast<std::size_t>(plan_.n); i < tiles_ * tile_points; ++i) {
      const std::size_t tile = i / tile_points;
      const std::size_t lane = i % tile_points;
      for (std::size_t c = 0; c < heads_ * k_; ++c) {
        keys_[(tile * heads_ * k_ + c) * tile_points + lane] = far_away;
      }
      if (has_prior_) {
        for (std::size_t h = 0; h < heads_; ++h) {
          priors_[(tile * heads_ + h) * tile_points + lane] = 0;
        }
      }
      values_[i] = 0;
      scales_[i] = 0;
    }
  }

  using Buffer = hwy::AlignedFreeUniquePtr<float[]>;

  const Plan& plan_;
  std::size_t heads_;
  std::size_t k_;
  std::size_t d_;
  bool has_prior_;
  std::size_t tiles_;
  Buffer keys_;
  Buffer priors_;
  Buffer values_;
  Buffer scales_;
  hwy::AlignedFreeUniquePtr<Tile[]> point_;  ///< [4 ceil(d/4)]
  TileRows rows_drawn_ = {};
  std::vector<float> rows_;
  double centre_ = 0;
};
