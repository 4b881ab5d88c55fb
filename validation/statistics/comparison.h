// SPDX-License-Identifier: Apache-2.0
/// \file One statement about one number, and what a simulation says to it.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "engine/moments/jackknife.h"

namespace headlab {

/// What a claim says about an effect, a number that is 0 if the claim holds to the letter.
enum class Statement {
  equal,    ///< |effect| <= margin: the margin is what still counts as equal
  at_least  ///< effect >= -margin: the margin is the zone in which an order does not count
};

/// A statement with the estimate it is judged by. Effects are relative or absolute as the claim
/// says; the margin is in the same unit.
struct Comparison {
  std::string what;  ///< "V of head 2 at query 1, relative to theory"
  Statement statement = Statement::equal;
  Estimate effect;    ///< estimate with its MCSE; an MCSE of 0 means exact
  double df = 0;      ///< degrees of freedom of the MCSE
  double margin = 0;  ///< >= 0
  /// Largest error of the closed form in the effect (its remainder): the claim is given the benefit
  /// of it, its support is not.
  double theory_error = 0;
  double observed = std::numeric_limits<double>::quiet_NaN();  ///< the figures compared, for the
  double expected = std::numeric_limits<double>::quiet_NaN();  ///< report; NaN: not shown
};

/// Makes the comparison "sample equals expected" in units of `scale`.
Comparison equal_to(std::string what, const Jackknifed& sample, double expected, double scale,
                    double margin, std::span<const double> node_counts, double theory_error = 0);

/// Makes the comparison "sample is at least 0" in units of `scale`.
Comparison at_least_zero(std::string what, const Jackknifed& sample, double scale, double zone,
                         std::span<const double> node_counts, double theory_error = 0);

/// Decides for the claim: the one-sided bounds of the effect at level alpha lie inside the margin
/// less the theory's error. For `equal` these are two one-sided tests (Schuirmann 1987). False for
/// an effect or MCSE that is not a number.
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

}  // namespace headlab
