// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/stack_arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/cpu/attention_arithmetic.h"
#include "kernels/cpu/draws.h"
#include "kernels/cpu/targets.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"
#include "kernels/tile.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/stack_arithmetic.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/cpu/eight_doubles-inl.h"

#ifndef HEADLAB_CPU_STACK_ARITHMETIC
#define HEADLAB_CPU_STACK_ARITHMETIC
namespace headlab {

using InGrid = LaneRows<const double>;
using OutGrid = LaneRows<double>;

template <class Number, class Matrix>
LaneRows<Number> grid(Matrix& matrix) {
  return {matrix.data(), static_cast<std::size_t>(matrix.rows()),
          static_cast<std::size_t>(matrix.cols()), static_cast<std::size_t>(matrix.outerStride())};
}
inline InGrid in(const RowsView& rows) {
  return grid<const double>(rows);
}
inline OutGrid out_grid(RowsOut& rows) {
  return grid<double>(rows);
}
/// [rows.columns + rows.rows][2 vectors], for a panel and for sums of pairs of rows; kept by the
/// thread.
double* room_for(const InGrid& rows);

}  // namespace headlab
#endif

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

// ---- Sums over k of f(a_ik, b_kj), one chain for each element in the order of k ----

struct ProductOf {
  HWY_INLINE Vector operator()(Vector a, Vector b, Vector sum) const { return mul_add(a, b, sum); }
};
struct DifferenceOf {
  HWY_INLINE Vector operator()(Vector a, Vector b, Vector sum) const {
    return hn::Add(sum, hn::Abs(hn::Sub(a, b)));
  }
};
struct SquareDistanceOf {
  HWY_INLINE Vector operator()(Vector a, Vector b, Vector sum) const {
    const Vector difference = hn::Sub(a, b);
    return mul_add(difference, difference, sum);
  }
};

/// Sums, two vectors of columns, and a factor fill most of the registers.
constexpr std::size_t max_rows = lanes == 8 ? 11 : lanes == 4 ? 6 : 4;

/// Rows x Width vectors from b [inner][columns], the last of them of `tail` columns.
template <std::size_t Rows, std::size_t Width, class Term>
HWY_INLINE void sum_block(const double* a, std::size_t a_stride, std::size_t inner, const double* b,
                          std::size_t b_stride, double* out, std::size_t out_stride,
                          std::size_t tail, const Term& term) {
  const auto load_vector = [&](const double* p, std::size_t w) HWY_ATTR {
    return w + 1 < Width || tail == lanes ? hn::LoadU(doubles, p + w * lanes)
                                          : load_some(p + w * lanes, tail);
  };
  Vector sums[Rows][Width];
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t w = 0; w < Width; ++w) {
      sums[r][w] = hn::Zero(doubles);
    }
  }
  const auto add_terms = [&](const auto& load_b) HWY_ATTR {
    for (std::size_t k = 0; k < inner; ++k) {
      Vector columns[Width];
      for (std::size_t w = 0; w < Width; ++w) columns[w] = load_b(b + k * b_stride, w);
      for (std::size_t r = 0; r < Rows; ++r) {
        const Vector factor = hn::Set(doubles, a[r * a_stride + k]);
        for (std::size_t w = 0; w < Width; ++w) sums[r][w] = term(factor, columns[w], sums[r][w]);
      }
    }
  };
  if (tail == lanes) {
    add_terms([](const double* p, std::size_t w)
                  HWY_ATTR { return hn::LoadU(doubles, p + w * lanes); });
  } else {
    add_terms(load_vector);
  }
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t w = 0; w < Width; ++w) {
      double* to = out + r * out_stride + w * lanes;
      if (w + 1 < Width || tail == lanes) {
        hn::StoreU(sums[r][w], doubles, to);
      } else {
        store_some(sums[r][w], to, tail);
      }
    }
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

/// Row blocks of nearly one height, of one or two vectors of columns.
template <class Term>
HWY_INLINE void sum_columns(InGrid a, const double* b, std::size_t b_stride, double* out,
                            std::size_t out_stride, std::size_t columns, const Term& term) {
  const std::size_t blocks = (a.rows + max_rows - 1) / max_rows;
  std::size_t row = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t rows = (a.rows - row + blocks - block - 1) / (blocks - block);
    with_rows<max_rows>(rows, [&]<std::size_t Rows>() HWY_ATTR {
      const double* from = a.row(row);
      double* to = out + row * out_stride;
      if (columns > lanes) {
        sum_block<Rows, 2>(from, a.stride, a.columns, b, b_stride, to, out_stride, columns - lanes,
                           term);
      } else {
        sum_block<Rows, 1>(from, a.stride, a.columns, b, b_stride, to, out_stride, columns, term);
      }
    });
    row += rows;
  }
}

constexpr std::size_t panel_columns = 2 * lanes;

/// Columns of a panel [depth][panel_columns] from as many rows of `depth` numbers.
HWY_INLINE void fill_panel(const double* rows, std::size_t stride, std::size_t columns,
                           std::size_t depth, double* panel) {
  std::size_t whole_columns = 0;
  std::size_t whole_depth = 0;
#if HWY_TARGET != HWY_SCALAR
  // Squares of four.
  const hn::FixedTag<double, 4> four;
  whole_columns = columns / 4 * 4;
  whole_depth = depth / 4 * 4;
  for (std::size_t c = 0; c < whole_columns; c += 4) {
    for (std::size_t k = 0; k < whole_depth; k += 4) {
      const double* from = rows + c * stride + k;
      double* to = panel + k * panel_columns + c;
      const auto r0 = hn::LoadU(four, from);
      const auto r1 = hn::LoadU(four, from + stride);
      const auto r2 = hn::LoadU(four, from + 2 * stride);
      const auto r3 = hn::LoadU(four, from + 3 * stride);
      const auto even01 = hn::InterleaveLower(four, r0, r1);
      const auto even23 = hn::InterleaveLower(four, r2, r3);
      const auto odd01 = hn::InterleaveUpper(four, r0, r1);
      const auto odd23 = hn::InterleaveUpper(four, r2, r3);
      hn::StoreU(hn::ConcatLowerLower(four, even23, even01), four, to);
      hn::StoreU(hn::ConcatLowerLower(four, odd23, odd01), four, to + panel_columns);
      hn::StoreU(hn::ConcatUpperUpper(four, even23, even01), four, to + 2 * panel_columns);
      hn::StoreU(hn::ConcatUpperUpper(four, odd23, odd01), four, to + 3 * panel_columns);
    }
  }
#endif
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t k = c < whole_columns ? whole_depth : 0; k < depth; ++k) {
      panel[k * panel_columns + c] = rows[c * stride + k];
    }
  }
}

/// out(i, j - first) = sum_k term(a_ik, b_jk) for `columns` rows j of b from `first` on.
/// \param panel [a.columns][panel_columns], to work in
template <class Term>
HWY_INLINE void sum_over_pairs(InGrid a, InGrid b, std::size_t first, std::size_t columns,
                               double* panel, double* out, std::size_t out_stride,
                               const Term& term) {
  fill_panel(b.row(first), b.stride, columns, b.columns, panel);
  sum_columns(a, panel, panel_columns, out, out_stride, columns, term);
}

template <class Term>
HWY_INLINE double largest_of_pairs(InGrid rows, const Term& term) {
  double* const room = room_for(rows);
  double* sums = room + rows.columns * panel_columns;
  Eight most = set(0);
  for (std::size_t j = 0; j < rows.rows; j += panel_columns) {
    const std::size_t columns = std::min(panel_columns, rows.rows - j);
    // Rows from j on: the pairs before them have been seen.
    const InGrid others = {rows.row(j), rows.rows - j, rows.columns, rows.stride};
    sum_over_pairs(others, rows, j, columns, room, sums, panel_columns, term);
    for (std::size_t r = 0; r < others.rows; ++r) {
      for_eights(columns, [&](std::size_t c, std::size_t count) HWY_ATTR {
        most = max(most, load(sums + r * panel_columns + c, count));
      });
    }
  }
  return largest(most);
}

// ---- Row by row ----

/// One of the sums of eight-lane terms over a row of n.
template <class Term>
HWY_INLINE double sum_of_row(std::size_t n, const Term& term) {
  Eight sum = set(0);
  for_eights(n, [&](std::size_t j, std::size_t count) HWY_ATTR { sum = term(j, count, sum); });
  return total(sum);
}

/// Softmax of a row whose logits differ by too much for what is below: A - a.
/// \return sum_j -A_j log A_j
HWY_INLINE double softmax_of_far_row(std::size_t n, double scale, const double* e, const double* b,
                                     const double* a, double to_rest, double* out) {
  double top = -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < n; ++j) top = std::max(top, std::fma(scale, e[j], b[j]));
  const auto logit = [&](std::size_t j, std::size_t count) HWY_ATTR {
    return fused(set(scale), load(e + j, count), load(b + j, count)) - set(top);
  };
  const double sum = sum_of_row(n, [&](std::size_t j, std::size_t count, Eight s)
                                       HWY_ATTR { return s + first(exp(logit(j, count)), count); });
  const Eight log_sum = log(set(sum));
  const Eight share = set(1 / sum);
  return sum_of_row(n, [&](std::size_t j, std::size_t count, Eight s) HWY_ATTR {
    const Eight x = logit(j, count);
    const Eight weight = first(exp(x) * share, count);
    store((weight - load(a + j, count)) * set(to_rest), out + j, count);
    return s - weight * (x - log_sum);
  });
}

class Arithmetic final : public StackArithmetic {
 public:
  HWY_ATTR void product(const RowsView& left, const RowsView& right, RowsOut to) const override {
    const InGrid a = in(left), b = in(right);
    const OutGrid out = out_grid(to);
    for (std::size_t j = 0; j < b.columns; j += panel_columns) {
      sum_columns(a, b.data + j, b.stride, out.data + j, out.stride,
                  std::min(panel_columns, b.columns - j), ProductOf());
    }
  }
  HWY_ATTR void product_transposed(const RowsView& left, const RowsView& right,
                                   RowsOut to) const override {
    const InGrid a = in(left), b = in(right);
    const OutGrid out = out_grid(to);
    double* const panel = room_for(b);
    for (std::size_t j = 0; j < b.rows; j += panel_columns) {
      sum_over_pairs(a, b, j, std::min(panel_columns, b.rows - j), panel, out.data + j, out.stride,
                     ProductOf());
    }
  }
  HWY_ATTR double softmax(const RowsView& logits, double w, RowsOut to) const override {
    const InGrid scores = in(logits);
    const OutGrid out = out_grid(to);
    const std::size_t n = scores.columns;
    const double* b = scores.row(n);
    double* a = out.row(n);
    const double top = *std::max_element(b, b + n);
    for_eights(n, [&](std::size_t j, std::size_t count)
                      HWY_ATTR { store(exp(load(b + j, count) - set(top)), a + j, count); });
    const double sum = sum_of_row(n, [&](std::size_t j, std::size_t count, Eight s)
                                         HWY_ATTR { return s + load(a + j, count); });
    for_eights(n, [&](std::size_t j, std::size_t count)
                      HWY_ATTR { store(load(a + j, count) * set(1 / sum), a + j, count); });
    const Eight log_common = set(-top) - log(set(sum));  // less b
    if (w < stack::min_exponent) {
      for (std::size_t i = 0; i < n; ++i) {
        const double* e = scores.row(i);
        const double mean = sum_of_row(n, [&](std::size_t j, std::size_t count, Eight s) HWY_ATTR {
          return fused(load(a + j, count), load(e + j, count), s);
        });
        for_eights(n, [&](std::size_t j, std::size_t count) HWY_ATTR {
          store(load(a + j, count) * (load(e + j, count) - set(mean)), out.row(i) + j, count);
        });
      }
      return sum_of_row(n, [&](std::size_t j, std::size_t count, Eight s) HWY_ATTR {
        return s - load(a + j, count) * (load(b + j, count) + log_common);
      });
    }

    const double scale = std::exp(w);
    const double to_rest = std::exp(-std::min(w, 0.0));
    double entropy = 0;
    Eight entropies = set(0);  // of rows, less log1p(sums)
    for (std::size_t begin = 0; begin < n; begin += eight) {
      HWY_ALIGN double sums[eight] = {};  // of a_j e^x_j, less 1
      const std::size_t rows = std::min(eight, n - begin);
      // Every step for all rows before the next one: a row alone would wait for its sums.
      HWY_ALIGN double means[eight];
      for (std::size_t r = 0; r < rows; ++r) {
        const double* e = scores.row(begin + r);
        means[r] = scale * sum_of_row(n, [&](std::size_t j, std::size_t count, Eight s) HWY_ATTR {
                     return fused(load(a + j, count), load(e + j, count), s);
                   });
      }
      const auto difference = [&](std::size_t r, std::size_t j, std::size_t count) HWY_ATTR {
        return first(fused(set(scale), load(scores.row(begin + r) + j, count), set(-means[r])),
                     count);
      };
      Eight most = set(0);
      for (std::size_t r = 0; r < rows; ++r) {
        double* u = out.row(begin + r);
        sums[r] = sum_of_row(n, [&](std::size_t j, std::size_t count, Eight s) HWY_ATTR {
          const Eight x = difference(r, j, count);
          most = max(most, x);
          const Eight change = expm1(x);
          store(change, u + j, count);
          return fused(load(a + j, count), change, s);
        });
      }
      const bool far = largest(most) > stack::max_spread;
      for (std::size_t r = 0; r < rows; ++r) {
        double* u = out.row(begin + r);
        if (far) {
          sums[r] = 0;
          entropy += softmax_of_far_row(n, scale, scores.row(begin + r), b, a, to_rest, u);
          continue;
        }
        const double share = 1 / (1 + sums[r]);
        for_eights(n, [&](std::size_t j, std::size_t count) HWY_ATTR {
          const Eight change = load(u + j, count);
          const Eight weight = load(a + j, count) * set(share);
          store(weight * set(to_rest) * (change - set(sums[r])), u + j, count);
          const Eight log_weight = difference(r, j, count) + (load(b + j, count) + log_common);
          entropies = entropies - fused(weight, change, weight) * log_weight;
        });
      }
      entropies = entropies + log1p(load(sums, eight));
    }
    entropy += total(entropies);
    return entropy / static_cast<double>(n);
  }
  HWY_ATTR double centre(RowsOut matrix, Eigen::RowVectorXd& mean) const override {
    const OutGrid rows = out_grid(matrix);
    mean.resize(matrix.cols());
    const double share = 1 / static_cast<double>(rows.rows);
    Eight most = set(0);
    for_eights(rows.columns, [&](std::size_t j, std::size_t count) HWY_ATTR {
      Eight sum = set(0);
      for (std::size_t i = 0; i < rows.rows; ++i) sum = sum + load(rows.row(i) + j, count);
      const Eight shift = sum * set(share);
      store(shift, mean.data() + j, count);
      for (std::size_t i = 0; i < rows.rows; ++i) {
        const Eight x = load(rows.row(i) + j, count) - shift;
        most = max(most, abs(x));
        store(x, rows.row(i) + j, count);
      }
    });
    const double largest_size = largest(most);
    if (!(largest_size > 0)) return largest_size;
    const Eight factor = set(1 / largest_size);
    for (std::size_t i = 0; i < rows.rows; ++i) {
      for_eights(rows.columns, [&](std::size_t j, std::size_t count) HWY_ATTR {
        store(load(rows.row(i) + j, count) * factor, rows.row(i) + j, count);
      });
    }
    return largest_size;
  }
  HWY_ATTR void row_products(const RowsView& matrix, const Eigen::RowVectorXd& m,
                             Eigen::VectorXd& products, Eigen::VectorXd& squares) const override {
    const InGrid rows = in(matrix);
    products.resize(matrix.rows());
    squares.resize(matrix.rows());
    for (std::size_t i = 0; i < rows.rows; ++i) {
      Eight square = set(0);
      products.data()[i] =
          sum_of_row(rows.columns, [&](std::size_t j, std::size_t count, Eight s) HWY_ATTR {
            const Eight x = load(rows.row(i) + j, count);
            square = fused(x, x, square);
            return fused(x, load(m.data() + j, count), s);
          });
      squares.data()[i] = total(square);
    }
  }
  HWY_ATTR void combine(const RowsView& matrix, const Eigen::VectorXd& f, const Eigen::VectorXd& g,
                        const Eigen::RowVectorXd& m, RowsOut to) const override {
    const InGrid rows = in(matrix);
    const OutGrid out = out_grid(to);
    for (std::size_t i = 0; i < rows.rows; ++i) {
      for_eights(rows.columns, [&](std::size_t j, std::size_t count) HWY_ATTR {
        store(fused(set(f.data()[i]), load(rows.row(i) + j, count),
                    set(g.data()[i]) * load(m.data() + j, count)),
              out.row(i) + j, count);
      });
    }
  }
  HWY_ATTR void sum(double f, const RowsView& left, double g, const RowsView& right,
                    RowsOut to) const override {
    const InGrid a = in(left), b = in(right);
    const OutGrid out = out_grid(to);
    for (std::size_t i = 0; i < a.rows; ++i) {
      for_eights(a.columns, [&](std::size_t j, std::size_t count) HWY_ATTR {
        store(fused(set(f), load(a.row(i) + j, count), set(g) * load(b.row(i) + j, count)),
              out.row(i) + j, count);
      });
    }
  }
  HWY_ATTR double spread(const RowsView& matrix) const override {
    const InGrid rows = in(matrix);
    const double share = 1 / static_cast<double>(rows.rows);
    return sum_of_row(rows.columns, [&](std::size_t j, std::size_t count, Eight s) HWY_ATTR {
      Eight sum_of_column = set(0);
      for (std::size_t i = 0; i < rows.rows; ++i) {
        sum_of_column = sum_of_column + load(rows.row(i) + j, count);
      }
      for (std::size_t i = 0; i < rows.rows; ++i) {
        const Eight x = load(rows.row(i) + j, count) - sum_of_column * set(share);
        s = fused(x, x, s);
      }
      return s;
    });
  }
  HWY_ATTR double largest_difference(const RowsView& rows) const override {
    return largest_of_pairs(in(rows), DifferenceOf());
  }
  HWY_ATTR double largest_square_distance(const RowsView& rows) const override {
    return largest_of_pairs(in(rows), SquareDistanceOf());
  }
  HWY_ATTR void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t quad, double sd,
                        std::span<double> out) const override {
    const hn::ScalableTag<float> floats;
    // A tile of points of one counter each, of which the four numbers go side by side.
    std::array<Tile, 4> tile;
    HWY_ALIGN float four[4 * tile_points];
    for (std::size_t begin = 0; begin < out.size(); begin += 4 * tile_points, quad += tile_points) {
      draw_base_cpu(BaseDraw::normal, seed, stream, quad, 1, tile.data());
      for (std::size_t i = 0; i < tile_points; i += hn::Lanes(floats)) {
        hn::StoreInterleaved4(hn::Load(floats, tile[0].v + i), hn::Load(floats, tile[1].v + i),
                              hn::Load(floats, tile[2].v + i), hn::Load(floats, tile[3].v + i),
                              floats, four + 4 * i);
      }
      const std::size_t count = std::min(4 * tile_points, out.size() - begin);
      for (std::size_t i = 0; i < count; ++i) {
        out[begin + i] = sd * static_cast<double>(four[i]);
      }
    }
  }
};

const StackArithmetic& arithmetic() {
  static const Arithmetic of_target;
  return of_target;
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab {
namespace {

HWY_EXPORT(arithmetic);

}  // namespace

double* room_for(const InGrid& rows) {
  constexpr std::size_t max_panel_columns = 16;
  static thread_local std::vector<double> room;
  room.resize(std::max(room.size(), max_panel_columns * (rows.rows + rows.columns)));
  return room.data();
}

const StackArithmetic& cpu_stack_arithmetic() {
  return HWY_DYNAMIC_DISPATCH(arithmetic)();
}

Eigen::MatrixXd cpu_stack_tokens(const Plan& plan, std::uint64_t replicate) {
  if (plan.stack->tokens.size() > 0) return plan.stack->tokens;
  const std::vector<float> x = draw_design_cpu(plan, replicate);
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Floats> rows(x.data(), static_cast<Eigen::Index>(plan.n), plan.d);
  return rows.cast<double>();
}

}  // namespace headlab
#endif  // HWY_ONCE
