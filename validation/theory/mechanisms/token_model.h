// SPDX-License-Identifier: Apache-2.0
/// \file A scenario with stages before the weights as a model of heads on tokens.
#pragma once

#include <cstdint>

#include "validation/theory/model/model.h"

namespace headlab {

struct Condition;
struct Plan;

/// Reads a scenario as theory_model() does, and its stages and its sequence:
///
///     transform             orthogonal columns of other lengths
///     merge                 fewer tokens, in other units (merge_points)
///     levels                those without weight at the finest scales are a merge
///     (finite_n_tokens.h) window, skip, sinks   tokens seen keep                  as it is, with
///     counts in tokens
///
/// Throws InvalidInput with one line that names the stage and the assumption that fails.
TheoryModel token_model(const Condition& condition, const Plan& plan);

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
