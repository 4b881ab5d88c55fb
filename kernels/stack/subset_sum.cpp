// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/subset_sum.h"

#include <algorithm>
#include <cstddef>

#include "kernels/stack/formulas.h"

namespace headlab {

std::vector<double> subset_sums(std::span<const double> numbers) {
  std::vector<double> sums = {0};
  std::vector<double> shifted;
  std::vector<double> merged;
  for (const double number : numbers) {
    shifted.clear();
    for (const double sum : sums) shifted.push_back(sum + number);
    merged.resize(2 * sums.size());
    std::ranges::merge(sums, shifted, merged.begin());
    sums.swap(merged);
  }
  return sums;
}

double nearest_subset_sum(std::span<const double> numbers, double target) {
  const std::size_t half = numbers.size() / 2;
  const std::vector<double> low = subset_sums(numbers.first(half));
  const std::vector<double> high = subset_sums(numbers.subspan(half));
  double nearest = 0;
  auto try_sum = [&](double sum) { nearest = stack::nearer_sum(nearest, sum, target); };
  // The partner of a rising sum falls.
  std::size_t j = high.size() - 1;
  for (const double sum : low) {
    while (j > 0 && sum + high[j] > target) {
      try_sum(sum + high[j]);
      --j;
    }
    try_sum(sum + high[j]);
    if (j + 1 < high.size()) try_sum(sum + high[j + 1]);
  }
  return nearest;
}

}  // namespace headlab
