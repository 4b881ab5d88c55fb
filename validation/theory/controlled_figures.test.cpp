// SPDX-License-Identifier: Apache-2.0
// Figures with exact controls where controls fail easily: far queries, rounding, near perfection.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/control_pilot.h"
#include "engine/run/run.h"
#include "engine/run/simulate.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "kernels/backends.h"
#include "validation/theory/controls/control_means.h"
#include "validation/theory/controls/point_means.h"
#include "validation/theory/model/model.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

const std::string far_text = World{.n = "20",
                                   .design = R"({ law = "normal", dim = 1 })",
                                   .noise = R"({ law = "normal", sd = 1.0 })",
                                   .heads = "count = 1\ndim = 1\nsubspaces = { law = \"aligned\" }",
                                   .kernel = R"({ law = "gaussian", bandwidth = 0.8 })",
                                   .points = "[[4.0]]",
                                   .run = "replicates = 64\nseed = 1\ncontrols = \"exact\""}
                                 .text();

const std::string perfect_text =
    World{.n = "2000",
          .design = R"({ law = "normal", dim = 4 })",
          .regression = R"({ law = "linear", coefficients = [1, 0.5, 0, 0.7] })",
          .noise = R"({ law = "normal", sd = 0.1 })",
          .heads =
              "count = 2\ndim = 2\nsubspaces = { law = \"principal_angles\", angles = [0.5, 1.2] }",
          .kernel = R"({ law = "gaussian", bandwidth = 1.0 })",
          .points = "[[0.5, 0, 0, 0]]",
          .run = "replicates = 64\ncontrols = \"exact\""}
        .text();

ConditionResult run_of(const std::string& text, const std::vector<std::string>& sets,
                       const std::string& backend = "cpu") {
  return run(parse_scenario(text, "figures.toml", sets),
             Session{.backend = backend, .threads = 2, .control_means = control_means})
      .conditions.at(0);
}

/// Expects a figure within four standard errors of what a long run without controls says.
void expect_right(const std::string& text, std::vector<std::string> sets,
                  const std::string& backend = "cpu") {
  const ConditionResult with = run_of(text, sets, backend);
  sets.insert(sets.end(), {"run.controls=\"none\"", "run.seed=99", "run.replicates=100000"});
  const ConditionResult without = run_of(text, sets, "cpu");
  const auto a = numbers_of<Estimate>(with.estimates);
  const auto b = numbers_of<Estimate>(without.estimates);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i].number->value)) continue;
    EXPECT_LE(std::abs(a[i].number->value - b[i].number->value),
              4 * std::hypot(a[i].number->mcse, b[i].number->mcse))
        << a[i].name << " " << a[i].number->value << ", not " << b[i].number->value;
  }
}

TEST(ControlledFigures, FarQueriesAreRight) {
  for (const char* query : {"4.0", "3.9", "2.0"}) {
    const std::string points = "queries.points=[[" + std::string(query) + "]]";
    expect_right(far_text, {points, "run.replicates=512"});
  }
  // By enumeration with many replicates the figure at 4 is .5561 (1).
  const Estimate mse = run_of(far_text, {}).estimates.mse;
  EXPECT_LE(std::abs(mse.value - 0.5561), 4 * mse.mcse);
}

/// 1 - E exp(-s K) of the far problem by the trapezoid rule, which converges beyond float64 here.
double fall_by_quadrature(double s, double query, double bandwidth) {
  double sum = 0;
  const double step = 1.0 / 64;
  for (double x = -12; x <= 12; x += step) {
    const double away = (query - x) / bandwidth;
    sum += step * std::exp(-x * x / 2) * -std::expm1(-s * std::exp(-away * away / 2));
  }
  return sum / std::sqrt(2 * M_PI);
}

TEST(ControlledFigures, BoundsOfMeansHold) {
  for (const double query : {0.5, 4.0}) {
    const Condition condition = parse_scenario(far_text, "figures.toml",
                                               {"queries.points=[[" + std::to_string(query) + "]]"})
                                    .conditions.at(0);
    const Plan plan = make_plan(condition);
    const TheoryModel model = point_model(condition, plan, "");
    const auto points = gaussian_means(model);
    points->set_query(0);
    for (const double s : {0.25, 1.0, 4.0, 8.0, 60.0, 300.0}) {
      const Bounded fall = points->fall(0, std::log(s));
      const double right = fall_by_quadrature(s, query, 0.8);
      EXPECT_LE(std::abs(fall.value - right), fall.error + 1e-14) << query << " " << s;
      // Where series cancel the bound says so.
      if (s <= 8) {
        EXPECT_LE(fall.error, 1e-9 * right) << query << " " << s;
      } else if (s >= 300) {
        EXPECT_GE(fall.error, right) << query << " " << s;
      }
    }
  }
}

class ControlledRows : public FolderTest {};

TEST_F(ControlledRows, AControlOfRoundingAloneIsNotUsed) {
  std::ofstream(at("rows.csv")) << "2.7315\n0.264\n-1.1305\n";
  const std::string text =
      World{
          .n = "10",
          .design = R"({ law = "file", path = "rows.csv" })",
          .regression =
              R"({ law = "cosines", amplitude = [-0.8575, 0.28, -0.9393, 0.1684], frequency = [[1.6329], [0.0034], [1.7822], [-1.0821]] })",
          .noise = R"({ law = "laplace", sd = 1.2362 })",
          .heads = "count = 1\ndim = 1\nsubspaces = { law = \"aligned\" }",
          .kernel = R"({ law = "epanechnikov", bandwidth = 0.91784 })",
          .points = "[[-0.1077]]",
          .run = "replicates = 1024\nseed = 15\ncontrols = \"exact\""}
          .text();
  const std::string rows = "data.design.path=\"" + at("rows.csv") + "\"";
  expect_right(text, {rows});
  expect_right(text, {rows, "heads.kernel={ law = \"laplace\", bandwidth = 0.5 }"});
  // Of what varies with more than rounding nothing is lost.
  EXPECT_GT(
      run_of(text, {rows, "heads.kernel={ law = \"laplace\", bandwidth = 0.5 }"}).controls->tested,
      0u);
}

TEST(ControlledFigures, NearlyPerfectControlsMissOnBothSides) {
  const Scenario scenario = parse_scenario(perfect_text, "figures.toml");
  const Condition& condition = scenario.conditions.at(0);
  const Session session{.backend = "cpu", .threads = 2, .control_means = control_means};
  Preparation found;
  ASSERT_TRUE(find_controls(condition, found, session));
  Plan plan = make_plan(condition, found);
  const MomentLayout layout = plan.layout();
  constexpr std::size_t seeds = 300;
  constexpr std::uint64_t replicates = 64;
  std::vector<Estimate> figures;
  std::vector<double> about_sample_means;
  double truth = 0;
  for (std::size_t seed = 1; seed <= seeds; ++seed) {
    plan.seed = seed;
    const MomentTree tree = simulate(plan, *session.backend, 2, replicates);
    figures.push_back(estimate(tree, plan).queries.at(0).head_covariance.at(0));
    truth += figures.back().value / seeds;
    // The same with the comoment about the sample mean.
    Moments all;
    for (const Node& node : tree.nodes()) merge_moments(layout, all, node.moments);
    about_sample_means.push_back(all.comoment.at(0) / (replicates - 1) +
                                 all.mean.at(layout.controlled_noise_offset()));
  }
  ASSERT_TRUE(plan.controls->use.has_estimates(0, replicates));
  ASSERT_TRUE(plan.controls->use.has_noise(0, replicates));
  double square = 0, square_about_sample_means = 0, below = 0, above = 0;
  for (std::size_t i = 0; i < seeds; ++i) {
    const double z = (figures[i].value - truth) / figures[i].mcse;
    square += z * z / seeds;
    square_about_sample_means +=
        std::pow((about_sample_means[i] - truth) / figures[i].mcse, 2) / seeds;
    below += z < -1 ? 1 : 0;
    above += z > 1 ? 1 : 0;
  }
  // The standard errors of a mean of 300 squares, of Student's law and of a count.
  EXPECT_LT(square, 1 + 5 * std::sqrt(2.0 / seeds));
  EXPECT_GT(square_about_sample_means, 2);
  EXPECT_LT(std::abs(above - below), 4 * std::sqrt(above + below + 1));
}

/// Means over replicates of the differences of `cpu` and `reference`, the largest of all heads and
/// queries, in bounds of that rounding.
struct SharedRounding {
  double of_sums = 0, of_estimates = 0;
};
SharedRounding shared_rounding(const std::string& text, const std::vector<std::string>& sets) {
  const Condition condition = parse_scenario(text, "figures.toml", sets).conditions.at(0);
  const ControlMeans means = control_means(condition, make_plan(condition));
  const Plan plan = control_pilot_plan(condition, {}, means);
  const MomentLayout layout = plan.layout();
  constexpr std::uint64_t replicates = 64;
  std::vector<Moments> float32(replicates), float64(replicates);
  const auto cpu = make_backend("cpu");
  const Block block{.first = 0, .count = replicates, .node = 1};
  cpu->worker(plan)->run(block, float32);
  make_backend("reference")->worker(plan)->run(block, float64);
  const auto heads = static_cast<std::size_t>(plan.heads);
  const std::size_t count = static_cast<std::size_t>(plan.queries) * heads;
  const auto place = [&](std::size_t i) { return i / heads * layout.per_query() + i % heads; };
  double mean_square = 0;
  for (const Moments& one : float64) {
    for (std::size_t i = 0; i < count; ++i) {
      mean_square += std::pow(one.mean[place(i)], 2) / static_cast<double>(count * replicates);
    }
  }
  SharedRounding largest;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t sum = place(i) + layout.control_offset();
    const double bound = kernel_sum_rounding(*cpu, means.log_scale[i], plan.n);
    double of_sum = 0, of_estimate = 0;
    for (std::uint64_t r = 0; r < replicates; ++r) {
      of_sum += (float32[r].mean[sum] / float64[r].mean[sum] - 1) / replicates;
      const double estimate = float64[r].mean[place(i)];
      const double size = std::sqrt(mean_square) + std::abs(estimate) + std::abs(means.estimate[i]);
      of_estimate += (float32[r].mean[place(i)] - estimate) / size / replicates;
    }
    largest.of_sums = std::max(largest.of_sums, std::abs(of_sum) / bound);
    largest.of_estimates =
        std::max(largest.of_estimates, std::abs(of_estimate) / (estimate_rounding_share * bound));
  }
  return largest;
}

TEST(ControlledFigures, RoundingOfKernelSumsIsWithinItsBound) {
  const std::vector<std::string> kernels = {
      "heads.kernel={ law = \"gaussian\", bandwidth = 0.25 }",
      "heads.kernel={ law = \"gaussian\", bandwidth = 0.8 }",
      "heads.kernel={ law = \"gaussian\", bandwidth = 3.0 }",
      "heads.kernel={ law = \"softmax\", temperature = 0.3 }",
      "heads.kernel={ law = \"softmax\", temperature = 1.5 }"};
  SharedRounding largest;
  for (const std::string& kernel : kernels) {
    for (const char* subspaces : {"haar", "orthogonal"}) {
      const SharedRounding found = shared_rounding(
          perfect_text, {kernel, "heads.subspaces={ law = \"" + std::string(subspaces) + "\" }",
                         "queries={ law = \"design\", count = 8, seed = 3 }"});
      EXPECT_LT(found.of_sums, 1) << kernel;
      EXPECT_LT(found.of_estimates, 1) << kernel;
      largest.of_sums = std::max(largest.of_sums, found.of_sums);
      largest.of_estimates = std::max(largest.of_estimates, found.of_estimates);
    }
  }
  // Bounds are not far above what there is.
  EXPECT_GT(largest.of_sums, 0.05);
  EXPECT_GT(largest.of_estimates, 0.05);
}

/// A backend by its name alone.
class NamedBackend : public Backend {
 public:
  explicit NamedBackend(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string simd() const override { return "none"; }
  std::string device() const override { return "none"; }
  int workers(int) const override { return 1; }
  std::uint64_t worker_bytes(Plans) const override { return 0; }
  std::unique_ptr<Worker> worker(Plans) const override { return nullptr; }

 private:
  std::string name_;
};

TEST(ControlledFigures, ACoarserBackendThanCpuShowsItsRoundingInThePilot) {
  const Condition condition = parse_scenario(perfect_text, "figures.toml").conditions.at(0);
  const ControlMeans means = control_means(condition, make_plan(condition));
  const Plan plan = control_pilot_plan(condition, {}, means);
  const MomentLayout layout = plan.layout();
  std::vector<Moments> out(8);
  make_backend("cpu")->worker(plan)->run({.first = 0, .count = 8, .node = 1}, out);
  std::vector<double> of_cpu;
  for (const Moments& one : out) of_cpu.insert(of_cpu.end(), one.mean.begin(), one.mean.end());
  const NamedBackend gpu("cuda"), cpu("cpu");
  const double plain = kernel_sum_rounding(gpu, means.log_scale[1], plan.n);
  constexpr double off = 1e-4;
  const auto bound_with = [&](const Backend& backend, std::size_t statistic) {
    std::vector<double> statistics = of_cpu;
    for (std::size_t r = 0; r < 8; ++r) {
      statistics[r * layout.statistics() + statistic] *= 1 + off;
    }
    return sum_roundings(backend, plan, statistics).at(1);
  };
  EXPECT_EQ(sum_roundings(gpu, plan, of_cpu).at(1).bound, plain);
  EXPECT_EQ(sum_roundings(gpu, plan, of_cpu).at(1).coarseness, 1);
  // Of head 1 alone.
  const SumRounding of_sum = bound_with(gpu, layout.control_offset() + 1);
  EXPECT_NEAR(of_sum.bound, plain + off, 1e-3 * off);
  EXPECT_NEAR(of_sum.coarseness, of_sum.bound / plain, 1e-9);
  EXPECT_NEAR(bound_with(gpu, layout.noise_offset() + layout.pair(0, 1)).bound, plain + off / 2,
              1e-3 * off);
  EXPECT_GT(bound_with(gpu, 1).bound, plain + off / 10);
  EXPECT_EQ(bound_with(gpu, 0).bound, plain);
  // Of cpu it is known.
  EXPECT_EQ(bound_with(cpu, layout.control_offset() + 1).bound, plain);
  // Sums that are not numbers have no bound.
  std::vector<double> unknown = of_cpu;
  unknown[layout.control_offset() + 1] = NAN;
  EXPECT_EQ(sum_roundings(gpu, plan, unknown).at(1).bound, HUGE_VAL);
}

TEST(ControlledFigures, CovariancesAreThoseOfPairsWhateverTheEnsembleIs) {
  // Heads that are alike, with weights that cancel: the ensemble has no variance, and each head
  // has.
  const std::string text =
      World{
          .n = "2000",
          .design = R"({ law = "normal", dim = 2 })",
          .regression =
              R"({ law = "cosines", amplitude = [1.0], frequency = [[1.5, 0.5]], phase = [0.1] })",
          .noise = R"({ law = "normal", sd = 0.0 })",
          .heads =
              "count = 2\ndim = 1\nsubspaces = { law = \"principal_angles\", angles = [0.0] "
              "}\nweights = { law = \"explicit\", values = [1.0, -1.0] }",
          .kernel = R"({ law = "gaussian", bandwidth = 1.0 })",
          .points = "[[0.5, 0]]",
          .run = "replicates = 64\ncontrols = \"exact\""}
          .text();
  const Scenario scenario = parse_scenario(text, "figures.toml");
  const Condition& condition = scenario.conditions.at(0);
  const Session session{.backend = "cpu", .threads = 2, .control_means = control_means};
  Preparation found;
  ASSERT_TRUE(find_controls(condition, found, session));
  Plan plan = make_plan(condition, found);
  constexpr int seeds = 100;
  double mean = 0, square = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    plan.seed = static_cast<std::uint64_t>(seed);
    const double v =
        estimate(simulate(plan, *session.backend, 2, 64), plan).head_variance_mean.value;
    mean += v / seeds;
    square += v * v / seeds;
  }
  const double error = std::sqrt((square - mean * mean) / (seeds - 1));
  const double right =
      compute_theory(condition, TheorySource::exact, 2).figures.head_variance_mean.value;
  EXPECT_LT(std::abs(mean - right), 4 * error);
  // A term of order 1/R would be seen.
  EXPECT_GT(right / 64, 8 * error);
}

TEST(ControlledFigures, HeadsThatAreAlikeHaveOneCovariance) {
  for (const char* backend : {"cpu", "reference"}) {
    const ConditionResult one = run_of(perfect_text,
                                       {"heads.count=3", "data.n=50", "run.replicates=1000",
                                        "heads.subspaces={ law = \"aligned\" }"},
                                       backend);
    EXPECT_GT(one.controls->tested, 0u);
    EXPECT_EQ(one.estimates.output_correlation.value, 1) << backend;
    EXPECT_EQ(one.estimates.output_correlation.mcse, 0) << backend;
  }
  // The control: heads that are not.
  EXPECT_LT(run_of(perfect_text, {"data.n=50"}).estimates.output_correlation.value, 1);
}

TEST(ControlledFigures, ShortRunsUseWhatTheyCanTest) {
  const std::vector<std::string> sets = {"data.n=40", "run.replicates=10"};
  const ConditionResult few = run_of(perfect_text, sets);
  EXPECT_LT(few.controls->tested, few.controls->adjusted);
  const ConditionResult many = run_of(perfect_text, {"data.n=40", "run.replicates=4000"});
  EXPECT_EQ(many.controls->tested, many.controls->adjusted);
  // What no run uses leaves the figures of a run without controls.
  ControlUse never = few.plan.controls->use;
  never.never();
  const ConditionEstimates unused =
      estimate(few.tree, few.plan.head_weights, few.plan.truth, &never);
  const ConditionEstimates without =
      estimate(few.tree.without_controls(), few.plan.head_weights, few.plan.truth);
  EXPECT_EQ(unused.mse.value, without.mse.value);
  EXPECT_EQ(unused.mse.mcse, without.mse.mcse);
  EXPECT_EQ(unused.head_covariance_mean.value, without.head_covariance_mean.value);
}

}  // namespace
}  // namespace headlab
