// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/growth_study.h"

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/scenario/world.h"

namespace headlab {
namespace {

Condition growth_world() {
  return World{.n = "10",
               .design = R"({ law = "normal", dim = 6 })",
               .regression = R"({ law = "random_cosines", terms = 16, length_scale = 3.0 })",
               .noise = R"({ law = "normal", sd = 1 })",
               .heads = "count = 6\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
               .kernel = R"({ law = "gaussian", bandwidth = 0.3 })",
               .queries = "law = \"design\"\ncount = 4",
               .run = "seed = 4\nreplicates = 10"}
      .condition();
}

TEST(StudyGrowth, ComparesTheDivisorsAndTheBestGrowsWithN) {
  const std::vector<std::uint64_t> sizes = {20, 100, 500, 2500};
  const GrowthStudy study = study_growth(growth_world(), 6, sizes, {.backend = "cpu", .threads = 2},
                                         {.replicates = 1024});
  EXPECT_TRUE(study.outcome.complete);
  EXPECT_EQ(study.dims, (std::vector<int>{1, 2, 3, 6}));
  EXPECT_EQ(study.replicates, 1024u);
  EXPECT_EQ(study.growth.n.size() + study.growth.left_out.size(), sizes.size());
  for (std::size_t i = 1; i < study.growth.n.size(); ++i) {
    EXPECT_GT(study.growth.best[i].value, study.growth.best[i - 1].value);
  }
}

TEST(StudyGrowth, GivesTheSameBitsForAnyNumberOfThreads) {
  const std::vector<std::uint64_t> sizes = {50, 100, 200, 400};
  const auto figures = [&](int threads) {
    return study_growth(growth_world(), 6, sizes, {.backend = "cpu", .threads = threads},
                        {.replicates = 1024})
        .growth;
  };
  const Growth one = figures(1), three = figures(3);
  EXPECT_EQ(one.errors, three.errors);
  EXPECT_EQ(one.n, three.n);
  for (std::size_t i = 0; i < one.n.size(); ++i) {
    EXPECT_EQ(one.best[i].value, three.best[i].value);
  }
}

TEST(StudyGrowth, StopsWhereTimeIsUp) {
  const std::vector<std::uint64_t> sizes = {50, 100, 200, 400};
  const GrowthStudy study = study_growth(growth_world(), 6, sizes, {.deadline = deadline_in(0)});
  EXPECT_FALSE(study.outcome.complete);
  EXPECT_EQ(study.growth.verdict, "unfinished");
}

TEST(StudyGrowth, RefusesMoreSizesThanBlocksCanTellApart) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t n = 20; n < 37; ++n) sizes.push_back(n);
  EXPECT_THROW(study_growth(growth_world(), 6, sizes, {.backend = "cpu"}, {.replicates = 1024}),
               InvalidInput);
}

}  // namespace
}  // namespace headlab
