// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/stack_arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/draws.h"
#include "kernels/cpu/targets.h"
#include "kernels/tile.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/stack_arithmetic.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::ScalableTag<double>;
constexpr Doubles doubles;

/// Element (i, j) of a b, a [rows][inner] and b [inner][columns] by columns.
HWY_ATTR double product_element(const double* a, std::size_t rows, std::size_t inner,
                                const double* b, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < inner; ++k) sum = std::fma(a[k * rows + i], b[j * inner + k], sum);
  return sum;
}

/// Rows i .. i + 2 lanes - 1 of Width columns from j on.
template <std::size_t Width>
HWY_ATTR void product_block(const double* a, std::size_t rows, std::size_t inner, const double* b,
                            double* out, std::size_t i, std::size_t j) {
  const std::size_t lanes = hn::Lanes(doubles);
  hn::Vec<Doubles> low[Width];
  hn::Vec<Doubles> high[Width];
  for (std::size_t c = 0; c < Width; ++c) low[c] = high[c] = hn::Zero(doubles);
  for (std::size_t k = 0; k < inner; ++k) {
    const auto first = hn::LoadU(doubles, a + k * rows + i);
    const auto second = hn::LoadU(doubles, a + k * rows + i + lanes);
    for (std::size_t c = 0; c < Width; ++c) {
      const auto factor = hn::Set(doubles, b[(j + c) * inner + k]);
      low[c] = hn::MulAdd(first, factor, low[c]);
      high[c] = hn::MulAdd(second, factor, high[c]);
    }
  }
  for (std::size_t c = 0; c < Width; ++c) {
    hn::StoreU(low[c], doubles, out + (j + c) * rows + i);
    hn::StoreU(high[c], doubles, out + (j + c) * rows + i + lanes);
  }
}

/// All by columns: a [rows][inner], b [inner][columns], out [rows][columns].
HWY_ATTR void product(const double* a, std::size_t rows, std::size_t inner, const double* b,
                      std::size_t columns, double* out) {
  std::size_t done = 0;
  if (HWY_NATIVE_FMA != 0) {
    const std::size_t step = 2 * hn::Lanes(doubles);
    for (; done + step <= rows; done += step) {
      std::size_t j = 0;
      for (; j + 4 <= columns; j += 4) product_block<4>(a, rows, inner, b, out, done, j);
      for (; j < columns; ++j) product_block<1>(a, rows, inner, b, out, done, j);
    }
  }
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = done; i < rows; ++i) {
      out[j * rows + i] = product_element(a, rows, inner, b, i, j);
    }
  }
}

/// Replaces x by f of it, vector by vector; NaN stays.
template <class Function>
HWY_ATTR void apply_to_all(double* x, std::size_t count, const Function& f) {
  const std::size_t lanes = hn::Lanes(doubles);
  auto one = [&](double* at) HWY_ATTR {
    const auto v = hn::LoadU(doubles, at);
    hn::StoreU(hn::IfThenElse(hn::Eq(v, v), f(v), v), doubles, at);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) one(x + i);
  if (i == count) return;
  HWY_ALIGN double rest[hn::MaxLanes(doubles)] = {};
  std::copy(x + i, x + count, rest);
  one(rest);
  std::copy(rest, rest + (count - i), x + i);
}

HWY_ATTR void exp_of_all(double* x, std::size_t count) {
  apply_to_all(x, count, [](auto v) HWY_ATTR { return hn::Exp(doubles, v); });
}

HWY_ATTR void expm1_of_all(double* x, std::size_t count) {
  apply_to_all(x, count, [](auto v) HWY_ATTR { return hn::Expm1(doubles, v); });
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab {
namespace {

HWY_EXPORT(product);
HWY_EXPORT(exp_of_all);
HWY_EXPORT(expm1_of_all);

class CpuStackArithmetic : public StackArithmetic {
 public:
  Eigen::MatrixXd product(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) const override {
    Eigen::MatrixXd out(a.rows(), b.cols());
    HWY_DYNAMIC_DISPATCH(product)
    (a.data(), static_cast<std::size_t>(a.rows()), static_cast<std::size_t>(a.cols()), b.data(),
     static_cast<std::size_t>(b.cols()), out.data());
    return out;
  }
  void exp(std::span<double> x) const override {
    HWY_DYNAMIC_DISPATCH(exp_of_all)(x.data(), x.size());
  }
  void expm1(std::span<double> x) const override {
    HWY_DYNAMIC_DISPATCH(expm1_of_all)(x.data(), x.size());
  }
  void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t quad,
               std::span<float> out) const override {
    // A tile of points of one counter each.
    std::array<Tile, 4> tile;
    for (std::size_t i = 0; i < out.size(); i += 4 * tile_points, quad += tile_points) {
      draw_base_cpu(BaseDraw::normal, seed, stream, quad, 1, tile.data());
      const std::size_t count = std::min(4 * tile_points, out.size() - i);
      for (std::size_t k = 0; k < count; ++k) out[i + k] = tile[k % 4].v[k / 4];
    }
  }
};

}  // namespace

const StackArithmetic& cpu_stack_arithmetic() {
  static const CpuStackArithmetic arithmetic;
  return arithmetic;
}

}  // namespace headlab
#endif  // HWY_ONCE
