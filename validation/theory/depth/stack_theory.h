// SPDX-License-Identifier: Apache-2.0
/// \file Closed forms of a study of depth: which one applies, and the metrics it gives.
#pragma once

#include "engine/results/computed.h"

namespace headlab {

struct Condition;

/// Computes what is known of the layers of a stack:
///
///   - tokens on a simplex, softmax, maps `scaled_identity`, no mask and no MLP, any skip, memory
///     and order, norm `rms` (or `layer` with centred tokens) without gain and bias: all metrics
///   - kernels `fixed`, `uniform`, or `independent_logits` without mask, with fresh Gaussian maps
///     and without norm, MLP and memory: residual_squared, mean_squared, residual_share_of_means
///   - other softmax stacks of given tokens and maps, without mask, norm, MLP and skip: an upper
///     bound of `diameter`; with memory for one head
///
/// Throws InvalidInput with one line for a stack that none of these is for.
/// \param condition of a study of depth
TheoryResult stack_theory(const Condition& condition);

}  // namespace headlab
