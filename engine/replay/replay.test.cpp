// SPDX-License-Identifier: Apache-2.0
#include "engine/replay/replay.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/run/learned_heads.h"
#include "engine/run/pilot.h"
#include "engine/run/simulate.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/hand_made_result.h"
#include "engine/testing/refusal.h"
#include "kernels/learning/worker.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

const std::string scenario_text =
    World{.n = "60",
          .design = "{ law = 'normal', dim = 4 }",
          .regression =
              "{ law = 'cosines', amplitude = [1.0], frequency = [[1.0, 0, 0, 0]], phase = [0.3] }",
          .noise = "{ law = 'heteroscedastic', sd = 0.5, slope = 0.5, direction = [1, 0, 0, 0] }",
          .heads =
              "count = 3\ndim = 2\nsubspaces = { law = 'haar' }\nweights = { law = 'geometric', "
              "ratio = 0.5 }",
          .kernel = "{ law = 'gaussian', bandwidth = 0.8 }",
          .points = "[[0, 0, 0, 0], [0.5, -0.5, 1, 0]]",
          .run = "seed = 7\nreplicates = 40"}
        .text();

using Sets = std::vector<std::string>;

const Sets learned_heads = {
    "heads.subspaces={law=\"learned\",fit=\"per_replicate\",held_out=0,steps=5,batch=8}",
    "heads.weights={law=\"learned\"}", "run.estimator=\"plain\""};

const std::vector<Sets> settings = {
    {},
    {"run.estimator=\"plain\""},
    {"run.moments=\"aggregate\""},
    {"heads.kernel={law=\"softmax\",temperature=0.7}", "data.noise={law=\"laplace\",sd=1}"},
    {"heads.kernel={law=\"epanechnikov\",bandwidth=0.5}", "data.design={law=\"sphere\",dim=4}"},
    {"heads.weights={law=\"optimal\",source=\"pilot\",replicates=100}", "heads.count=2"},
    {"heads.subspaces={law=\"learned\",held_out=0,steps=5,batch=8}"},
    learned_heads,
};

Condition condition_of(const Sets& sets) {
  return parse_scenario(scenario_text, "test", sets).conditions.at(0);
}

/// The estimates [Q][G] that a run has of each of its replicates, and of the reference.
std::vector<Node> nodes_of_run(const Condition& condition, const Session& session) {
  Preparation found = learn_heads(condition, session).value();
  EXPECT_TRUE(find_weights(condition, found, session));
  const Plan plan = make_plan(condition, found);
  return simulate(plan, *session.backend, 1, condition.replicates).nodes();
}

TEST(Replay, HasTheBitsThatARunHas) {
  for (const char* backend : {"cpu", "reference"}) {
    const Session session{.backend = backend, .threads = 2};
    for (std::size_t s = 0; s < settings.size(); ++s) {
      const Condition condition = condition_of(settings[s]);
      const std::vector<Node> nodes = nodes_of_run(condition, session);
      for (const std::uint64_t replicate : {0u, 17u, 39u}) {
        SCOPED_TRACE(std::string(backend) + ", setting " + std::to_string(s) + ", replicate " +
                     std::to_string(replicate));
        const Replay replay = replay_replicate(condition, replicate, session);
        ASSERT_TRUE(replay.outcome.complete);
        const MomentLayout layout = replay.plan.layout();
        const std::vector<double>& run = nodes[replicate].moments.mean;
        const auto heads = static_cast<std::size_t>(replay.plan.heads);
        for (std::size_t q = 0; q < 2; ++q) {
          for (std::size_t h = 0; h < heads; ++h) {
            // Where weights are learned a run has them in its estimates.
            const bool weighted = settings[s] == learned_heads;
            const double factor =
                weighted ? static_cast<double>(heads) * replay.plan.head_weights[h] : 1.0;
            const ReplayedHead& head = replay.head(q, h);
            EXPECT_EQ(head.backend * factor, run[q * layout.per_query() + h]);
            EXPECT_NEAR(head.reference, head.backend, 2e-5 * (1 + std::abs(head.reference)));
            if (replay.machine.backend == "reference") {
              EXPECT_EQ(head.reference, head.backend);
            }
            // Another replicate has others.
            EXPECT_NE(head.backend * factor,
                      nodes[replicate / 2 + 1].moments.mean[q * layout.per_query() + h]);
          }
        }
      }
    }
  }
}

TEST(Replay, ShowsTheKeysOfTheExtremesOfARun) {
  for (const char* backend : {"cpu", "reference"}) {
    const Session session{.backend = backend, .threads = 2};
    for (const Sets& sets : settings) {
      const Condition condition = condition_of(sets);
      Preparation found = learn_heads(condition, session).value();
      ASSERT_TRUE(find_weights(condition, found, session));
      const Plan plan = make_plan(condition, found);
      const Extremes extremes =
          simulate(plan, *session.backend, 2, condition.replicates).extremes().value();
      const std::vector<Extreme>& errors = extremes.max_error.all();
      ASSERT_EQ(errors.size(), max_extremes);
      for (const std::size_t i : {std::size_t{0}, max_extremes - 1}) {
        const Replay replay = replay_replicate(condition, errors[i].replicate, session);
        // Where weights are learned they are factors of the estimates of a run.
        const double rounding = sets == learned_heads ? 1e-12 * errors[i].key : 0;
        EXPECT_NEAR(replay.squared_error, errors[i].key, rounding);
        EXPECT_NE(replay.squared_error, errors[3].key);
      }
      const bool knows =
          backend == std::string("reference") || condition.estimator == Estimator::conditional;
      if (sets == settings[2]) continue;  // aggregate moments of uneven noise: reference alone
      ASSERT_EQ(extremes.min_sample_size.has_value(), knows);
      if (!knows) continue;
      const Extreme& narrowest = extremes.min_sample_size->all().front();
      const Replay replay = replay_replicate(condition, narrowest.replicate, session);
      EXPECT_EQ(replay.backend_sample_size.value(), narrowest.key);
      EXPECT_NEAR(replay.heads[replay.narrowest()].sample_size, narrowest.key,
                  2e-5 * narrowest.key);
    }
  }
}

TEST(Replay, ShowsWhatTheEstimatesAreMadeOf) {
  const Session session{.backend = "cpu", .threads = 1};
  for (const Sets& sets : settings) {
    const Replay replay = replay_replicate(condition_of(sets), 3, session);
    const Plan& plan = replay.plan;
    const TrainingSet& set = replay.training_set;
    const auto n = static_cast<std::size_t>(plan.n);
    const auto heads = static_cast<std::size_t>(plan.heads);
    double error = 0;
    for (std::size_t q = 0; q < 2; ++q) {
      double ensemble = 0;
      double noise = 0;
      std::vector<double> weights(n);
      for (std::size_t h = 0; h < heads; ++h) {
        const double* w = &replay.kernel_weights[(q * heads + h) * n];
        double estimate = 0;
        double square = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const double value =
              set.regression[i] + (plan.estimator == Estimator::plain ? set.noise[i] : 0.0);
          estimate += w[i] * value;
          square += w[i] * w[i];
          weights[i] += plan.head_weights[h] * w[i];
        }
        const ReplayedHead& head = replay.head(q, h);
        EXPECT_EQ(head.reference, estimate);
        EXPECT_EQ(head.sample_size, 1 / square);
        EXPECT_LE(head.normalisation_error, 60 * 2.3e-16);
        EXPECT_GE(head.sample_size, replay.heads[replay.narrowest()].sample_size);
        ensemble += plan.head_weights[h] * estimate;
      }
      for (std::size_t i = 0; i < n; ++i) {
        noise += std::pow(set.noise_sd[i] * weights[i], 2);
      }
      if (plan.estimator == Estimator::plain) noise = 0;
      EXPECT_NEAR(replay.queries[q].reference, ensemble, 1e-14);
      EXPECT_NEAR(replay.queries[q].squared_error, std::pow(ensemble - plan.truth[q], 2) + noise,
                  1e-4);
      error += replay.queries[q].squared_error / 2;
    }
    EXPECT_NEAR(replay.squared_error, error, 1e-15);
  }
}

TEST(Replay, IsTheSameForAnyNumberOfThreads) {
  const Condition condition = condition_of({});
  const Replay one = replay_replicate(condition, 5, {.backend = "cpu", .threads = 1});
  const Replay four = replay_replicate(condition, 5, {.backend = "cpu", .threads = 4});
  EXPECT_EQ(one.kernel_weights, four.kernel_weights);
  EXPECT_EQ(one.squared_error, four.squared_error);
}

TEST(Replay, EndsWhereItIsToldTo) {
  const std::atomic<bool> stop = true;
  for (const Sets& sets : {Sets{}, learned_heads}) {
    const Replay replay =
        replay_replicate(condition_of(sets), 5, {.backend = "cpu", .threads = 1, .stop = &stop});
    EXPECT_FALSE(replay.outcome.complete);
    EXPECT_TRUE(replay.outcome.interrupted);
  }
}

TEST(Replay, IsRefusedWhereItsWeightsDoNotFit) {
  const Condition condition = condition_of({"data.n=100000"});
  const test::PlayedMachine small{{"HEADLAB_MEMORY_LIMIT", "20000000"}};
  const std::string line =
      refusal_line([&] { replay_replicate(condition, 5, {.backend = "cpu", .threads = 1}); });
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "data.n: needs ", line);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "for the kernel weights of a replicate", line);
  const test::PlayedMachine larger{{"HEADLAB_MEMORY_LIMIT", "100000000"}};
  EXPECT_TRUE(replay_replicate(condition, 5, {.backend = "cpu", .threads = 1}).outcome.complete);
}

class ReplayFile : public FolderTest {};

TEST_F(ReplayFile, HoldsTheReplicate) {
  const Scenario scenario = parse_scenario(scenario_text, "test");
  const Replay replay =
      replay_replicate(scenario.conditions[0], 11, {.backend = "cpu", .threads = 1});
  write_replay(at("replay.nc"), scenario, 0, replay, hand_made::program);
  const NetcdfInput file(at("replay.nc"));
  const NetcdfGroup root = file.root();
  EXPECT_EQ(root.integer_attribute("replicate"), 11);
  EXPECT_EQ(root.text_attribute("backend"), "cpu");
  EXPECT_EQ(root.doubles("X"), replay.training_set.x);
  EXPECT_EQ(root.doubles("m"), replay.training_set.regression);
  EXPECT_EQ(root.doubles("projections"), replay.plan.projections);
  EXPECT_EQ(root.doubles("truth"), replay.plan.truth);
  EXPECT_EQ(root.doubles("kernel_weights"), replay.kernel_weights);
  EXPECT_EQ(root.shape("kernel_weights"), (std::vector<std::size_t>{2, 3, 60}));
  const std::vector<double> y = root.doubles("Y");
  const std::vector<double> reference = root.doubles("reference_estimate");
  const std::vector<double> backend = root.doubles("backend_estimate");
  const std::vector<double> difference = root.doubles("difference");
  for (std::size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(y[i], replay.training_set.regression[i] + replay.training_set.noise[i]);
  }
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(reference[i], replay.heads[i].reference);
    EXPECT_EQ(backend[i], replay.heads[i].backend);
    EXPECT_EQ(difference[i], backend[i] - reference[i]);
  }
}

TEST_F(ReplayFile, IsThereWholeOrNotAtAll) {
  const Scenario scenario = parse_scenario(scenario_text, "test");
  const Replay replay =
      replay_replicate(scenario.conditions[0], 11, {.backend = "cpu", .threads = 1});
  EXPECT_THROW(write_replay(at("nowhere/replay.nc"), scenario, 0, replay, hand_made::program),
               RunFailed);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace headlab
