// SPDX-License-Identifier: Apache-2.0
/// \file Launches of the kernels, one for each step of a batch of replicates.
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/runtime.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

struct DrawArguments;

/// Draws the points, values and noise scales of a batch (draws.cu).
void draw(Stream& stream, const DrawArguments& arguments);

/// Projects the points or tokens of a batch to keys, in float32 (projection.cu).
void project(Stream& stream, const ProjectArguments& arguments);

/// Stages of a mechanism (tokens.cu): tokens from points; of projected keys, in this order, the
/// mean keys of the blocks that `keep` scores, the averages of `levels`, and the tokens not seen.
void make_tokens(Stream& stream, const TokenArguments& arguments);
void pool_keys(Stream& stream, const KeyArguments& arguments);
void average_keys(Stream& stream, const KeyArguments& arguments);
void hide_tokens(Stream& stream, const KeyArguments& arguments);

/// Marks the tokens that heads keep (keep.cu).
void select_kept(Stream& stream, const KeepArguments& arguments);

/// Weighs every key of `replicates` replicates and writes rows of partial sums: sums of each head
/// (sums.cu), sums over pairs of heads (register_pairs.cu, pair_sums.cu), the noise of the ensemble
/// (ensemble.cu).
void sum_weights(Stream& stream, Microkernel microkernel, const WeighArguments& arguments,
                 std::int64_t replicates);
void sum_register_pairs(Stream& stream, Microkernel microkernel, int heads,
                        const WeighArguments& arguments, std::int64_t replicates);
void sum_pairs(Stream& stream, Microkernel microkernel, const WeighArguments& arguments,
               std::int64_t replicates);
void sum_ensemble(Stream& stream, Microkernel microkernel, const WeighArguments& arguments,
                  std::int64_t replicates);

/// Adds the partial sums of the panels in order (moments.cu).
void collect(Stream& stream, const CollectArguments& arguments);

/// Marks and lists the rows whose float32 sums are not safe; adds the windows of a batch to the
/// counters of their nodes (rows.cu). Both use the scratch memory.
RowList list_unsafe(Stream& stream, const FallbackArguments& arguments, std::int64_t rows);
void count_windows(Stream& stream, const FallbackArguments& arguments, std::int64_t replicates);
std::int64_t row_scratch_bytes(std::int64_t rows);

/// Sums the rows of a list again, those whose float32 sums are not safe, or all (fallback.cu).
void sum_fallback(Stream& stream, const FallbackArguments& arguments, const RowList& list,
                  std::int64_t replicates);

/// Statistics from sums, those of controls from both, leaves from statistics, nodes from leaves
/// (moments.cu).
void statistics(Stream& stream, const StatisticsArguments& arguments);
void control_statistics(Stream& stream, const ControlArguments& arguments);
void leaves(Stream& stream, const MomentArguments& arguments);
void merge_leaves(Stream& stream, const MomentArguments& arguments);

/// ConditionEstimates of heads that are learned, from keys and projected queries, with the
/// normalisers that the gradient needs; and the gradient (head_gradients.cu).
void estimate_heads(Stream& stream, const FitArguments& arguments);
void gradient_of_heads(Stream& stream, const FitArguments& arguments);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
