// SPDX-License-Identifier: Apache-2.0
/// \file Points side by side: a number type with which a law's formula computes a whole tile of
/// points at once. Every operation is a loop over the lanes of the scalar one, so the bits are
/// those of the scalar formula, and the compiler vectorises it for the target it is inlined into.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hd.h"
#include "kernels/math.h"

namespace headlab {

/// Points in one tile of a training set.
inline constexpr std::size_t tile_points = 32;

/// One float for each point of a tile.
struct alignas(64) Tile {
  float v[tile_points];

  Tile() = default;
  HEADLAB_HD explicit Tile(float value) {
    for (float& lane : v) lane = value;
  }
  HEADLAB_HD explicit Tile(double value) : Tile(static_cast<float>(value)) {}
  HEADLAB_HD explicit Tile(int value) : Tile(static_cast<float>(value)) {}
};

/// One row number of a data file for each point of a tile.
struct TileRows {
  std::uint32_t v[tile_points];
};

namespace detail {
template <class Function>
HEADLAB_HD Tile by_lane(const Function& function) {
  Tile result;
  for (std::size_t i = 0; i < tile_points; ++i) result.v[i] = function(i);
  return result;
}
}  // namespace detail

HEADLAB_HD Tile operator+(const Tile& a, const Tile& b) {
  return headlab::detail::by_lane([&](std::size_t i) { return a.v[i] + b.v[i]; });
}
HEADLAB_HD Tile operator-(const Tile& a, const Tile& b) {
  return headlab::detail::by_lane([&](std::size_t i) { return a.v[i] - b.v[i]; });
}
HEADLAB_HD Tile operator*(const Tile& a, const Tile& b) {
  return headlab::detail::by_lane([&](std::size_t i) { return a.v[i] * b.v[i]; });
}
HEADLAB_HD Tile operator/(const Tile& a, const Tile& b) {
  return headlab::detail::by_lane([&](std::size_t i) { return a.v[i] / b.v[i]; });
}

namespace math {

HEADLAB_HD Tile fused(const Tile& a, const Tile& b, const Tile& c) {
  return headlab::detail::by_lane([&](std::size_t i) { return fused(a.v[i], b.v[i], c.v[i]); });
}
HEADLAB_HD Tile fused(float a, const Tile& b, const Tile& c) {
  return headlab::detail::by_lane([&](std::size_t i) { return fused(a, b.v[i], c.v[i]); });
}
HEADLAB_HD Tile max(const Tile& a, const Tile& b) {
  return headlab::detail::by_lane([&](std::size_t i) { return max(a.v[i], b.v[i]); });
}
HEADLAB_HD Tile min(const Tile& a, const Tile& b) {
  return headlab::detail::by_lane([&](std::size_t i) { return min(a.v[i], b.v[i]); });
}
HEADLAB_HD Tile abs(const Tile& a) {
  return headlab::detail::by_lane([&](std::size_t i) { return abs(a.v[i]); });
}
HEADLAB_HD Tile sqrt(const Tile& a) {
  return headlab::detail::by_lane([&](std::size_t i) { return sqrt(a.v[i]); });
}
HEADLAB_HD Tile floor(const Tile& a) {
  return headlab::detail::by_lane([&](std::size_t i) { return floor(a.v[i]); });
}
// Loops of their own: compilers do not always inline a lambda as large as these, and outside of the
// caller they would be compiled without its instructions.
HEADLAB_HD Tile exp(const Tile& a) {
  Tile result;
  for (std::size_t i = 0; i < tile_points; ++i) result.v[i] = exp(a.v[i]);
  return result;
}
HEADLAB_HD Tile expm1(const Tile& a) {
  Tile result;
  for (std::size_t i = 0; i < tile_points; ++i) result.v[i] = expm1(a.v[i]);
  return result;
}
HEADLAB_HD Tile log(const Tile& a) {
  Tile result;
  for (std::size_t i = 0; i < tile_points; ++i) result.v[i] = log(a.v[i]);
  return result;
}
HEADLAB_HD Tile sin_turns(const Tile& a) {
  Tile result;
  for (std::size_t i = 0; i < tile_points; ++i) result.v[i] = sin_turns(a.v[i]);
  return result;
}
HEADLAB_HD Tile cos_turns(const Tile& a) {
  Tile result;
  for (std::size_t i = 0; i < tile_points; ++i) result.v[i] = cos_turns(a.v[i]);
  return result;
}

/// yes where a > b, else no.
template <class T>
HEADLAB_HD T where_greater(T a, T b, T yes, T no) {
  return a > b ? yes : no;
}
HEADLAB_HD Tile where_greater(const Tile& a, const Tile& b, const Tile& yes, const Tile& no) {
  return headlab::detail::by_lane(
      [&](std::size_t i) { return a.v[i] > b.v[i] ? yes.v[i] : no.v[i]; });
}

/// The number of a row.
template <class Number>
HEADLAB_HD Number of_row(const Number* numbers, std::uint32_t row) {
  return numbers[row];
}
HEADLAB_HD Tile of_row(const float* numbers, const TileRows& rows) {
  return headlab::detail::by_lane([&](std::size_t i) { return numbers[rows.v[i]]; });
}

}  // namespace math
}  // namespace headlab
