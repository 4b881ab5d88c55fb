// SPDX-License-Identifier: Apache-2.0
// Products of matrices in lanes of float or double, with right factors in panels.
#if defined(HEADLAB_CPU_LANE_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_LANE_PRODUCTS_INL_H
#undef HEADLAB_CPU_LANE_PRODUCTS_INL_H
#else
#define HEADLAB_CPU_LANE_PRODUCTS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <new>

#include <hwy/highway.h>

#include "kernels/cpu/lane_rows.h"

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

/// Puts a row of sums where it belongs, or adds it to what stands there.
template <class T, class Out>
HWY_INLINE void put_row(const T* sums, std::size_t count, bool add, Out* to) {
  if (add) {
    for (std::size_t c = 0; c < count; ++c) to[c] += static_cast<Out>(sums[c]);
  } else {
    for (std::size_t c = 0; c < count; ++c) to[c] = static_cast<Out>(sums[c]);
  }
}

/// Columns of a panel.
template <class T>
constexpr std::size_t panel_width = 2 * lanes_of<T>;

/// Adds the products of a with a panel to columns [begin, end) of it, which are put at `to` of the
/// first row of `out`.
/// \param panel_at panel_at(k, depth) gives these rows of the panel
/// \param add to what stands in `out`
template <class T, class Out, class PanelAt, class Term>
HWY_INLINE void product_with_panel(const LeftFactor<T>& a, const PanelAt& panel_at,
                                   std::size_t begin, std::size_t end, LaneRows<Out> out,
                                   std::size_t to, const Term& term, bool add) {
  constexpr std::size_t width = panel_width<T>;
  HWY_ALIGN T sums[max_rows * width];
  for (std::size_t k = 0; k < a.columns || k == 0; k += depth_of_block) {
    const std::size_t depth = std::min(depth_of_block, a.columns - k);
    const T* const panel = panel_at(k, depth);
    for (std::size_t i = 0; i < a.rows; i += max_rows) {
      const std::size_t rows = std::min(max_rows, a.rows - i);
      with_rows<max_rows>(rows, [&]<std::size_t Rows>() HWY_ATTR {
        sum_block<Rows>(a.data + i * a.strides.row + k * a.strides.term, a.strides, depth, panel,
                        sums, term);
      });
      for (std::size_t r = 0; r < rows; ++r) {
        Out* const row = out.row(i + r) + to;
        // Of a number that the compiler knows the copy is one of vectors.
        if (end - begin == width) {
          put_row(sums + r * width, width, add || k > 0, row);
        } else {
          put_row(sums + r * width + begin, end - begin, add || k > 0, row);
        }
      }
    }
  }
}

/// `depth` rows of `columns` numbers into a panel, with zeros behind them.
template <class T>
HWY_INLINE void fill_panel(const T* from, std::size_t stride, std::size_t columns,
                           std::size_t depth, T* panel) {
  constexpr Tag<T> tag;
  constexpr std::size_t lanes = lanes_of<T>, width = panel_width<T>;
  for (std::size_t i = 0; i < depth; ++i) {
    T* const to = panel + i * width;
    if (columns == width) {
      hn::Store(hn::LoadU(tag, from + i * stride), tag, to);
      hn::Store(hn::LoadU(tag, from + i * stride + lanes), tag, to + lanes);
    } else {
      std::copy_n(from + i * stride, columns, to);
      std::fill_n(to + columns, width - columns, T(0));
    }
  }
}

/// The same from `columns` rows of `depth` numbers.
template <class T>
HWY_INLINE void fill_panel_transposed(const T* from, std::size_t stride, std::size_t columns,
                                      std::size_t depth, T* panel) {
  constexpr std::size_t width = panel_width<T>;
  for (std::size_t c = 0; c < width; ++c) {
    for (std::size_t i = 0; i < depth; ++i) {
      panel[i * width + c] = c < columns ? from[c * stride + i] : T(0);
    }
  }
}

/// \param panel [256][2 vectors], to work in
template <class T, class Out>
HWY_INLINE void any_product(const LeftFactor<T>& a, LaneRows<const T> b, LaneRows<Out> out,
                            T* panel, bool add = false) {
  constexpr std::size_t width = panel_width<T>;
  for (std::size_t j = 0; j < b.columns; j += width) {
    const std::size_t columns = std::min(width, b.columns - j);
    const auto filled = [&](std::size_t k, std::size_t depth) HWY_ATTR {
      fill_panel(b.row(k) + j, b.stride, columns, depth, panel);
      return panel;
    };
    product_with_panel(a, filled, 0, columns, out, j, ProductTerm{}, add);
  }
}

template <class T, class Out, class Term = ProductTerm>
HWY_INLINE void any_product(const LeftFactor<T>& a, PanelPart<T> b, LaneRows<Out> out,
                            const Term& term = {}) {
  constexpr std::size_t width = panel_width<T>;
  const std::size_t last = b.first_column + b.columns;
  for (std::size_t j = b.first_column / width * width; j < last; j += width) {
    const std::size_t begin = std::max(b.first_column, j) - j, end = std::min(last - j, width);
    const T* const panel = b.of.numbers.get() + (j * b.of.rows + b.first_row * width);
    const auto in_place = [=](std::size_t k, std::size_t) { return panel + k * width; };
    product_with_panel(a, in_place, begin, end, out, j + begin - b.first_column, term, false);
  }
}

/// Room for a factor of this size.
template <class T>
void prepare(std::size_t rows, std::size_t columns, Panels<T>& panels) {
  panels.rows = rows;
  panels.columns = columns;
  panels.width = panel_width<T>;
  const std::size_t size = (columns + panels.width - 1) / panels.width * panels.width * rows;
  if (size <= panels.room) return;
  panels.room = 0;
  panels.numbers.reset();
  panels.numbers.reset(static_cast<T*>(::operator new(size * sizeof(T), Panels<T>::alignment)));
  panels.room = size;
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
