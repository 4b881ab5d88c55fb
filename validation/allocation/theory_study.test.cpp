// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/theory_study.h"

#include <algorithm>
#include <numbers>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "kernels/plan.h"
#include "validation/allocation/allocate.h"
#include "validation/allocation/allocation_json.h"

namespace headlab {
namespace {

Condition condition(const std::vector<std::string>& sets = {}) {
  return World{.n = "100",
               .design = R"({ law = "normal", dim = 6 })",
               .regression = R"({ law = "random_cosines", terms = 8, length_scale = 3.0 })",
               .noise = R"({ law = "normal", sd = 1.0 })",
               .heads = "count = 1\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
               .kernel = R"({ law = "gaussian", bandwidth = 0.5 })",
               .queries = "law = \"design\"\ncount = 2",
               .run = "replicates = 10"}
      .condition(sets);
}

TEST(TheoryStudy, DimensionsAreAllWhereTheyAreFewAndTheDivisors) {
  EXPECT_EQ(theory_dims(6, 12), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(theory_dims(12, 4), (std::vector<int>{1, 2, 3, 4}));
  const std::vector<int> many = theory_dims(4096, 4096);
  EXPECT_EQ(many.back(), max_theory_dim);
  for (int k = 1; k <= 32; ++k) EXPECT_TRUE(std::ranges::find(many, k) != many.end());
  EXPECT_LE(many.size(), 37u);
  const std::vector<int> odd = theory_dims(98, 98);
  EXPECT_TRUE(std::ranges::find(odd, 49) != odd.end());
}

TEST(TheoryStudy, RowsAreTheErrorsOfTheTheoryAndKStarGrows) {
  const std::vector<std::uint64_t> sizes = {1000, 100, 10000};
  const TheoryGrowth growth = study_theory(condition(), 6, BandwidthRule::fixed, sizes, 2);
  ASSERT_EQ(growth.studies.size(), 3u);
  EXPECT_LE(growth.normalisation_error, 1e-9);
  EXPECT_LE(growth.change, 1e-3);
  for (std::size_t i = 0; i < 3; ++i) {
    const TheoryStudy& study = growth.studies[i];
    EXPECT_EQ(study.n, std::uint64_t(std::lround(100 * std::pow(10, i))));
    ASSERT_EQ(study.rows.size(), 6u);
    for (const TheoryRow& row : study.rows) {
      const TruthLaw truth = truth_law(condition());
      const PopulationSetting setting = {0.5, study.n};
      const PopulationHead head =
          population_heads({.k = row.k, .correlations = truth.correlations}, {&setting, 1}).at(0);
      const PopulationEnsemble ensemble = {std::floor(6.0 / row.k), row.k, 6, study.n, 1.0};
      EXPECT_LE(std::abs(row.error.mse - population_error(head, ensemble, truth).mse), 1e-8);
      if (6 % row.k == 0) {
        EXPECT_DOUBLE_EQ(row.smooth_mse, row.error.mse);
      } else {
        EXPECT_LT(row.smooth_mse, row.error.mse) << "a budget that is left over costs";
      }
      EXPECT_GE(row.error.mse, study.rows[study.best].error.mse);
    }
    if (i > 0) {
      EXPECT_GE(study.continuous.value, growth.studies[i - 1].continuous.value);
    }
  }
  EXPECT_EQ(growth.slopes.size(), 2u);
  const auto json = nlohmann::json::parse(
      theory_json({growth}, theory_limits(condition(), TheoryMean::population), {}, {}));
  EXPECT_EQ(json["studies"].size(), 3u);
  EXPECT_EQ(json["studies"][0]["allocations"].size(), 6u);
  EXPECT_EQ(json["growth"][0]["slopes"].size(), 2u);
}

TEST(TheoryStudy, TunedWidthsAreBest) {
  const std::vector<std::uint64_t> sizes = {100, 10000};
  const TheoryGrowth tuned = study_theory(condition(), 1, BandwidthRule::tuned, sizes, 2);
  for (const TheoryStudy& study : tuned.studies) {
    for (const TheoryRow& row : study.rows) {
      // Both neighbours have a larger error, by what the parabola may be off at most.
      for (const double factor : {0.8, 1.25}) {
        const Condition moved =
            condition({"heads.kernel.bandwidth=" + std::to_string(factor * row.width)});
        const std::uint64_t n[] = {study.n};
        const TheoryGrowth other = study_theory(moved, 1, BandwidthRule::fixed, n, 2);
        EXPECT_GT(other.studies[0].rows[static_cast<std::size_t>(row.k - 1)].smooth_mse,
                  row.smooth_mse)
            << study.n << ' ' << row.k;
      }
    }
  }
  // Windows narrow with n.
  EXPECT_LT(tuned.studies[1].rows[0].width, tuned.studies[0].rows[0].width);
}

TEST(TheoryStudy, ConstantsAreThoseOfTheirDefinitions) {
  const double b = 0.17, a = 1 / (b * b);
  const GrowthConstants constants = growth_constants(condition({"heads.kernel.bandwidth=0.17"}), 6);
  // E over x ~ N(0, 1) of Z(2a)/Z(a)^2, Z(A) = (1+A)^(-1/2) exp(-x^2 A/(2(1+A))).
  const auto log_z = [](double tilt, double x) {
    return -x * x * tilt / (2 * (1 + tilt)) - std::log1p(tilt) / 2;
  };
  const double gamma = 2 * boost::math::quadrature::gauss_kronrod<double, 61>::integrate(
                               [&](double x) {
                                 return std::exp(-x * x / 2 + log_z(2 * a, x) - 2 * log_z(a, x)) /
                                        std::sqrt(2 * std::numbers::pi);
                               },
                               0, 60, 8);
  EXPECT_LE(std::abs(constants.first_order - std::log(10.0) / std::log(gamma)), 1e-8);
  EXPECT_LE(std::abs(constants.first_order - 0.7593), 1e-4);
  // The relative entropy of N(a x/(1+a), 1/(1+a)) to N(0, 1) at x^2 = 1.
  const double entropy = 0.5 * (1 / (1 + a) + std::pow(a / (1 + a), 2) - 1 + std::log(1 + a));
  EXPECT_LE(std::abs(constants.condensation - std::log(10.0) / entropy), 1e-10);
  EXPECT_DOUBLE_EQ(constants.asymptotic, constants.condensation);
  // Where windows are narrow and noise is small, single keys are worth their noise.
  const GrowthConstants quiet =
      growth_constants(condition({"heads.kernel.bandwidth=0.05", "data.noise.sd=0.01",
                                  "data.regression.length_scale=20"}),
                       6);
  EXPECT_GT(quiet.asymptotic, 1.01 * quiet.condensation);
  // log-normal weights condense where their variance k/t^2 is 2 log n.
  const GrowthConstants softmax =
      growth_constants(condition({"heads.kernel={law=\"softmax\",temperature=3}"}), 6);
  EXPECT_DOUBLE_EQ(softmax.condensation, 18 * std::log(10.0));
}

Condition small_condition_text(const std::vector<std::string>& sets = {}) {
  std::vector<std::string> all = {"data.design.dim=4", "data.regression.terms=4",
                                  "data.regression.length_scale=2", "data.n=40"};
  all.insert(all.end(), sets.begin(), sets.end());
  return condition(all);
}

TEST(ExactStudy, IsWhatASimulationEstimates) {
  const std::uint64_t n[] = {40};
  for (const BandwidthRule rule : {BandwidthRule::fixed, BandwidthRule::rate}) {
    const TheoryStudy exact = study_exactly(small_condition_text(), 4, rule, n, 2).studies.at(0);
    ASSERT_EQ(exact.rows.size(), 4u);
    const AllocationStudy simulated =
        allocate(small_condition_text(), 4, {.backend = "cpu", .threads = 2},
                 {.rule = rule, .replicates = 4096});
    const TheoryStudy other =
        study_exactly(small_condition_text({"queries.seed=5"}), 4, rule, n, 2).studies.at(0);
    for (std::size_t i = 0; i < exact.rows.size(); ++i) {
      const Estimate& mse = simulated.rows[i].mse;
      EXPECT_EQ(exact.rows[i].heads, simulated.rows[i].heads);
      EXPECT_DOUBLE_EQ(exact.rows[i].width, kernel_width(simulated.rows[i].kernel));
      EXPECT_LE(std::abs(mse.value - exact.rows[i].error.mse), 4 * mse.mcse) << i;
      // Negative control: other queries.
      EXPECT_FALSE(std::abs(mse.value - other.rows[i].error.mse) <= 4 * mse.mcse) << i;
    }
    ASSERT_TRUE(simulated.advised.has_value());
    if (simulated.kind == AdviceKind::best) {
      EXPECT_EQ(*simulated.advised, exact.best);
    }
  }
}

TEST(ExactStudy, TunedWidthsAreBestAndSizesAscend) {
  const std::uint64_t n[] = {200, 50};
  const TheoryGrowth tuned = study_exactly(small_condition_text(), 4, BandwidthRule::tuned, n, 2);
  EXPECT_EQ(tuned.studies[0].n, 50u);
  EXPECT_EQ(tuned.slopes.size(), 1u);
  EXPECT_LE(tuned.normalisation_error, 1e-7);
  for (const TheoryStudy& study : tuned.studies) {
    for (const TheoryRow& row : study.rows) {
      for (const double factor : {0.8, 1.25}) {
        const std::uint64_t one[] = {study.n};
        const TheoryGrowth moved = study_exactly(
            small_condition_text({"heads.kernel.bandwidth=" + std::to_string(factor * row.width)}),
            4, BandwidthRule::fixed, one, 2);
        EXPECT_GT(moved.studies[0].rows[static_cast<std::size_t>(row.k - 1)].error.mse,
                  row.error.mse)
            << study.n << ' ' << row.k << ' ' << factor;
      }
    }
  }
  const auto json = nlohmann::json::parse(
      theory_json({tuned}, theory_limits(small_condition_text(), tuned.mean), {}, {}));
  EXPECT_EQ(json["source"], "exact");
  EXPECT_TRUE(json["growth"][0]["first_order"].is_null());
}

TEST(ExactStudy, FindsANarrowWindowBehindAWideOne) {
  // The error of three queries has several minima over the width: a wide window that sees nothing
  // but the mean is one of them.
  const Condition one =
      small_condition_text({"data.regression.terms=8", "data.regression.length_scale=0.5",
                            "queries.count=3", "queries.seed=1", "data.noise.sd=0.1"});
  const std::uint64_t n[] = {1000};
  Condition at_n = one;
  at_n.n = 1000;
  const TheoryStudy exact = study_exactly(one, 2, BandwidthRule::tuned, n, 2).studies.at(0);
  const AllocationStudy simulated = allocate(at_n, 2, {.backend = "cpu", .threads = 2},
                                             {.rule = BandwidthRule::tuned, .replicates = 4096});
  for (std::size_t i = 0; i < exact.rows.size(); ++i) {
    const double wide =
        study_exactly(
            small_condition_text({"data.regression.terms=8", "data.regression.length_scale=0.5",
                                  "queries.count=3", "queries.seed=1", "data.noise.sd=0.1",
                                  "heads.kernel.bandwidth=8.0"}),
            2, BandwidthRule::fixed, n, 2)
            .studies.at(0)
            .rows[i]
            .error.mse;
    EXPECT_LE(exact.rows[i].error.mse, wide);
    // Steps of 2^(1/16) apart, in a pilot: one finds no better width than the other by far.
    const Estimate& mse = simulated.rows[i].mse;
    EXPECT_LE(exact.rows[i].error.mse, 1.01 * mse.value + 4 * mse.mcse);
    EXPECT_GE(exact.rows[i].error.mse, 0.99 * mse.value - 4 * mse.mcse);
  }
  ASSERT_TRUE(simulated.advised.has_value());
  EXPECT_EQ(exact.best, *simulated.advised);
}

TEST(ExactStudy, RefusesWhereThereIsNoExactForm) {
  const std::vector<std::vector<std::string>> table = {
      {"heads.kernel={law=\"laplace\",bandwidth=1}"},
      {"heads.subspaces={law=\"haar\"}"},
      {"heads.subspaces={law=\"haar\"}", "data.fixed_design=true"},
      {"data.design={law=\"uniform\",dim=4}"}};
  for (const std::vector<std::string>& sets : table) {
    EXPECT_THROW(require_exact_study(small_condition_text(sets), 4, BandwidthRule::fixed),
                 InvalidInput)
        << sets[0];
  }
  // More heads than there are orthogonal ones would be drawn at random.
  EXPECT_THROW(require_exact_study(small_condition_text(), 5, BandwidthRule::fixed), InvalidInput);
  // Given the design every law has an exact form, of which there is no normalisation error.
  const Condition given = small_condition_text(
      {"data.fixed_design=true", "heads.kernel={law=\"laplace\",bandwidth=1}"});
  const std::uint64_t n[] = {40};
  EXPECT_TRUE(std::isnan(study_exactly(given, 4, BandwidthRule::fixed, n, 1).normalisation_error));
}

TEST(TheoryStudy, RefusesWhatItIsNotAbout) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"data.design={law=\"uniform\",dim=6}", "data.design"},
      {"data.design.ar1=0.5", "data.design"},
      {"data.noise={law=\"laplace\",sd=1}", "data.noise"},
      {"data.regression={law=\"linear\",coefficients=[1,1,1,1,1,1]}", "data.regression"},
      {"data.fixed_design=true", "data.fixed_design"},
      {"heads.kernel={law=\"laplace\",bandwidth=1}", "heads.kernel"},
      {"heads.subspaces={law=\"haar\"}", "heads.subspaces"},
      {"heads.weights={law=\"explicit\",values=[1.0]}", "heads.weights"},
      {"queries={law=\"points\",points=[[0,0,0,0,0,0]]}", "queries"}};
  EXPECT_NO_THROW(require_theory(condition(), 6));
  for (const auto& [set, key] : table) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, key + ": ",
                        refusal_line([&, set = set] { require_theory(condition({set}), 6); }))
        << set;
  }
  EXPECT_THROW(require_theory(condition(), 7), InvalidInput);
  const std::uint64_t one[] = {1};
  EXPECT_THROW(study_theory(condition(), 6, BandwidthRule::fixed, one, 1), InvalidInput);
}

}  // namespace
}  // namespace headlab
