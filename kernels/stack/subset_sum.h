// SPDX-License-Identifier: Apache-2.0
/// \file Sums of subsets of a few numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headlab {

/// Sums of all subsets, the empty one included, ascending [2^m]; m <= 20.
std::vector<double> subset_sums(std::span<const double> numbers);

/// The subset sum nearest to `target`, in O(2^(m/2)) from the two halves; the
/// lower of two as near.
double nearest_subset_sum(std::span<const double> numbers, double target);

}  // namespace headlab
