// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/octave_search.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <variant>

#include "validation/allocation/allocations.h"

namespace headlab {
namespace {

constexpr int first_reach = 4 * OctaveSearch::octave;
constexpr int max_reach = first_reach + 8 * OctaveSearch::octave;

}  // namespace

OctaveSearch::OctaveSearch(const Condition& condition)
    : from_(kernel_width(condition.kernel)),
      power_(std::holds_alternative<SoftmaxKernel>(condition.kernel) ? 2 : 1) {}

double OctaveSearch::width(int step) const {
  return from_ * std::exp2(power_ * step / octave);
}

bool OctaveSearch::is_new(int step) const {
  const double value = width(step);
  return value >= min_kernel_width && value <= max_kernel_width && !errors.contains(step);
}

int OctaveSearch::best() const {
  return std::ranges::min_element(errors, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

bool OctaveSearch::is_at_boundary() const {
  return best() == errors.begin()->first || best() == errors.rbegin()->first;
}

std::vector<int> OctaveSearch::first_grid() const {
  std::vector<int> steps;
  for (int step = -first_reach; step <= first_reach; step += octave) steps.push_back(step);
  return steps;
}

std::vector<int> OctaveSearch::beyond_the_end() const {
  if (std::abs(best()) >= max_reach) return {};
  if (best() == errors.begin()->first) return {best() - octave};
  if (best() == errors.rbegin()->first) return {best() + octave};
  return {};
}

std::vector<int> OctaveSearch::around_the_best(int reach) const {
  return {best() - reach, best() + reach};
}

}  // namespace headlab
