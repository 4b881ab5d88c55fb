// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/model/parallel.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headlab {
namespace {

TEST(Parallel, EveryIndexIsVisitedOnce) {
  for (const int threads : {1, 3}) {
    std::vector<int> visits(100);
    for_each_index(visits.size(), threads, [&](std::size_t i) { ++visits[i]; });
    EXPECT_EQ(visits, std::vector<int>(100, 1));
  }
  for_each_index(0, 2, [](std::size_t) { FAIL(); });
}

TEST(Parallel, TheFailureOfTheLeastIndexIsThrown) {
  const auto work = [](std::size_t i) {
    if (i >= 5) throw std::runtime_error(std::to_string(i));
  };
  for (const int threads : {1, 4}) {
    try {
      for_each_index(50, threads, work);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "5");
    }
  }
}

}  // namespace
}  // namespace headlab
