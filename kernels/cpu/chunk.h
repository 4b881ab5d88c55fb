// SPDX-License-Identifier: Apache-2.0
/// \file How much of a training set a worker of the CPU backend holds at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/tile.h"

namespace headlab {

/// Points of a chunk are a multiple of this: whole blocks of any SIMD target.
inline constexpr std::uint64_t chunk_unit = 2048;

/// What they may take, unless one unit takes more.
inline constexpr std::uint64_t max_chunk_bytes = std::uint64_t{8} << 20;

/// How much of a training set is worked on at once. Numbers that stay in the first cache beside
/// others: keys of one head in a strip, which has two tiles at least. Numbers that stay in the
/// second cache: weights of all heads at a group of queries, and keys of all heads in a part of a
/// block.
inline constexpr std::size_t max_strip_numbers = 4096;
inline constexpr std::size_t max_weights = 65536;
inline constexpr std::size_t max_part_numbers = 65536;
/// Pairs of heads, over the queries of a batch, that have running sums, a SIMD vector each.
inline constexpr std::size_t max_running_pairs = 8192;

/// Points that are held at once, when each takes `floats` numbers: all n, up to whole tiles, while
/// they fit.
inline std::size_t chunk_points(std::uint64_t n, std::uint64_t floats) {
  const std::uint64_t fitting = max_chunk_bytes / 4 / floats / chunk_unit * chunk_unit;
  const std::uint64_t all = (n + tile_points - 1) / tile_points * tile_points;
  return static_cast<std::size_t>(std::min(std::max(fitting, chunk_unit), all));
}

}  // namespace headlab
