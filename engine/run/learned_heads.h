// SPDX-License-Identifier: Apache-2.0
/// \file Heads learned once for a whole run.
#pragma once

#include <functional>

#include "engine/run/session.h"
#include "engine/scenario/law/subspaces/subspaces.h"
#include "engine/scenario/preparation.h"
#include "kernels/learning/fit.h"

namespace headlab {

struct Condition;

/// Learns the heads of a condition where learns_heads_once(), on a sample of the law's own seed
/// from streams of its own (on a fixed design, of that design), and the weights where they are
/// learned; else nothing is found. Separate matrices W_Q, W_K become W_K = Q R and W_Q R^T, which
/// have the same logits. The heads depend on the scenario, not on the run's seed, and on the
/// threads in no bit. Throws InvalidInput where the fit does not stay finite. None where the
/// session ended it. \param check hears where the fit stands
std::optional<Preparation> learn_heads(const Condition& condition, const Session& session,
                                       const std::function<void(const FitCheck&)>& check = {});

/// The subspaces of a condition whose heads were learned, from the heads of their fit.
Subspaces learned_subspaces(const Condition& condition, HeadParameters heads);

}  // namespace headlab
