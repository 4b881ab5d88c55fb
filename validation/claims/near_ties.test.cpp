// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/near_ties.h"

#include <cmath>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/testing/paths.h"

namespace headlab {
namespace {

TEST(NearTies, ExactNoiseMeetsTheKnownAnswersBetweenItsNodes) {
  const auto answers = nlohmann::json::parse(std::ifstream(test::known_answers()));
  int compared = 0;
  for (const auto& known : answers.at("finite_n_noise")) {
    if (known.at("query_projection") != nlohmann::json({0, 0})) continue;
    const std::uint64_t n = known.at("n");
    const double cosine = known.at("cos_angle"), bandwidth = known.at("bandwidth");
    if (cosine == 0 || compared > 0) continue;  // one says it all, and each takes its time
    const auto noise = exact_noise(n, bandwidth);
    const double exact = static_cast<double>(n) * known.at("C").get<double>();
    EXPECT_LE(std::abs(noise(cosine) - exact), 1e-6) << cosine;
    EXPECT_LE(std::abs(noise(1) - static_cast<double>(n) * known.at("V").at(0).get<double>()),
              1e-6);
    // Negative control: too few points.
    EXPECT_GT(std::abs(exact_noise(n, bandwidth, 2)(cosine) - exact), 1e-6);
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

TEST(NearTies, InversionsOfOverlapAreSmallAndShrinkLikeOneOverN) {
  // Two heads on one direction and one at right angles; a star with cosines of 0.6.
  Matrices pair(3, Eigen::MatrixXd::Zero(3, 1)), star = pair;
  pair[0](0, 0) = pair[1](0, 0) = pair[2](2, 0) = 1;
  star[0](0, 0) = 1;
  star[1](0, 0) = star[2](0, 0) = 0.6;
  star[1](1, 0) = star[2](2, 0) = 0.8;
  const NearTies few = overlap_near_ties(20, 0.5, {pair, star});
  const NearTies many = overlap_near_ties(80, 0.5, {pair, star});
  EXPECT_GT(many.error_gap, 1e-9);  // more than the quadrature's own error
  EXPECT_LT(many.error_gap, 0.5 * few.error_gap);
  EXPECT_LT(many.index_gap, 0.5 * few.index_gap);
  EXPECT_LT(few.error_gap, 0.02);
  EXPECT_EQ(overlap_near_ties(20, 0.5, {star, pair, pair}).error_gap, few.error_gap);
}

TEST(NearTies, SizesWithoutMeaningAreRefused) {
  EXPECT_THROW(exact_noise(1, 0.5), std::invalid_argument);
  EXPECT_THROW(exact_noise(10, 0.5, 1), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
