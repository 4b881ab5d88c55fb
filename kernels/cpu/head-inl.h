// SPDX-License-Identifier: Apache-2.0
// A head at its queries, and the exponents of its weights. Included once per SIMD target, after
// kernels/cpu/condition-inl.h.

inline constexpr double log2_e = 1.4426950408889634;

/// Exponents from here on need no clamp.
inline constexpr double min_plain_exponent = -124;

/// Inner products of queries and keys in place of distances cost an exponent no more than eps times
/// this, which is where (|query| + reach)^2, in length scales, may not be above it.
inline constexpr double largest_product_norm = 64;
inline constexpr double product_reach = 3;
static_assert(largest_product_norm / 2 * log2_e < static_cast<double>(largest_plain_whole));

/// Keys that are worked on together.
struct Strip {
  const TrainingSet& set;
  std::size_t tile;  ///< the first
  std::size_t tiles;
  std::size_t points;  ///< that there are
  std::size_t index;   ///< in the block

  /// Whole vectors that hold them.
  std::size_t keys() const {
    constexpr std::size_t step = row_vectors * lane_count;
    return (points + step - 1) / step * step;
  }
};

/// A distinct head of the conditions of a sweep.
template <class Law>
class Head {
 public:
  /// Of the keys of `subspace`, at the queries of `plan`, which w [d][k] projects.
  Head(std::size_t subspace, const Law& law, const Plan& plan, const double* w)
      : subspace_(subspace),
        law_(law),
        unit_(1 / (law.length_scale() * law.length_scale())),
        k_(static_cast<std::size_t>(plan.k)),
        products_(softmax) {
    const auto d = static_cast<std::size_t>(plan.d);
    const auto count = static_cast<std::size_t>(plan.queries);
    queries_.reserve(count * k_);
    scaled_.reserve(count * k_);
    double largest = 0;
    for (std::size_t q = 0; q < count; ++q) {
      double norm2 = 0;
      for (std::size_t j = 0; j < k_; ++j) {
        double sum = 0;
        for (std::size_t c = 0; c < d; ++c) sum += w[c * k_ + j] * plan.query_points[q * d + c];
        queries_.push_back(static_cast<float>(sum));
        scaled_.push_back(static_cast<float>(sum * unit_ * log2_e));
        norm2 += sum * sum;
      }
      largest = std::max(largest, norm2);
    }
    if constexpr (linear) {
      const double far = std::sqrt(largest * unit_) + product_reach;
      products_ = softmax || far * far <= largest_product_norm;
      factor_ = static_cast<float>(-0.5 * unit_ * log2_e);
    }
    if constexpr (!softmax) {
      double beyond = 1e9 * law_.length_scale();
      for (int step = 0; step < 100; ++step) {
        const double middle = (reach_ + beyond) / 2;
        const double exponent = law_.log_weight(middle * middle * unit_) * log2_e;
        (exponent >= min_plain_exponent ? reach_ : beyond) = middle;
      }
    }
    panels_.resize(queries_.size());
  }

  bool is(const Head& other) const {
    return subspace_ == other.subspace_ && std::memcmp(&law_, &other.law_, sizeof law_) == 0 &&
           queries_ == other.queries_;
  }
  std::size_t subspace() const { return subspace_; }
  /// Exponents come from inner products rather than from distances.
  bool products() const { return products_; }
  /// A query, projected [k].
  const float* query(std::size_t q) const { return &queries_[q * k_]; }

  /// Queries q .. q + Rows - 1 will be met together.
  template <std::size_t Rows>
  void pack(std::size_t q) {
    pack_panel<Rows>((products_ ? scaled_ : queries_).data(), k_, q, panels_.data());
  }

  /// What is known of its window at query q before any key is seen.
  void place(std::size_t q, Window& at) const {
    double norm2 = 0;
    for (std::size_t j = 0; j < k_; ++j) {
      const double x = static_cast<double>(query(q)[j]);
      norm2 += x * x;
    }
    const double norm = std::sqrt(norm2);
    if constexpr (softmax) {
      at.norm = static_cast<float>(norm * unit_ * log2_e);
    } else {
      const double left = reach_ - norm;
      at.reach2 = left > 0 ? static_cast<float>(left * left) : -1.0f;
      at.set_whole(products_ ? static_cast<float>(-std::round(0.5 * norm2 * unit_ * log2_e)) : 0);
    }
  }

  /// take(r, key, exponents) of Rows queries from q on to all keys of `tiles` tiles of a strip,
  /// `Vectors` vectors at a time; from inner products or not.
  template <std::size_t Rows, std::size_t Vectors, class Take>
  HWY_ATTR HWY_INLINE void exponents(const Strip& strip, std::size_t tile, std::size_t tiles,
                                     std::size_t q, bool products, const Take& take) const {
    const auto& coefficients = Rows > 1 ? panels_ : products ? scaled_ : queries_;
    const Panel<Rows> queries{&coefficients[q * k_]};
    const float* keys = strip.set.keys(strip.tile + tile, subspace_);
    if (products) {
      const float* norms = softmax ? nullptr : strip.set.norms(strip.tile + tile, subspace_);
      multiply_vectors<Rows, Vectors, false>(keys, tiles, k_, queries, norms, factor_, take);
      return;
    }
    Float factor = hn::Zero(float_tag);
    if constexpr (linear) factor = hn::Set(float_tag, factor_);
    const Float unit = hn::Set(float_tag, static_cast<float>(unit_));
    const Float to_base_2 = hn::Set(float_tag, static_cast<float>(log2_e));
    multiply_vectors<Rows, Vectors, true>(
        keys, tiles, k_, queries, nullptr, 0,
        [&](std::size_t r, std::size_t at, Float(&t)[Vectors]) HWY_ATTR
        __attribute__((always_inline)) {
          for (std::size_t v = 0; v < Vectors; ++v) {
            if constexpr (linear) {
              t[v] = hn::Mul(t[v], factor);
            } else {
              t[v] = hn::Mul(law_.log_weight(Lanes(hn::Mul(t[v], unit))).v, to_base_2);
            }
          }
          take(r, at, t);
        });
  }

 private:
  static constexpr bool linear = requires { Law::norm_coefficient; };
  static constexpr bool softmax = Law::has_key_prior;

  std::size_t subspace_;
  Law law_;
  double unit_;  ///< 1 / length scale^2
  std::size_t k_;
  bool products_;
  double reach_ = 0;            ///< the longest distance at which an exponent needs no clamp
  float factor_ = 0;            ///< of r^2 in the exponent, where that is linear in it
  std::vector<float> queries_;  ///< [Q][k], projected
  std::vector<float> scaled_;   ///< [Q][k], for inner products
  std::vector<float> panels_;   ///< of these or those, as pack() was told
};
