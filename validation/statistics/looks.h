// SPDX-License-Identifier: Apache-2.0
/// \file How often an experiment may be looked at.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace headlab {

/// Looks at these shares of the replicates, fixed beforehand. Each may spend alpha / looks, so that
/// whichever look decides, the chance of a wrong decision is at most alpha (Bonferroni; it holds
/// however the looks depend on one another). Simply adding replicates until a test at alpha decides
/// would raise .01 to .08 and more.
inline constexpr std::array<double, 3> look_shares = {1.0 / 16, 1.0 / 4, 1.0};

/// The least replicates of a look. A look at 256, which are 32 nodes of 8, refuted 2 % of true
/// claims instead of 1 % at most, and one at 1024 some 1.1 %: so few are too skewed for a t
/// quantile that far out (docs/measured/calibration.md).
inline constexpr std::uint64_t least_look = 2048;

/// The least replicates of a study.
inline constexpr std::uint64_t least_study = 4 * least_look;

/// Replicates at look `look` of a study of `replicates`, a multiple of 128. Two looks of a small
/// study may be the same.
inline std::uint64_t look_replicates(std::size_t look, std::uint64_t replicates) {
  const double share = look_shares.at(look) * static_cast<double>(replicates);
  return std::max(least_look, (static_cast<std::uint64_t>(share) + 127) / 128 * 128);
}

}  // namespace headlab
