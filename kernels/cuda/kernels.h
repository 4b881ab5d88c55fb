// SPDX-License-Identifier: Apache-2.0
/// \file The launches, one for each step of a batch of replicates.
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/runtime.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Draws the points, values and noise scales of a batch (draw.cu).
void draw(Stream& stream, const DrawArguments& arguments);

/// Weighs every key of `replicates` replicates and sums (weigh_sums.cu, weigh_pairs.cu,
/// weigh_ensemble.cu). Writes rows of partial sums.
void weigh_sums(Stream& stream, Form form, const WeighArguments& arguments,
                std::int64_t replicates);
void weigh_pairs(Stream& stream, Form form, int pair_tile, const WeighArguments& arguments,
                 std::int64_t replicates);
void weigh_ensemble(Stream& stream, Form form, const WeighArguments& arguments,
                    std::int64_t replicates);

/// Adds the partial sums of the chunks in their order (moments.cu).
void collect(Stream& stream, const CollectArguments& arguments);

/// Does the queries again whose sums were not safe in float32 (robust.cu).
void weigh_robust(Stream& stream, const RobustArguments& arguments, std::int64_t replicates);

/// From sums to statistics, to leaves, to nodes (moments.cu).
void statistics(Stream& stream, const StatisticsArguments& arguments);
void leaves(Stream& stream, const MomentArguments& arguments);
void merge_leaves(Stream& stream, const MomentArguments& arguments);

/// Estimates of heads that are learned from keys and projected queries, and what their gradient
/// needs of them; the gradient (learn.cu).
void estimate_heads(Stream& stream, const FitArguments& arguments);
void gradient_of_heads(Stream& stream, const FitArguments& arguments);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
