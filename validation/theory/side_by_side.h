// SPDX-License-Identifier: Apache-2.0
/// \file A simulation compared with the closed forms of the same condition.
#pragma once

#include <vector>

#include "engine/results/computed.h"

namespace headlab {

/// Computes z = (simulated - computed)/sqrt(MCSE^2 + remainder^2 + rounding^2) for the figures of
/// the summary, and the largest |z| over queries of the heads' biases, variances and (pairs of
/// heads) covariances. z is NaN where the MCSE is 0 or unknown: such figures differ by rounding
/// alone; and where it says little: of what fewer than 20 replicates carry, and of C/V whose V is
/// less than 6 standard errors from 0. Squared biases have none either, because near 0 their z is
/// not normal: the biases are tested instead.
///
/// The remainder is that of the closed form; one that is unknown counts as 0, and of the MSE the
/// remainders of its variance and covariance count then. The simulation computes in float32: a head
/// is off by up to u = eps (|m(x)| + |B| + sqrt(V)), a second moment by 2 sqrt(moment) u + u^2.
/// \param truth m at the queries [Q]
SideBySide side_by_side(const ConditionEstimates& simulated, const ErrorTerms<Remainder>& computed,
                        const std::vector<double>& truth);

/// The same of a study of depth, layer by layer: "layers[3].entropy". Bounds have no z.
SideBySide side_by_side(const LayerEstimates& simulated, const TheoryResult& computed);

}  // namespace headlab
