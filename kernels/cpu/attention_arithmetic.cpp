// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_arithmetic.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Lanes = hn::Vec<Tag<T>>;
template <class T>
constexpr std::size_t lanes_of = hn::MaxLanes(Tag<T>());

/// Terms of a sum that are added in lanes before the sum goes on in double.
constexpr std::size_t depth_of_block = 256;
/// Rows of sums held in registers, two vectors each.
constexpr std::size_t max_rows = HWY_TARGET <= HWY_AVX3 ? 12 : HWY_TARGET <= HWY_AVX2 ? 6 : 4;

// ---- Products ----

/// Terms a b of a sum.
struct ProductTerm {
  template <class V>
  HWY_INLINE V operator()(V a, V b, V sum) const {
    return hn::MulAdd(a, b, sum);
  }
};
/// Terms (a - b)^2.
struct DistanceTerm {
  template <class V>
  HWY_INLINE V operator()(V a, V b, V sum) const {
    const V difference = hn::Sub(a, b);
    return hn::MulAdd(difference, difference, sum);
  }
};

/// Where a number of the left factor lies, from row to row and from term to term of a sum.
struct Strides {
  std::size_t row = 0, term = 1;
};

/// sums[r][c] = sum_k term(a(r, k), panel[k][c]), two vectors of columns.
template <std::size_t Rows, class T, class Term>
HWY_INLINE void sum_block(const T* a, Strides strides, std::size_t depth, const T* panel, T* sums,
                          const Term& term) {
  constexpr Tag<T> tag;
  constexpr std::size_t lanes = lanes_of<T>;
  Lanes<T> left[Rows], right[Rows];
  for (std::size_t r = 0; r < Rows; ++r) left[r] = right[r] = hn::Zero(tag);
  for (std::size_t k = 0; k < depth; ++k) {
    const Lanes<T> b0 = hn::Load(tag, panel + 2 * k * lanes);
    const Lanes<T> b1 = hn::Load(tag, panel + (2 * k + 1) * lanes);
    for (std::size_t r = 0; r < Rows; ++r) {
      const Lanes<T> factor = hn::Set(tag, a[r * strides.row + k * strides.term]);
      left[r] = term(factor, b0, left[r]);
      right[r] = term(factor, b1, right[r]);
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) {
    hn::Store(left[r], tag, sums + 2 * r * lanes);
    hn::Store(right[r], tag, sums + (2 * r + 1) * lanes);
  }
}

/// Calls body.operator()<rows>() for 1 <= rows <= Max.
template <std::size_t Max, class Body>
HWY_INLINE void with_rows(std::size_t rows, const Body& body) {
  if constexpr (Max > 1) {
    if (rows < Max) return with_rows<Max - 1>(rows, body);
  }
  body.template operator()<Max>();
}

/// The left factor [rows][columns], which may lie by columns.
template <class T>
struct LeftFactor {
  const T* data = nullptr;
  std::size_t rows = 0, columns = 0;
  Strides strides = {};
};
template <class T>
HWY_INLINE LeftFactor<T> by_rows(LaneRows<const T> a) {
  return {a.data, a.rows, a.columns, Strides{a.stride, 1}};
}
template <class T>
HWY_INLINE LeftFactor<T> by_columns(LaneRows<const T> a) {
  return {a.data, a.columns, a.rows, Strides{1, a.stride}};
}

/// \param panel [256][2 vectors] and sums [max_rows][2 vectors], to work in
/// \param fill fill(j, columns, k, depth) copies that part of the right factor into the panel
/// \param add to what stands in `out`
template <class T, class Out, class Fill, class Term = ProductTerm>
HWY_INLINE void product_by_panels(const LeftFactor<T>& a, std::size_t columns, LaneRows<Out> out,
                                  const T* panel, const Fill& fill, const Term& term = {},
                                  bool add = false) {
  constexpr std::size_t width = 2 * lanes_of<T>;
  HWY_ALIGN T sums[max_rows * width];
  for (std::size_t j = 0; j < columns; j += width) {
    const std::size_t some = std::min(width, columns - j);
    for (std::size_t k = 0; k < a.columns || k == 0; k += depth_of_block) {
      const std::size_t depth = std::min(depth_of_block, a.columns - k);
      fill(j, some, k, depth);
      for (std::size_t i = 0; i < a.rows; i += max_rows) {
        const std::size_t rows = std::min(max_rows, a.rows - i);
        with_rows<max_rows>(rows, [&]<std::size_t Rows>() HWY_ATTR {
          sum_block<Rows>(a.data + i * a.strides.row + k * a.strides.term, a.strides, depth, panel,
                          sums, term);
        });
        for (std::size_t r = 0; r < rows; ++r) {
          Out* to = out.row(i + r) + j;
          const T* from = sums + r * width;
          for (std::size_t c = 0; c < some; ++c) {
            to[c] = k == 0 && !add ? static_cast<Out>(from[c]) : to[c] + static_cast<Out>(from[c]);
          }
        }
      }
    }
  }
}

template <class T, class Out, class Term = ProductTerm>
HWY_INLINE void any_product(const LeftFactor<T>& a, LaneRows<const T> b, LaneRows<Out> out,
                            T* panel, const Term& term = {}, bool add = false) {
  constexpr std::size_t width = 2 * lanes_of<T>;
  product_by_panels(
      a, b.columns, out, panel,
      [&](std::size_t j, std::size_t columns, std::size_t k, std::size_t depth) HWY_ATTR {
        constexpr Tag<T> tag;
        constexpr std::size_t lanes = lanes_of<T>;
        for (std::size_t i = 0; i < depth; ++i) {
          const T* from = b.row(k + i) + j;
          T* to = panel + i * width;
          if (columns == width) {
            hn::Store(hn::LoadU(tag, from), tag, to);
            hn::Store(hn::LoadU(tag, from + lanes), tag, to + lanes);
          } else {
            std::copy_n(from, columns, to);
            std::fill_n(to + columns, width - columns, T(0));
          }
        }
      },
      term, add);
}

// ---- Rows ----

/// The sum of term(i, count) over vectors of a row of n, in double every 16 vectors.
template <class T, class Term>
HWY_INLINE double sum_of_row(std::size_t n, const Term& term) {
  constexpr Tag<T> tag;
  constexpr std::size_t lanes = lanes_of<T>;
  double sum = 0;
  for (std::size_t begin = 0; begin < n; begin += 16 * lanes) {
    Lanes<T> part = hn::Zero(tag);
    const std::size_t end = std::min(n, begin + 16 * lanes);
    for (std::size_t i = begin; i < end; i += lanes) {
      part = hn::Add(part, term(i, std::min(lanes, end - i)));
    }
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, part)));
  }
  return sum;
}

/// The first `count` >= 1 numbers at p, 0 behind them.
template <class T>
HWY_INLINE Lanes<T> load_some(const T* p, std::size_t count) {
  constexpr Tag<T> tag;
  return count == lanes_of<T> ? hn::LoadU(tag, p) : hn::MaskedLoad(hn::FirstN(tag, count), tag, p);
}
template <class T>
HWY_INLINE void store_some(Lanes<T> x, T* p, std::size_t count) {
  constexpr Tag<T> tag;
  if (count == lanes_of<T>) {
    hn::StoreU(x, tag, p);
  } else {
    hn::BlendedStore(x, hn::FirstN(tag, count), tag, p);
  }
}

/// Differences of a row from `Rows` others, of at most 64 vectors.
template <std::size_t Rows, class T>
HWY_INLINE void add_differences(const T* row, const T* others, std::size_t stride, std::size_t n,
                                double* sums) {
  constexpr Tag<T> tag;
  constexpr std::size_t lanes = lanes_of<T>;
  Lanes<T> parts[Rows];
  for (std::size_t r = 0; r < Rows; ++r) parts[r] = hn::Zero(tag);
  for (std::size_t i = 0; i < n; i += lanes) {
    const std::size_t count = std::min(lanes, n - i);
    const Lanes<T> own = load_some(row + i, count);
    for (std::size_t r = 0; r < Rows; ++r) {
      const Lanes<T> other = load_some(others + r * stride + i, count);
      parts[r] = hn::Add(parts[r], hn::Abs(hn::Sub(own, other)));
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) {
    sums[r] += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, parts[r])));
  }
}

template <class T>
class Arithmetic final : public LaneArithmetic<T> {
  using In = LaneRows<const T>;
  using LaneArithmetic<T>::panel;

 public:
  HWY_ATTR void product(In a, In b, LaneRows<T> out) const override {
    any_product(by_rows(a), b, out, panel());
  }
  HWY_ATTR void product_in_double(In a, In b, LaneRows<double> out) const override {
    any_product(by_rows(a), b, out, panel());
  }
  HWY_ATTR void distances(In a, In b, LaneRows<T> out) const override {
    any_product(by_rows(a), b, out, panel(), DistanceTerm{});
  }
  HWY_ATTR void add_product_of_columns(In a, In b, LaneRows<T> out) const override {
    any_product(by_columns(a), b, out, panel(), ProductTerm{}, true);
  }
  HWY_ATTR void product_of_columns(In a, In b, LaneRows<double> out) const override {
    any_product(by_columns(a), b, out, panel());
  }
  HWY_ATTR void product_transposed(In a, In b, LaneRows<double> out) const override {
    T* const columns_of_b = panel();
    constexpr std::size_t width = 2 * lanes_of<T>;
    product_by_panels(
        by_rows(a), b.rows, out, columns_of_b,
        [&](std::size_t j, std::size_t columns, std::size_t k, std::size_t depth) HWY_ATTR {
          for (std::size_t c = 0; c < width; ++c) {
            for (std::size_t i = 0; i < depth; ++i) {
              columns_of_b[i * width + c] = c < columns ? b.row(j + c)[k + i] : T(0);
            }
          }
        });
  }
  /// Part after part of all rows, so that they are in the cache for all pairs.
  HWY_ATTR void absolute_differences(In a, double* sums) const override {
    constexpr std::size_t part = 64 * lanes_of<T>, at_once = 4;
    std::fill_n(sums, a.rows * a.rows, 0.0);
    for (std::size_t begin = 0; begin < a.columns; begin += part) {
      const std::size_t n = std::min(part, a.columns - begin);
      for (std::size_t h = 1; h < a.rows; ++h) {
        for (std::size_t l = 0; l < h; l += at_once) {
          with_rows<at_once>(std::min(at_once, h - l), [&]<std::size_t Rows>() HWY_ATTR {
            add_differences<Rows>(a.row(h) + begin, a.row(l) + begin, a.stride, n,
                                  sums + h * a.rows + l);
          });
        }
      }
    }
  }
  HWY_ATTR double softmax(const SoftmaxRow<T>& row, T* x, std::size_t n) const override {
    constexpr Tag<T> tag;
    constexpr std::size_t lanes = lanes_of<T>;
    const auto number = [&](double value) HWY_ATTR { return hn::Set(tag, static_cast<T>(value)); };
    const double to_cap = row.softcap > 0 ? row.scale / row.softcap : row.scale;
    constexpr T none = std::numeric_limits<T>::lowest();
    Lanes<T> largest = hn::Set(tag, none);
    for (std::size_t i = 0; i < n; i += lanes) {
      const std::size_t count = std::min(lanes, n - i);
      Lanes<T> u = hn::Mul(load_some(x + i, count), number(to_cap));
      if (row.softcap > 0) u = hn::Mul(hn::Tanh(tag, u), number(row.softcap));
      if (row.slope != 0) {
        const Lanes<T> at = hn::Iota(tag, static_cast<T>(row.first + static_cast<double>(i)));
        u = hn::MulAdd(number(row.slope), at, u);
      }
      if (row.bias != nullptr) u = hn::Add(u, load_some(row.bias + i, count));
      if (row.unseen != nullptr) {
        HWY_ALIGN T seen[lanes_of<T>];
        hn::Store(u, tag, seen);
        for (std::size_t j = 0; j < count; ++j) {
          if (row.unseen[i + j] != 0) seen[j] = none;
        }
        u = hn::Load(tag, seen);
      }
      store_some(u, x + i, count);
      // Not of NaN, which stays in the sum.
      largest = hn::IfThenElse(hn::And(hn::FirstN(tag, count), hn::Gt(u, largest)), u, largest);
    }
    double most =
        std::max(row.lowest, static_cast<double>(hn::GetLane(hn::MaxOfLanes(tag, largest))));
    if (!(most > row.lowest)) {
      std::fill_n(x, n, T(0));
      return -std::numeric_limits<double>::infinity();
    }
    if (row.has_sink) most = std::max(most, row.sink);
    // Differences that are far below 0 are taken to -1000, whose exponential is 0 in both types.
    double sum = sum_of_row<T>(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      const Lanes<T> from = hn::Max(hn::Sub(load_some(x + i, count), number(most)), number(-1000));
      const Lanes<T> e = hn::IfThenElseZero(hn::FirstN(tag, count), hn::Exp(tag, from));
      store_some(e, x + i, count);
      return e;
    });
    if (row.has_sink) sum += std::exp(row.sink - most);
    for (std::size_t i = 0; i < n; i += lanes) {
      const std::size_t count = std::min(lanes, n - i);
      store_some(hn::Div(load_some(x + i, count), number(sum)), x + i, count);
    }
    return most + std::log(sum);
  }
  HWY_ATTR double softmax_slopes(const T* weights, T* slopes, std::size_t n,
                                 double by_log_sum) const override {
    constexpr Tag<T> tag;
    constexpr std::size_t lanes = lanes_of<T>;
    const double mean = sum_of_row<T>(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      return hn::Mul(load_some(weights + i, count), load_some(slopes + i, count));
    });
    const double from_mean = mean - by_log_sum;
    const Lanes<T> centre = hn::Set(tag, static_cast<T>(from_mean));
    for (std::size_t i = 0; i < n; i += lanes) {
      const std::size_t count = std::min(lanes, n - i);
      const Lanes<T> from = hn::Sub(load_some(slopes + i, count), centre);
      store_some(hn::Mul(load_some(weights + i, count), from), slopes + i, count);
    }
    return from_mean;
  }
  HWY_ATTR double cap_slopes(double scale, double softcap, const T* x, T* slopes,
                             std::size_t n) const override {
    constexpr Tag<T> tag;
    const Lanes<T> factor = hn::Set(tag, static_cast<T>(scale / softcap));
    return sum_of_row<T>(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      const Lanes<T> u = hn::Mul(load_some(x + i, count), factor);
      const Lanes<T> share = hn::Tanh(tag, u);
      const Lanes<T> steepness = hn::NegMulAdd(share, share, hn::Set(tag, T(1)));
      const Lanes<T> slope = load_some(slopes + i, count);
      store_some(hn::Mul(slope, steepness), slopes + i, count);
      return hn::Mul(slope, hn::NegMulAdd(u, steepness, share));
    });
  }
};

const LaneArithmetic<float>& of_floats() {
  static const Arithmetic<float> arithmetic;
  return arithmetic;
}
const LaneArithmetic<double>& of_doubles() {
  static const Arithmetic<double> arithmetic;
  return arithmetic;
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab {
namespace {

HWY_EXPORT(of_floats);
HWY_EXPORT(of_doubles);

}  // namespace

template <class T>
T* LaneArithmetic<T>::panel() {
  constexpr std::size_t bytes_of_two_vectors = 128, blocks = 256;
  alignas(64) static thread_local T numbers[blocks * bytes_of_two_vectors / sizeof(T)];
  return numbers;
}
template class LaneArithmetic<float>;
template class LaneArithmetic<double>;

template <>
const LaneArithmetic<float>& lane_arithmetic() {
  return HWY_DYNAMIC_DISPATCH(of_floats)();
}
template <>
const LaneArithmetic<double>& lane_arithmetic() {
  return HWY_DYNAMIC_DISPATCH(of_doubles)();
}

}  // namespace headlab
#endif  // HWY_ONCE
