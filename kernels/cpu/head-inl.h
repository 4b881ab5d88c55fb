// SPDX-License-Identifier: Apache-2.0
// A head at its queries: what is the same for every kernel law. head_of_law-inl.h computes
// exponents.
#if defined(HEADLAB_CPU_HEAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_HEAD_INL_H
#undef HEADLAB_CPU_HEAD_INL_H
#else
#define HEADLAB_CPU_HEAD_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include <hwy/highway.h>

#include "kernels/cpu/products-inl.h"
#include "kernels/cpu/sums-inl.h"
#include "kernels/cpu/training_set-inl.h"
#include "kernels/cpu/window-inl.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

inline constexpr double log2_e = 1.4426950408889634;

/// Exponents from here on need no clamp.
inline constexpr double min_plain_exponent = -124;

/// Exponents from inner products of queries and keys instead of distances have an error of eps
/// times this at most; they are taken where (|query| + product_reach)^2, in length scales, is below
/// it.
inline constexpr double max_product_norm = 64;
inline constexpr double product_reach = 3;
static_assert(max_product_norm / 2 * log2_e < static_cast<double>(max_plain_offset));

/// A panel of keys: consecutive tiles of a training set.
struct KeyPanel {
  const TrainingSet& set;
  std::size_t tile;  ///< the first
  std::size_t tiles;
  std::size_t points;  ///< without the padding of the last tile
  std::size_t index;   ///< in the segment

  /// The points up to whole vectors.
  std::size_t keys() const {
    constexpr std::size_t step = row_vectors * lane_count;
    return (points + step - 1) / step * step;
  }
  /// Number of its first key in the training set.
  std::uint64_t first_key() const { return set.first_point() + tile * tile_points; }
};

/// Keys of one subspace in tiles, as inner products and distances read them.
struct KeyTile {
  const float* keys;     ///< [tile][k][tile_points]
  const float* norms;    ///< |key|^2 [tile][tile_points]
  const float* spreads;  ///< added to squared distances [tile][tile_points], or null
};

/// How much of a panel a head sees.
enum class Sight { none, part, all };

/// The longest distance at which the exponent of a kernel needs no clamp; 0 for one that does not
/// depend on the distance alone.
inline double plain_reach(const headlab::KernelLaw& kernel) {
  if (std::visit([](const auto& law) { return law.has_key_prior; }, kernel)) return 0;
  const double scale = length_scale(kernel);
  double reach = 0;
  double beyond = 1e9 * scale;
  for (int step = 0; step < 100; ++step) {
    const double middle = (reach + beyond) / 2;
    const double exponent = std::visit(
                                [&](const auto& law) {
                                  return law.log_weight(middle * middle * (1 / (scale * scale)));
                                },
                                kernel) *
                            log2_e;
    (exponent >= min_plain_exponent ? reach : beyond) = middle;
  }
  return reach;
}

/// A distinct head of the conditions of a sweep.
class Head {
 public:
  /// Head `head` of `plan`, with the keys of `subspace` and plain_reach() of its kernel.
  Head(std::size_t subspace, const Plan& plan, int head, double reach)
      : subspace_(subspace),
        seen_(plan.mechanism.seen_by(head, plan.n)),
        sees_all_(plan.mechanism.seen.empty()),
        keep_(plan.mechanism.keep.of_head(head)),
        shares_with_(plan.mechanism.keep.shared ? &plan : nullptr),
        kernel_(*plan.kernel),
        has_key_prior_(std::visit([](const auto& law) { return law.has_key_prior; }, kernel_)),
        unit_(1 / (length_scale(kernel_) * length_scale(kernel_))),
        k_(static_cast<std::size_t>(plan.k)),
        products_(has_key_prior_),
        reach_(reach) {
    const double* w = plan.query_projection(head);
    const auto d = static_cast<std::size_t>(plan.d);
    const auto count = static_cast<std::size_t>(plan.queries);
    queries_.reserve(count * k_);
    scaled_.reserve(count * k_);
    double largest = 0;
    std::vector<double> sums(count * k_);
    project_queries(plan.query_points.data(), count, d, w, k_, sums.data());
    for (std::size_t q = 0; q < count; ++q) {
      double norm2 = 0;
      for (const double sum : std::span(sums).subspan(q * k_, k_)) {
        queries_.push_back(static_cast<float>(sum));
        scaled_.push_back(static_cast<float>(sum * unit_ * log2_e));
        norm2 += sum * sum;
      }
      largest = std::max(largest, norm2);
    }
    if (norm_coefficient_of(kernel_)) {
      const double far = std::sqrt(largest * unit_) + product_reach;
      products_ = has_key_prior_ || far * far <= max_product_norm;
      factor_ = static_cast<float>(-0.5 * unit_ * log2_e);
    }
    packed_.resize(queries_.size());
  }
  virtual ~Head() = default;

  /// True for the same keys, kernel, queries and stages.
  bool is(const Head& other) const {
    return subspace_ == other.subspace_ && kernel_.index() == other.kernel_.index() &&
           queries_ == other.queries_ && seen_ == other.seen_ && keep_ == other.keep_ &&
           shares_with_ == other.shares_with_ &&
           std::visit(
               [&]<class Law>(const Law& law) {
                 return std::memcmp(&law, std::get_if<Law>(&other.kernel_), sizeof law) == 0;
               },
               kernel_);
  }
  std::size_t subspace() const { return subspace_; }
  std::size_t k() const { return k_; }
  /// The rule of stage `keep` for this head alone.
  const HeadKeep& keep() const { return keep_; }
  const SeenTokens& seen() const { return seen_; }
  bool sees_all() const { return sees_all_; }
  /// How much of a panel the head sees.
  Sight sight(const KeyPanel& panel) const {
    if (sees_all_) return Sight::all;
    const std::uint64_t first = panel.first_key();
    const std::uint64_t end = first + panel.points;
    const auto within = [&](std::uint64_t from, std::uint64_t to) {
      return std::min(end, to) - std::min(std::max(first, from), std::min(end, to));
    };
    const std::uint64_t count = within(0, seen_.sinks) + within(seen_.begin, seen_.end);
    return count == 0 ? Sight::none : count == panel.points ? Sight::all : Sight::part;
  }
  /// A query, projected [k].
  const float* query(std::size_t q) const { return &queries_[q * k_]; }

  /// Prepares queries q .. q + Rows - 1 to be a group.
  template <std::size_t Rows>
  void pack(std::size_t q) {
    pack_rows<Rows>((products_ ? scaled_ : queries_).data(), k_, q, packed_.data());
  }

  /// Sets what is known of the window at query q before any key is seen.
  void place(std::size_t q, Window& window) const {
    double norm2 = 0;
    for (std::size_t j = 0; j < k_; ++j) {
      const double x = static_cast<double>(query(q)[j]);
      norm2 += x * x;
    }
    const double norm = std::sqrt(norm2);
    if (has_key_prior_) {
      window.norm = static_cast<float>(norm * unit_ * log2_e);
    } else {
      const double left = reach_ - norm;
      window.reach2 = left > 0 ? static_cast<float>(left * left) : -1.0f;
      window.query_exponent = products_ ? -0.5 * norm2 * unit_ * log2_e : 0;
      window.set_exponent_offset(static_cast<float>(std::round(window.query_exponent)));
    }
  }

  /// Exponents to base 2, less the offset of the window, of a query or the group of `rows` queries
  /// that begins at q: row r [panel.tiles * tile_points] at out + r stride. The padding, and tokens
  /// that the head does not see, have zero weight.
  void exponents(const KeyPanel& panel, std::size_t q, std::size_t rows, float* out,
                 std::size_t stride) const {
    fill(panel, q, rows, out, stride);
    for (std::size_t r = 0; r < rows; ++r) pad(panel, out + r * stride);
  }
  /// Exponents of one query without offset, from distances where the law is evaluated at them.
  void plain_exponents(const KeyPanel& panel, std::size_t q, float* out) const {
    fill_plain(panel, q, out);
    pad(panel, out);
  }
  /// Exponents of one query at a tile of mean keys, less the offset of the window.
  virtual void mean_exponents(const KeyTile& tile, std::size_t q, float* out) const = 0;
#if HWY_TARGET <= HWY_AVX3
  /// Adds the weights of queries q .. q + fused_rows - 1 to `rows`, exponents staying in registers.
  virtual void weigh(const KeyPanel& panel, std::size_t q, const WeightRow (&rows)[fused_rows],
                     bool squares) const = 0;
#endif

 protected:
  virtual void fill(const KeyPanel& panel, std::size_t q, std::size_t rows, float* out,
                    std::size_t stride) const = 0;
  virtual void fill_plain(const KeyPanel& panel, std::size_t q, float* out) const = 0;

  /// Coefficients of a query, or of the group that begins at q, for inner products or distances.
  template <std::size_t Rows>
  PackedRows<Rows> coefficients(std::size_t q, bool products) const {
    return {&(Rows > 1 ? packed_ : products ? scaled_ : queries_)[q * k_]};
  }
  double unit() const {
    return unit_;
  }
  bool products() const {
    return products_;
  }
  float factor() const {
    return factor_;
  }

 private:
  /// sums [q][k] = W^T x_q of `count` queries x [q][d] for W [d][k]; a few coordinates at a time,
  /// of few coordinates a few queries, which stay in registers.
  static void project_queries(const double* x, std::size_t count, std::size_t d, const double* w,
                              std::size_t k, double* sums) {
    const auto project = [&]<std::size_t Queries, std::size_t Count>(std::size_t q,
                                                                     std::size_t first) {
      double sum[Queries][Count] = {};
      for (std::size_t c = 0; c < d; ++c) {
        for (std::size_t i = 0; i < Queries; ++i) {
          const double coordinate = x[(q + i) * d + c];
          for (std::size_t j = 0; j < Count; ++j) sum[i][j] += w[c * k + first + j] * coordinate;
        }
      }
      for (std::size_t i = 0; i < Queries; ++i)
        std::copy_n(sum[i], Count, &sums[(q + i) * k + first]);
    };
    std::size_t first = 0;
    const auto advance = [&]<std::size_t Queries, std::size_t Count>() {
      for (; first + Count <= k; first += Count) {
        std::size_t q = 0;
        for (; q + Queries <= count; q += Queries) {
          project.template operator()<Queries, Count>(q, first);
        }
        for (; q < count; ++q) project.template operator()<1, Count>(q, first);
      }
    };
    advance.template operator()<1, 32>();
    advance.template operator()<1, 8>();
    advance.template operator()<2, 4>();
    advance.template operator()<4, 2>();
    advance.template operator()<8, 1>();
  }

  void pad(const KeyPanel& panel, float* row) const {
    std::fill(row + panel.points, row + panel.tiles * tile_points, never);
    if (sees_all_) return;
    const std::uint64_t first = panel.first_key();
    const auto hide = [&](std::uint64_t from, std::uint64_t to) {
      const std::uint64_t begin = std::clamp(from, first, first + panel.points) - first;
      const std::uint64_t end = std::clamp(to, first, first + panel.points) - first;
      if (begin < end) std::fill(row + begin, row + end, never);
    };
    hide(seen_.sinks, seen_.begin);
    hide(seen_.end, std::numeric_limits<std::uint64_t>::max());
  }
  std::size_t subspace_;
  SeenTokens seen_;
  bool sees_all_;
  HeadKeep keep_;
  const Plan* shares_with_;  ///< the plan whose heads keep one set of tokens, or null
  headlab::KernelLaw kernel_;
  bool has_key_prior_;
  double unit_;  ///< 1 / length scale^2
  std::size_t k_;
  bool products_;               ///< exponents come from inner products rather than from distances
  double reach_;                ///< see plain_reach()
  float factor_ = 0;            ///< of r^2 in the exponent, where that is linear in it
  std::vector<float> queries_;  ///< [Q][k], projected
  std::vector<float> scaled_;   ///< [Q][k], for inner products
  std::vector<float> packed_;   ///< [Q][k], of these or those by groups
};

/// Head `head` of a plan, with the keys of `subspace` and plain_reach() of its kernel (heads.cpp).
std::unique_ptr<Head> make_head(std::size_t subspace, const Plan& plan, int head, double reach);

using Heads = std::vector<std::unique_ptr<Head>>;

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
