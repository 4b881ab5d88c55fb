// SPDX-License-Identifier: Apache-2.0
/// \file The Nadaraya-Watson weights of a head, and the statistics of a replicate, in float64.
#pragma once

#include <span>
#include <vector>

#include "kernels/reference/training_set.h"
#include "kernels/statistics/moments.h"

namespace headlab {

struct Plan;

/// NW weights w_i [N] of one head at one query, in the log domain, after the stages of
/// kernels/mechanism.h from `levels` on. Where every kernel value is exactly zero the nearest token
/// that the head sees, in its metric, gets weight 1. Counts the window.
/// \param tokens of the training set, by tokens_of()
/// \param log_weight_sum gets log sum_i w_i before they are divided by their sum; may be null
std::vector<double> nw_weights(const Plan& plan, const TrainingSet& tokens, int head, int query,
                               WindowCounts& windows, double* log_weight_sum = nullptr);

/// Writes the statistics of one replicate at one query [layout.per_query()], see
/// kernels/statistics/moments.h, given the weights [H][N] of its heads there.
void query_statistics(const Plan& plan, const TrainingSet& tokens,
                      std::span<const std::vector<double>> weights, double* out);

/// 1 / sum_i w_i^2 of weights of sum 1.
double effective_sample_size(std::span<const double> weights);

/// The statistics of one replicate [layout.statistics()], see kernels/statistics/moments.h.
/// \param min_sample_size gets the least one of all heads and queries; may be null
std::vector<double> reference_statistics(const Plan& plan, const TrainingSet& sample,
                                         WindowCounts& windows, double* min_sample_size = nullptr);

}  // namespace headlab
