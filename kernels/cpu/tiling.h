// SPDX-License-Identifier: Apache-2.0
/// \file Sizes of the parts that a training set is worked on in.
///
///     tile      tile_points points
///     panel     tiles of keys that a group of queries meets at once: those of one head fit L1
///     segment   panels over which sums are float32; sums of segments are float64
///     slab      segments that a worker holds in memory
///
/// Sizes count float32 numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/tile.h"

namespace headlab {

/// Points of a slab are a multiple of this, which is a multiple of every target's segment.
inline constexpr std::uint64_t slab_step = 2048;
/// Memory of a slab, unless slab_step points take more.
inline constexpr std::uint64_t max_slab_bytes = std::uint64_t{8} << 20;

/// Keys of one head in a panel, in L1; a panel has at least two tiles.
inline constexpr std::size_t l1_keys = 4096;
/// Weights of all heads at a group of queries, in L2.
inline constexpr std::size_t l2_weights = 65536;
/// Keys of all heads in the panels that all queries of a batch meet before the next ones, in L2.
inline constexpr std::size_t l2_keys = 65536;
/// Pairs of heads that have running sums, over the queries of a batch.
inline constexpr std::size_t max_running_pairs = 8192;

/// Weights that stage `keep` finds by a list of the largest; more are found by their digits.
inline constexpr std::uint64_t max_listed = 4096;

/// Points of a slab of which each takes `floats` numbers: all n, up to whole tiles, where they fit.
inline std::size_t slab_points(std::uint64_t n, std::uint64_t floats) {
  const std::uint64_t fitting = max_slab_bytes / 4 / floats / slab_step * slab_step;
  const std::uint64_t all = (n + tile_points - 1) / tile_points * tile_points;
  return static_cast<std::size_t>(std::min(std::max(fitting, slab_step), all));
}

}  // namespace headlab
