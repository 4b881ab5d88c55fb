// SPDX-License-Identifier: Apache-2.0
/// \file A simulation compared with the closed forms of the same condition.
#pragma once

#include "engine/results/computed.h"

namespace headlab {

/// Computes z = (simulated - computed)/MCSE for the figures of the summary, and the largest |z|
/// over queries of the heads' biases, variances and (pairs of heads) covariances. z is NaN where
/// the MCSE is 0 or unknown: such figures differ by rounding alone. Squared biases have none
/// either, because near 0 their z is not normal: the biases are tested instead.
SideBySide side_by_side(const ConditionEstimates& simulated, const ErrorTerms<Remainder>& computed);

}  // namespace headlab
