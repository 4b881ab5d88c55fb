// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/control_check.h"
#include "engine/run/control_pilot.h"
#include "engine/run/run.h"
#include "engine/run/simulate.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "kernels/testing/paths.h"
#include "validation/theory/controls/control_means.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

const std::string run_text =
    World{
        .n = "100",
        .design = R"({ law = "normal", dim = 3 })",
        .regression =
            R"({ law = "cosines", amplitude = [1.0], frequency = [[1.0, -0.5, 0.3]], phase = [0.3] })",
        .noise = R"({ law = "normal", sd = 0.5 })",
        .heads = "count = 3\ndim = 2\nsubspaces = { law = \"haar\" }",
        .kernel = R"({ law = "gaussian", bandwidth = 0.5 })",
        .points = "[[0, 0, 0], [1.5, -0.8, 1.4]]",
        .run = "replicates = 4000\ncontrols = \"exact\""}
        .text();

Scenario scenario_of(const std::vector<std::string>& sets = {}) {
  return parse_scenario(run_text, "controls.toml", sets, test::scenario_dir());
}

Session session(int threads = 2) {
  return {.backend = "cpu", .threads = threads, .control_means = control_means};
}

ConditionResult run_one(const std::vector<std::string>& sets, const Session& of = session()) {
  return run(scenario_of(sets), of).conditions.at(0);
}

/// (a - b) in joint standard errors.
double z_of(const Estimate& a, const Estimate& b) {
  return (a.value - b.value) / std::hypot(a.mcse, b.mcse);
}

/// Figures with controls against those of independent replicates without.
void expect_unbiased(std::vector<std::string> sets) {
  const ConditionResult with = run_one(sets);
  ASSERT_NE(with.controls, nullptr);
  EXPECT_FALSE(with.controls->refused);
  EXPECT_GT(with.controls->tested, 0u);
  sets.insert(sets.end(), {"run.controls=\"none\"", "run.seed=99", "run.replicates=40000"});
  const ConditionResult without = run_one(sets);
  EXPECT_EQ(without.controls, nullptr);
  const auto a = numbers_of<Estimate>(with.estimates);
  const auto b = numbers_of<Estimate>(without.estimates);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_LT(std::abs(z_of(*a[i].number, *b[i].number)), 4) << a[i].name;
  }
  const QueryEstimates& query = with.estimates.queries.at(1);
  const QueryEstimates& other = without.estimates.queries.at(1);
  for (std::size_t h = 0; h < query.head_bias.size(); ++h) {
    EXPECT_LT(std::abs(z_of(query.head_bias[h], other.head_bias[h])), 4);
  }
  for (std::size_t p = 0; p < query.head_covariance.size(); ++p) {
    EXPECT_LT(std::abs(z_of(query.head_covariance[p], other.head_covariance[p])), 4);
  }
}

TEST(ControlledRuns, HaveTheFiguresOfRunsWithout) {
  expect_unbiased({});
  expect_unbiased({"heads.kernel={ law = \"softmax\", temperature = 1.2 }"});
  expect_unbiased(
      {"heads.mechanism={ window = [40, 60, 100] }", "heads.weights={ law = \"optimal\" }"});
  expect_unbiased({"data.design={ law = \"file\", path = \"data/digits.csv\", standardise = true }",
                   "data.regression={ law = \"random_cosines\", terms = 16, length_scale = 8 }",
                   "queries={ law = \"design\", count = 2, seed = 3 }",
                   "heads.kernel={ law = \"epanechnikov\", bandwidth = 1.5 }"});
}

TEST(ControlledRuns, FallInVarianceAndSaySo) {
  const ConditionResult one = run_one({});
  for (const auto& [name, gain] : one.controls->gains) {
    const bool has_bias = name == "mse" || name == "bias_squared";
    if (has_bias || name == "head_variance_mean") {
      EXPECT_GT(gain, has_bias ? 10 : 2) << name;
    }
  }
  EXPECT_EQ(one.controls->pilot, 1024u);
}

TEST(ControlledRuns, DoNotDependOnThreadsOrOnWhereTheyWereStopped) {
  const Scenario all = scenario_of({"run.replicates=1000"});
  const ConditionResult whole = run(all, session(1)).conditions.at(0);
  const ConditionResult threaded = run(all, session(2)).conditions.at(0);
  const MomentTree begun = simulate(whole.plan, *session().backend, 2, 512);
  const MomentTree continued = continue_simulation(begun, whole.plan, *session().backend, 2, 1000);
  ASSERT_EQ(whole.tree.nodes().size(), continued.nodes().size());
  for (std::size_t i = 0; i < whole.tree.nodes().size(); ++i) {
    for (const MomentTree* other : {&threaded.tree, &continued}) {
      EXPECT_EQ(whole.tree.nodes()[i].moments.mean, other->nodes()[i].moments.mean);
      EXPECT_EQ(whole.tree.nodes()[i].moments.comoment, other->nodes()[i].moments.comoment);
    }
  }
}

TEST(ControlledRuns, AreThoseWithoutOnceControlsAreTakenAway) {
  const ConditionResult with = run_one({"run.replicates=700"});
  const ConditionResult without = run_one({"run.replicates=700", "run.controls=\"none\""});
  const MomentTree plain = with.tree.without_controls();
  EXPECT_EQ(plain.layout(), without.tree.layout());
  for (std::size_t i = 0; i < plain.nodes().size(); ++i) {
    EXPECT_EQ(plain.nodes()[i].moments.mean, without.tree.nodes()[i].moments.mean);
    EXPECT_EQ(plain.nodes()[i].moments.comoment, without.tree.nodes()[i].moments.comoment);
  }
}

TEST(ControlledRuns, RefuseAMeanThatIsOneInAHundredOff) {
  Session faulty = session();
  faulty.control_means = [](const Condition& condition, const Plan& plan,
                            const std::function<bool(double)>&) {
    ControlMeans means = control_means(condition, plan);
    for (double& mean : means.of_noise) mean *= 1.01;
    return means;
  };
  // As many replicates as see what the pilot does not.
  const std::vector<std::string> long_run = {"run.replicates=20000"};
  const RunResult result = run(scenario_of(long_run), faulty);
  EXPECT_NE(refused_controls(result).find("#0: controls refused: an adjustment of mean 0 is"),
            std::string::npos)
      << refused_controls(result);
  const ConditionResult& one = result.conditions.at(0);
  EXPECT_TRUE(one.controls->refused);
  EXPECT_GT(one.controls->largest_z, 6);
  // The figures are those without controls.
  const ConditionResult without = run_one({long_run[0], "run.controls=\"none\""});
  EXPECT_EQ(one.estimates.mse.value, without.estimates.mse.value);
  EXPECT_EQ(one.estimates.mse.mcse, without.estimates.mse.mcse);
}

TEST(ControlledRuns, ACoefficientOfTheWrongSignCostsVarianceAndNoBias) {
  const ConditionResult right = run_one({});
  auto turned = std::make_shared<Controls>(right.found.controls->controls);
  for (std::vector<double>* all : {&turned->of_estimates, &turned->of_noise}) {
    for (double& coefficient : *all) coefficient = -coefficient;
  }
  Plan plan = right.plan;
  plan.controls = turned;
  const ConditionEstimates wrong =
      estimate(simulate(plan, *session().backend, 2, 4000), plan.head_weights, plan.truth);
  EXPECT_GT(wrong.mse.mcse, 10 * right.estimates.mse.mcse);
  const auto a = numbers_of<Estimate>(wrong);
  const auto b = numbers_of<Estimate>(right.estimates);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_LT(std::abs(z_of(*a[i].number, *b[i].number)), 4) << a[i].name;
  }
}

/// Squared z of the biases and covariances of the heads at all queries, against closed forms.
void add_squares(const std::vector<std::string>& sets, std::vector<double>& squares) {
  const Scenario scenario = scenario_of(sets);
  const Theory theory = compute_theory(scenario.conditions.at(0), TheorySource::exact, 2);
  for (int seed = 1; seed <= 4; ++seed) {
    std::vector<std::string> seeded = sets;
    seeded.push_back("run.seed=" + std::to_string(seed));
    seeded.emplace_back("run.replicates=2000");
    const ConditionResult one = run_one(seeded);
    const auto add = [&](const Estimate& estimate, double exact) {
      const double z = (estimate.value - exact) / estimate.mcse;
      squares.push_back(z * z);
    };
    for (std::size_t q = 0; q < theory.heads.size(); ++q) {
      const HeadTheory& exact = theory.heads[q];
      const QueryEstimates& of = one.estimates.queries[q];
      const auto heads = static_cast<std::size_t>(exact.bias.size());
      for (std::size_t h = 0; h < heads; ++h) {
        add(of.head_bias[h], exact.bias(static_cast<Eigen::Index>(h)));
        for (std::size_t l = h; l < heads; ++l) {
          add(of.head_covariance[h * heads + l],
              exact.covariance(static_cast<Eigen::Index>(h), static_cast<Eigen::Index>(l)));
        }
      }
    }
  }
}

TEST(ControlledRuns, ReproduceTheExactTheory) {
  std::vector<double> squares;
  const std::vector<std::string> planes = {
      "data.design.dim=4", "data.regression.frequency=[[0.8, -0.5, 0.3, 0.6]]", "heads.count=2",
      "heads.subspaces={ law = \"orthogonal\" }",
      "queries.points=[[0.5, 0, 0.2, 0], [1, 0.4, -0.6, 0.2]]"};
  add_squares(planes, squares);
  add_squares({"heads.dim=1", "data.n=40"}, squares);
  add_squares({"heads.kernel={ law = \"softmax\", temperature = 1.5 }", "heads.count=2",
               "queries.points=[[0.5, 0, 0.2], [1, 0.4, -0.6]]"},
              squares);
  double sum = 0, largest = 0;
  for (const double square : squares) {
    sum += square;
    largest = std::max(largest, square);
  }
  const double rms = std::sqrt(sum / static_cast<double>(squares.size()));
  EXPECT_GT(squares.size(), 100u);
  EXPECT_GT(rms, 0.7);
  EXPECT_LT(rms, 1.35);
  EXPECT_LT(largest, 25);
}

TEST(ControlledRuns, LeaveOutWhatFloat32DoesNotHold) {
  for (const char* amplitude : {"1e-38", "1e-40", "1e-60"}) {
    const ConditionResult one =
        run_one({std::string("data.regression.amplitude=[") + amplitude + "]"});
    ASSERT_NE(one.controls, nullptr);
    EXPECT_FALSE(one.controls->refused) << amplitude;
    EXPECT_GT(one.controls->adjusted, 0u) << amplitude;  // of noise, which is not small
  }
}

/// Settings in which replicates that a pilot of 1024 lacks make most of a control's mean: the
/// query, or the bumps, are many bandwidths from all points.
TEST(ControlledRuns, LeaveOutTailsThatThePilotLacks) {
  const std::vector<std::vector<std::string>> settings = {
      {"data.n=8", "data.design={ law = \"normal\", dim = 2, mean = [0.875, -1.5] }",
       "data.regression={ law = \"zero\" }", "data.noise.sd=0.125", "heads.count=2", "heads.dim=1",
       "heads.subspaces={ law = \"explicit\", matrices = [[[-0.5180], [-0.8554]], "
       "[[-0.5086], [0.8610]]], orthonormalise = true }",
       "heads.kernel.bandwidth=2", "queries.points=[[1, -12]]"},
      {"data.n=2", "data.design={ law = \"normal\", dim = 3, mean = [0, 0.125, 1.75] }",
       "data.regression={ law = \"bumps\", heights = [0.125], centres = [[0, -0.75, -1.5]], widths "
       "= [0.25] }",
       "data.noise.sd=0.125", "heads.count=1", "heads.dim=1", "heads.kernel.bandwidth=1",
       "queries={ law = \"design\", count = 1 }"}};
  for (std::vector<std::string> sets : settings) {
    for (const char* replicates : {"1000", "4096", "16384"}) {
      std::vector<std::string> all = sets;
      all.push_back(std::string("run.replicates=") + replicates);
      const ConditionResult one = run_one(all);
      ASSERT_NE(one.controls, nullptr);
      EXPECT_FALSE(one.controls->refused) << sets[0] << ", " << replicates;
      if (!one.controls->used()) continue;
      EXPECT_EQ(one.controls->gains.at(0).first, "mse");
      EXPECT_GT(one.controls->gains.at(0).second, 0.9) << sets[0] << ", " << replicates;
    }
  }
}

TEST(ControlledRuns, AreLeftOutWhereTheRunIsWilderThanThePilot) {
  const ConditionResult one = run_one({});
  EXPECT_FALSE(check_controls(*one.found.controls, one.tree).wilder);
  FoundControls tame = *one.found.controls;
  for (double& sd : tame.noise_sd) sd /= 4;
  const ControlReport report = check_controls(tame, one.tree);
  EXPECT_TRUE(report.wilder);
  EXPECT_FALSE(report.refused);
  EXPECT_FALSE(report.used());
}

TEST(ControlledRuns, NeedASessionThatKnowsTheMeans) {
  Session unknowing = session();
  unknowing.control_means = {};
  EXPECT_PRED_FORMAT2(testing::IsSubstring,
                      "run.controls: is \"exact\", which this command does not compute",
                      refusal_line([&] { run_one({}, unknowing); }));
}

TEST(ControlledRuns, SayWhatTheyAreNotFor) {
  const auto refusal = [](const std::vector<std::string>& sets) -> std::string {
    return refusal_line([&] { scenario_of(sets); });
  };
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{"run.estimator=\"plain\""}, "needs estimator \"conditional\""},
      {{"run.moments=\"aggregate\""}, "needs moments \"pairwise\""},
      {{"data.fixed_design=true"}, "has no use where fixed_design = true"},
      {{"data.sequence={ law = \"ar1\", correlation = 0.5 }"}, "needs independent points"},
      {{"heads.subspaces={ law = \"learned\" }"}, "needs heads and weights that are given"},
      {{"heads.subspaces={ law = \"haar\", redraw = true }"}, "needs one draw of heads"},
      {{"heads.mechanism={ merge = { stride = 4 } }"}, "stage \"merge\""},
      {{"heads.mechanism={ keep = { fraction = 0.5 } }"}, "stage \"keep\""},
      {{"run.controls=\"exakt\""}, "did you mean \"exact\""},
      {{"run.controls={ law = \"exact\", pilot = 5 }"}, "run.controls.pilot"}};
  for (const auto& [sets, words] : all) {
    EXPECT_NE(refusal(sets).find(words), std::string::npos) << words << ": " << refusal(sets);
  }
}

}  // namespace
}  // namespace headlab
