// SPDX-License-Identifier: Apache-2.0
/// \file Examples that a claim computes from the stack of its scenario, without a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Core>

#include "kernels/stack/stack.h"
#include "validation/claims/experiment.h"
#include "validation/literature/integer_ranks.h"

namespace headlab {

struct Plan;

/// Examples of a claim that holds, or fails, for almost all tokens or weights.
inline constexpr std::uint64_t drawn_examples = 5;

/// The plan of a condition, with the fault of the experiment.
Plan faulty_plan(const Experiment& experiment, std::size_t condition);

/// M_h and V_h of a head in a layer, d x d.
Eigen::MatrixXd query_key_map(const Stack& stack, const StackDraws& draws, int layer, int head,
                              Eigen::Index d);
Eigen::MatrixXd value_map(const Stack& stack, const StackDraws& draws, int layer, int head,
                          Eigen::Index d);

/// Elements of a matrix times 1000, rounded: generic where the matrix is.
IntegerMatrix thousandths(const Eigen::MatrixXd& matrix);

/// Equal parts of a sample, each of which is left out once.
inline constexpr std::size_t sample_parts = 32;

/// A statistic of a sample and of the sample without each part. \param values as many as
/// sample_parts or a multiple
Jackknifed jackknifed(const std::vector<double>& values,
                      const std::function<double(std::vector<double>)>& statistic);

/// Numbers in each part of a sample.
std::vector<double> part_counts(std::size_t values);

/// Computes the expected number of subsets of m uniforms within eps of z, of strong lottery tickets
/// (arXiv:2511.04217): an entry of a d x d map is a subset sum of m = hidden/d samples.
///
///     [|z| <= eps] + sum_k C(m, k) P(|S_k - z| <= eps),  S_k the sum of k
///
/// an upper bound on the probability of a hit: errors fall by a factor 2 per sample at most.
/// \param count m in [0, 30]  \param eps > 0
double expected_subset_hits(int count, double target, double eps);

}  // namespace headlab
