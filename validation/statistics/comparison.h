// SPDX-License-Identifier: Apache-2.0
/// \file One statement about one number, and what a simulation says to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/moments/jackknife.h"

namespace headlab {

/// What a claim says about an effect, the difference of two numbers that are compared.
enum class Statement {
  equal,    ///< |effect| <= margin: the margin is what still counts as equal
  at_least  ///< effect >= -margin: the margin is the zone in which an order does not count
};

/// A statement with the estimate it is judged by. Effects are relative or absolute as the claim
/// says; the margin is in the same unit.
struct Comparison {
  std::string what;  ///< "V of head 1 at query 0, relative to theory"
  Statement statement = Statement::equal;
  Estimate effect;               ///< estimate with its MCSE; an MCSE of 0 means exact
  double df = 0;                 ///< degrees of freedom of the MCSE
  std::uint64_t replicates = 0;  ///< behind the effect; 0: it is computed without simulation
  double margin = 0;             ///< >= 0
  /// Largest error of the closed form in the effect (its remainder): the claim is given the benefit
  /// of it, its support is not.
  double theory_error = 0;
  /// Of a ratio num/den, |num - c den| <= margin |den|: the linear figures margin |den| - (num - c
  /// den) and margin |den| + (num - c den) over |den| (Fieller 1954), of `at_least` the second
  /// alone. Empty: margin - effect and margin + effect.
  std::optional<std::array<Estimate, 2>> rooms = {};
  /// How far rounding may have moved the effect, and the most that events add to it which no
  /// replicate had, where too few replicates carry it: as the theory's error, to both sides.
  double rounding = 0;
  double unseen = 0;
  double carriers = std::numeric_limits<double>::infinity();  ///< of the effect, see NodeSpread
  /// Why nothing can be decided whatever the numbers are; empty: it can.
  std::string open = {};
  /// Conditions of the scenario, from 0, whose figures are compared; empty: all.
  std::vector<std::size_t> conditions = {};
  double observed = std::numeric_limits<double>::quiet_NaN();  ///< the figures compared, for the
  double expected = std::numeric_limits<double>::quiet_NaN();  ///< report; NaN: not shown
};

/// a - b; 0 where the two differ by no more than 64 units of rounding. Conditions that are equal by
/// algebra differ by rounding, with a standard error of rounding, which a margin of 0 leaves open.
Jackknifed difference_above_rounding(const Jackknifed& a, const Jackknifed& b);

/// True where a denominator is denominator_errors away from 0.
bool is_away_from_zero(const Jackknifed& denominator, std::span<const double> node_counts);

/// Reasons for which a comparison is open.
inline constexpr const char* near_zero_denominator =
    "a denominator is less than 6 of its standard errors from 0";
inline constexpr const char* heavy_squares =
    "squares have no variance where moments above the fourth are infinite, so that the standard "
    "error says nothing";

/// Makes the comparison "sample equals expected" in units of `scale`.
Comparison equal_to(std::string what, const Jackknifed& sample, double expected, double scale,
                    double margin, std::span<const double> node_counts, double theory_error = 0);

/// Makes the comparison "sample is at least 0" in units of `scale`.
Comparison at_least_zero(std::string what, const Jackknifed& sample, double scale, double zone,
                         std::span<const double> node_counts, double theory_error = 0);

/// Makes the comparison of num/den with c, or that it is at least c: of linear figures, so that
/// noise in the denominator counts. It is open where |den| is less than denominator_errors of its
/// own.
Comparison ratio_equal_to(std::string what, const Jackknifed& num, const Jackknifed& den, double c,
                          double margin, std::span<const double> node_counts);
Comparison ratio_at_least(std::string what, const Jackknifed& num, const Jackknifed& den, double c,
                          double zone, std::span<const double> node_counts);

/// The comparison of figures whose distribution has no kurtosis: three times the skewness that the
/// nodes show. Where squares of t variates with 5 degrees of freedom were judged by that of the
/// nodes, 2 % of claims that are false by just their margin were supported (three looks up to 32768
/// replicates), with twice as much 1.1 %, with three times 0.5 %.
Comparison with_long_tails(Comparison comparison);

/// Why a comparison cannot be decided: too few replicates carry the effect, its denominator is
/// noise; empty where it can.
/// \param replicates behind it
std::string open_reason(const Comparison& comparison, std::uint64_t replicates);

/// Decides for the claim: the one-sided bounds of the effect at level alpha lie inside the margin
/// less the theory's error. For `equal` these are two one-sided tests (Schuirmann 1987). Bounds are
/// those of Student's t where the skewness of the estimate makes them no wider, and else of Hall's
/// transformation of it (Hall 1992). False for an effect or MCSE that is not a number, and for a
/// comparison that is open.
bool supports(const Comparison& comparison, double alpha);

/// True where the effect as it stands lies beyond margin and theory error, whatever its MCSE: for
/// statements that are true by algebra. False for an effect or MCSE that is not a number.
bool contradicts(const Comparison& comparison);

/// P-value of the test that the claim is true, against an effect beyond margin and theory error:
/// small is evidence against the claim. With the bound b = margin + theory error, T of Student's t,
/// for `equal` P(T > (|effect| - b) / MCSE) + P(T > (|effect| + b) / MCSE), which is the chance of
/// so large an effect where the truth is at b; for `at_least` P(T > (-effect - b) / MCSE). 1 for an
/// effect or MCSE that is not a number.
double p_value_against(const Comparison& comparison);

/// True where the closed form's own error fills the margin, so that no simulation can support the
/// claim.
bool limited_by_theory(const Comparison& comparison);

/// Replicates with which the comparison would come out one way or the other if the effect is what
/// it looks like, from the `replicates` that gave it: MCSE falls like 1/sqrt(R). Infinite at the
/// edge of the margin.
double replicates_to_resolve(const Comparison& comparison, double replicates, double support_alpha,
                             double refute_alpha);

/// Holm's step-down procedure (1979): which of the hypotheses are rejected at family-wise level
/// alpha.
std::vector<bool> holm(std::span<const double> p_values, double alpha);

/// Looks at these shares of the replicates, fixed beforehand. Each may spend alpha / looks, so that
/// whichever look decides, the chance of a wrong decision is at most alpha (Bonferroni; it holds
/// however the looks depend on one another). Simply adding replicates until a test at alpha decides
/// would raise .01 to .08 and more.
inline constexpr std::array<double, 3> look_shares = {1.0 / 16, 1.0 / 4, 1.0};

/// The least replicates of a look. A look at 256, which are 32 nodes of 8, refuted 2 % of true
/// claims instead of 1 % at most, and one at 1024 some 1.1 %: so few are too skewed for a t
/// quantile that far out (docs/measured/calibration.md).
inline constexpr std::uint64_t min_look = 2048;

/// The least replicates of a scenario.
inline constexpr std::uint64_t smallest_scenario = 4 * min_look;

/// Replicates at look `look` of a scenario of `replicates`, a multiple of 128. Two looks of a small
/// study may be the same.
inline std::uint64_t look_replicates(std::size_t look, std::uint64_t replicates) {
  const double share = look_shares.at(look) * static_cast<double>(replicates);
  return std::max(min_look, (static_cast<std::uint64_t>(share) + 127) / 128 * 128);
}

}  // namespace headlab
