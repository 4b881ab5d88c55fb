// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/subset_sum.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/stack/testing/known_stack.h"

namespace headlab {
namespace {

TEST(subset_sum, finds_the_nearest_of_known_sets) {
  for (const auto& known : known_depth_cases("subset_sum")) {
    const auto x = known["inputs"]["x"].get<std::vector<double>>();
    const double z = known["inputs"]["z"];
    const double eps = known["inputs"]["eps"];
    EXPECT_NEAR(std::abs(nearest_subset_sum(x, z) - z), known["expected"]["best_error"], 1e-12);
    const std::vector<double> sums = subset_sums(x);
    EXPECT_EQ(sums.size(), std::size_t{1} << x.size());
    EXPECT_TRUE(std::ranges::is_sorted(sums));
    EXPECT_EQ(std::ranges::count_if(sums, [&](double s) { return std::abs(s - z) <= eps; }),
              known["expected"]["hits"].get<int>());
  }
}

TEST(subset_sum, agrees_with_all_sums) {
  const std::vector<double> x = {0.9, -0.4, 0.33, -0.71, 0.05, 0.62, -0.13};
  const std::vector<double> sums = subset_sums(x);
  for (double z = -2; z <= 2.5; z += 0.01) {
    double least = std::abs(z);
    for (const double s : sums) least = std::min(least, std::abs(s - z));
    EXPECT_NEAR(std::abs(nearest_subset_sum(x, z) - z), least, 1e-15);
  }
  EXPECT_EQ(nearest_subset_sum({}, 0.3), 0);
}

}  // namespace
}  // namespace headlab
