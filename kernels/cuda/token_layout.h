// SPDX-License-Identifier: Apache-2.0
/// \file Which tokens of a training set are stored, and where: those that some head sees, side by
/// side, so that nothing else is drawn, projected or weighed.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/hd.h"
#include "kernels/mechanism.h"
#include "kernels/plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Successive tokens at successive positions, up to the position of the next range.
struct TokenRange {
  std::uint64_t token, position;
};

/// Number of the token at a position.
struct TokenNumbers {
  const TokenRange* ranges = nullptr;
  int count = 0;  ///< 0: token i stands at position i

  HEADLAB_HD std::uint64_t of(std::uint64_t position) const {
    if (count == 0) return position;
    int r = 0;
    while (r + 1 < count && ranges[r + 1].position <= position) ++r;
    return ranges[r].token + (position - ranges[r].position);
  }
};

struct TokenLayout {
  std::uint64_t tokens = 1;        ///< stored
  std::vector<TokenRange> ranges;  ///< empty: token i stands at position i
  /// [H], positions that a head sees; empty: every head sees all that is stored. Tokens of a block
  /// of `levels` are stored together, whether all of them are seen or not.
  std::vector<SeenTokens> seen;
  std::uint64_t points = 1;  ///< drawn
  bool separate = false;     ///< points are kept apart from the tokens that are made of them

  explicit TokenLayout(const Plan& plan);
  /// Tokens that a head sees.
  std::uint64_t seen_by(int head) const {
    return seen.empty() ? tokens : seen[static_cast<std::size_t>(head)].count();
  }
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
