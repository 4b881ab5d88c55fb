// SPDX-License-Identifier: Apache-2.0
/// \file The pilot study behind optimal weights.
#pragma once

#include <vector>

#include <Eigen/Core>

#include "engine/run/session.h"
#include "engine/scenario/preparation.h"

namespace headlab {

struct Condition;
struct Plan;
struct Streams;

/// a* = M^-1 1 / (1^T M^-1 1) [H] for M [H][H], symmetric and positive definite: the weights of sum
/// 1 with the least a^T M a. Throws ParameterError where M is singular to the float32 that the
/// kernel weights are computed in.
std::vector<double> optimal_weights(const Eigen::MatrixXd& m);

/// The plan with its draws from `streams`; a fixed design stays the run's.
Plan drawn_from(Plan plan, const Streams& streams);

/// The plan of the pilot: pairwise conditional moments under uniform weights, keyed with the
/// pilot's own seed and drawn from streams of its own. A fixed design is the run's, because the
/// weights are to be optimal on it. Requires weights of law `optimal`.
Plan pilot_plan(const Condition& condition, const Preparation& found = {});

/// Finds weights of law `optimal` by a pilot study of the heads there are, with M = mean over the
/// queries of C + B B^T; for other weights there is nothing to find. The weights depend on the
/// scenario and the backend, not on the threads or the run's seed. Throws InvalidInput where
/// `optimal_weights` finds none. False where the session stopped the pilot.
[[nodiscard]] bool find_weights(const Condition& condition, Preparation& found,
                                const Session& session);

}  // namespace headlab
