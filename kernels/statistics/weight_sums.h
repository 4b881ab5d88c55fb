// SPDX-License-Identifier: Apache-2.0
/// \file What the sums of a window's weights must satisfy, whatever the law and the rule. Estimates
/// are ratios of such sums, so that weights that were changed between two sums leave no trace
/// there.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace headlab {

/// A window whose weights were summed.
struct WindowPlace {
  std::uint64_t replicate;
  std::size_t query;
  std::size_t head;
};

/// Sums over the weights w of a window, as a backend took them.
struct WeightSums {
  double sum = 0;                      ///< sum w
  std::optional<double> squares = {};  ///< sum w^2, where it is taken
  std::uint64_t kept = 0;              ///< keys that may have weight: at least as many as do
  std::optional<double> again = {};    ///< sum w of the weights that were left, in float64
};

/// Replicates of which one has its weights summed again; where assertions are on, each has.
inline constexpr std::uint64_t replicates_to_sum_again = 1024;
inline bool sums_again([[maybe_unused]] std::uint64_t replicate) {
#ifdef NDEBUG
  return replicate % replicates_to_sum_again == 0;
#else
  return true;
#endif
}

/// Throws std::logic_error for what require_consistent() finds.
[[noreturn]] void fail_inconsistent(const WeightSums& sums, bool squares_hold,
                                    const WindowPlace& place);

/// Throws std::logic_error, which says what is wrong and where, unless
///     kept sum w^2 >= (sum w)^2   (Cauchy and Schwarz)
/// and the weights that were left sum to `sum`. NaN satisfies neither.
/// \param rounding bound of the relative error of `sum` and of `squares`
/// Inline: it is called for every window of every replicate.
inline void require_consistent(const WeightSums& sums, double rounding, const WindowPlace& place) {
  // Underflow may lose this share of sum w^2, see kernels/statistics/safe_sums.h.
  constexpr double underflow = 0x1p-30;
  // (1 - r) of the squares and (1 + r)^2 of the square of the sum, and their product.
  const double allowed = 1 - 4 * rounding - underflow;
  const bool squares_hold = !sums.squares || static_cast<double>(sums.kept) * *sums.squares >=
                                                 allowed * sums.sum * sums.sum;
  const bool sum_holds = !sums.again || std::abs(*sums.again - sums.sum) <= 2 * rounding * sums.sum;
  if (!squares_hold || !sum_holds) fail_inconsistent(sums, squares_hold, place);
}

}  // namespace headlab
