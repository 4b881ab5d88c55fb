// SPDX-License-Identifier: Apache-2.0
/// \file Groups of points as tokens: a head on the tokens of independent normal points is a plain
/// head on independent normal points, of other responses.
#pragma once

#include <cstdint>

#include "validation/theory/model/model.h"

namespace headlab {

/// Replaces the points of a model, X ~ N(mu, S), by tokens of `stride` points each, sum_i v X_i and
/// sum_i v Y_i. In units of v sqrt(stride) tokens have the covariance S again, so that with
/// v = 1/stride
///
///     (n, b, x, s2; stride s) becomes (n/s, sqrt(s) b, sqrt(s) x, s2/s), softmax t -> s t,
///
/// and the regression becomes the mean response given the token, with the variance of m within
/// groups besides the noise. The truth at the query stays.
/// \param weight v > 0
/// Throws InvalidInput, with the assumption that fails: a mixture design, or a regression whose
/// products at two points have no closed form. n must be a multiple of the stride.
void merge_points(TheoryModel& model, std::uint64_t stride, double weight);

}  // namespace headlab
