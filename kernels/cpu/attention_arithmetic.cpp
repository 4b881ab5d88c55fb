// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_arithmetic.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "kernels/cpu/lane_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

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

/// Products of `Rows` rows of at most 64 vectors with `Others` others, and absolute differences.
template <std::size_t Rows, std::size_t Others, class T>
HWY_INLINE void compare_block(const T* rows, const T* others, std::size_t stride, std::size_t n,
                              std::size_t heads, double* products, double* differences) {
  constexpr Tag<T> tag;
  constexpr std::size_t lanes = lanes_of<T>;
  Lanes<T> product[Rows][Others], difference[Rows][Others];
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t o = 0; o < Others; ++o) product[r][o] = difference[r][o] = hn::Zero(tag);
  }
  for (std::size_t i = 0; i < n; i += lanes) {
    const std::size_t count = std::min(lanes, n - i);
    Lanes<T> other[Others];
    for (std::size_t o = 0; o < Others; ++o) other[o] = load_some(others + o * stride + i, count);
    for (std::size_t r = 0; r < Rows; ++r) {
      const Lanes<T> own = load_some(rows + r * stride + i, count);
      for (std::size_t o = 0; o < Others; ++o) {
        product[r][o] = hn::MulAdd(own, other[o], product[r][o]);
        difference[r][o] = hn::Add(difference[r][o], hn::Abs(hn::Sub(own, other[o])));
      }
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t o = 0; o < Others; ++o) {
      const auto sum = [&](Lanes<T> part) HWY_ATTR {
        return static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, part)));
      };
      products[r * heads + o] += sum(product[r][o]);
      differences[r * heads + o] += sum(difference[r][o]);
    }
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
  HWY_ATTR void lay_out(In b, Panels<T>& to) const override {
    prepare(b.rows, b.columns, to);
    for (std::size_t j = 0; j < b.columns; j += to.width) {
      fill_panel(b.data + j, b.stride, std::min(to.width, b.columns - j), b.rows,
                 to.numbers.get() + j * b.rows);
    }
  }
  HWY_ATTR void lay_out_transposed(In b, Panels<T>& to) const override {
    prepare(b.columns, b.rows, to);
    for (std::size_t j = 0; j < b.rows; j += to.width) {
      for (std::size_t k = 0; k < b.columns; k += depth_of_block) {
        fill_panel_transposed(b.row(j) + k, b.stride, std::min(to.width, b.rows - j),
                              std::min(depth_of_block, b.columns - k),
                              to.numbers.get() + j * b.columns + k * to.width);
      }
    }
  }
  HWY_ATTR void product(In a, PanelPart<T> b, LaneRows<T> out) const override {
    any_product(by_rows(a), b, out);
  }
  HWY_ATTR void product_in_double(In a, PanelPart<T> b, LaneRows<double> out) const override {
    any_product(by_rows(a), b, out);
  }
  HWY_ATTR void product_of_columns(In a, PanelPart<T> b, LaneRows<double> out) const override {
    any_product(by_columns(a), b, out);
  }
  HWY_ATTR void distances(In a, PanelPart<T> b, LaneRows<T> out) const override {
    any_product(by_rows(a), b, out, DistanceTerm{});
  }
  HWY_ATTR void add_product_of_columns(In a, In b, LaneRows<T> out) const override {
    any_product(by_columns(a), b, out, panel(), true);
  }
  HWY_ATTR void product_of_columns(In a, In b, LaneRows<double> out) const override {
    any_product(by_columns(a), b, out, panel());
  }
  /// Part after part of all rows, so that they are in the cache for all pairs.
  HWY_ATTR void compare_rows(In a, double* products, double* differences) const override {
    constexpr std::size_t part = 64 * lanes_of<T>, at_once = 2, others_at_once = 2;
    std::fill_n(products, a.rows * a.rows, 0.0);
    std::fill_n(differences, a.rows * a.rows, 0.0);
    for (std::size_t begin = 0; begin < a.columns; begin += part) {
      const std::size_t n = std::min(part, a.columns - begin);
      for (std::size_t h = 0; h < a.rows; h += at_once) {
        for (std::size_t l = 0; l <= h; l += others_at_once) {
          const std::size_t rows = std::min(at_once, a.rows - h),
                            others = std::min(others_at_once, a.rows - l), at = h * a.rows + l;
          with_rows<at_once>(rows, [&]<std::size_t Rows>() HWY_ATTR {
            with_rows<others_at_once>(others, [&]<std::size_t Others>() HWY_ATTR {
              compare_block<Rows, Others>(a.row(h) + begin, a.row(l) + begin, a.stride, n, a.rows,
                                          products + at, differences + at);
            });
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
