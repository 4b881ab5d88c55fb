// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/run.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

const std::string scenario_of_two =
    World{
        .n = "24",
        .design = R"({ law = "normal", dim = 4 })",
        .regression =
            R"({ law = "cosines", amplitude = [1.0, 0.6], frequency = [[1.1, 0.3, -0.4, 0.2], [0.3, -0.8, 0.9, 0.5]], phase = [0.3, 1.2] })",
        .noise = R"({ law = "normal", sd = 0.5 })",
        .heads = "count = 2\ndim = 1\nsubspaces = { law = \"haar\" }",
        .kernel = R"({ law = "gaussian", bandwidth = 0.6 })",
        .points = "[[0.4, -0.2, 0.5, 0.1]]",
        .run = "seed = 7\nreplicates = 6000"}
        .text();

using Settings = std::vector<std::string>;

Scenario with_settings(const Settings& settings) {
  return parse_scenario(scenario_of_two, "stages.toml", settings);
}

/// Squares of the differences between simulated and computed figures, in standard errors.
struct SquaredZ {
  double sum = 0;
  int count = 0;

  void add(const Settings& simulated, const Settings& computed, bool pairs) {
    const QueryEstimates estimates = run(with_settings(simulated), {.backend = "cpu", .threads = 2})
                                         .conditions.at(0)
                                         .estimates.queries.at(0);
    const HeadTheory theory =
        compute_theory(with_settings(computed).conditions.at(0), TheorySource::exact, 2)
            .heads.at(0);
    const auto compare = [&](const Estimate& estimate, double value) {
      const double z = estimate.mcse > 0 ? (estimate.value - value) / estimate.mcse
                                         : (std::abs(estimate.value - value) <= 1e-6 ? 0 : 1e9);
      if (estimate.mcse > 0 || z > 0) ++count;
      sum += z * z;
    };
    for (std::size_t h = 0; h < 2; ++h) {
      const auto i = static_cast<Eigen::Index>(h);
      compare(estimates.head_bias[h], theory.bias(i));
      for (std::size_t l = h; l < (pairs ? 2 : h + 1); ++l) {
        compare(estimates.head_covariance[2 * h + l],
                theory.covariance(i, static_cast<Eigen::Index>(l)));
      }
    }
  }
  double rms() const { return std::sqrt(sum / count); }
};

const std::string mechanism = "heads.mechanism=";
const std::string one_head_twice =
    "heads.subspaces={ law = \"explicit\", matrices = [[[1, 0], [0, 1], [0, 0], [0, 0]], [[1, 0], "
    "[0, 1], [0, 0], [0, 0]]] }";

/// Heads whose pairs have a closed form too.
const std::vector<Settings> cases = {
    {mechanism + "{ window = [16, 12], skip = [0, 4], sinks = [2, 5] }"},
    {mechanism + "{ window = [16, 12], skip = [0, 4] }", "heads.dim=2",
     "heads.subspaces={ law = \"orthogonal\" }"},
    {mechanism + "{ window = [20, 12], skip = [0, 6] }", "heads.dim=2", one_head_twice},
    {mechanism + "{ merge = 3 }"},
    {mechanism + "{ merge = { stride = 2, gate = 0.8 }, window = [8, 7], skip = [1, 3] }",
     "heads.kernel={ law = \"softmax\", temperature = 1.2 }", "heads.dim=2"},
    {mechanism + "{ transform = { matrix = [[1.5, 0.3], [-0.2, 0.6]] } }", "heads.dim=2",
     one_head_twice,
     "data.noise={ law = \"heteroscedastic\", sd = 0.5, slope = 0.4, direction = [1, 0, 0, 0] }"},
    {mechanism + "{ keep = { top = 5 } }", "heads.dim=2", one_head_twice},
    {mechanism + "{ keep = { fraction = 0.3 }, window = 12, skip = [0, 12] }"},
    {mechanism + "{ keep = { ratio = 0.3 }, window = 12, skip = [0, 12] }"},
    {mechanism + "{ levels = [0.4, 0.6], window = 12, skip = [0, 12] }"},
    {mechanism + "{ levels = [0, 0.5, 0.5], window = 12, skip = [0, 12] }",
     "heads.kernel={ law = \"softmax\", temperature = 0.8 }", "heads.dim=3"},
    {"data.sequence={ law = \"ar1\", correlation = 0.5 }", "data.regression={ law = \"zero\" }",
     "heads.subspaces={ law = \"orthogonal\" }", mechanism + "{ window = [20, 9], skip = [3, 1] }"},
};

TEST(TheoryOfMechanisms, IsWhatIsSimulated) {
  SquaredZ joint, control;
  for (const Settings& settings : cases) {
    SquaredZ own;
    own.add(settings, settings, true);
    EXPECT_LT(own.rms(), 2.5) << settings[0];
    joint.sum += own.sum;
    joint.count += own.count;
    // The control: as many tokens less a few.
    Settings fewer = settings;
    fewer.push_back("data.n=30");
    if (settings[0].find("window") == std::string::npos) control.add(settings, fewer, true);
  }
  EXPECT_GE(joint.count, 50);
  EXPECT_GT(joint.rms(), 0.7);
  EXPECT_LT(joint.rms(), 1.35);
  EXPECT_GT(control.rms(), 3);
}

std::string refusal_of(const Settings& settings, TheorySource source = TheorySource::automatic) {
  return refusal_line([&] { compute_theory(with_settings(settings).conditions.at(0), source, 2); });
}

TEST(TheoryOfMechanisms, SaysWhichStageHasNoClosedForm) {
  const auto expect = [](const Settings& settings, const std::string& part) {
    const std::string line = refusal_of(settings);
    EXPECT_NE(line.find(part), std::string::npos) << settings[0] << " -> " << line;
    EXPECT_NE(line.find("simulate"), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  };
  expect({mechanism + "{ merge = 5 }"}, "heads.mechanism.merge: has closed forms where no head");
  expect({mechanism + "{ merge = 2 }",
          "data.regression={ law = \"bumps\", heights = [1.0], "
          "centres = [[0, 0, 0, 0]], widths = [1.0] }"},
         "heads.mechanism.merge: groups of points have a closed form with the regressions");
  expect({mechanism + "{ keep = { block = 4, top = 2 } }"}, "heads.mechanism.keep: blocks");
  expect({mechanism + "{ keep = { top = 2, union = true } }"}, "heads.mechanism.keep: \"union\"");
  expect({mechanism + "{ keep = { top = 2 } }"}, "heads.mechanism.keep: pairs of heads");
  expect({mechanism + "{ levels = [0.5, 0.3, 0.2] }"}, "heads.mechanism.levels: exact");
  expect({mechanism + "{ levels = [0.5, 0.5], window = 7 }"}, "heads.mechanism.levels: has closed");
  expect({mechanism + "{ levels = [0.5, 0.5], keep = { top = 3 } }"}, "heads.mechanism.keep: has");
  expect({"data.sequence={ law = \"ar1\", correlation = 0.5 }"},
         "data.sequence: dependent points have a closed form where the regression");
  expect({"data.sequence={ law = \"ar1\", correlation = 0.5 }", mechanism + "{ merge = 2 }"},
         "heads.mechanism.merge: has closed forms with independent points alone");
  // The control: what has a closed form is not refused.
  EXPECT_EQ(
      refusal_of({mechanism + "{ merge = 2, window = 5, keep = { top = 2 } }", "heads.count=1"}),
      "accepted");
}

TEST(TheoryOfMechanisms, OfAStageThatDoesNothingIsThatOfThePlainHead) {
  const auto variance = [](const Settings& settings) {
    return compute_theory(with_settings(settings).conditions.at(0), TheorySource::exact, 2)
        .figures.mse.value;
  };
  const double plain = variance({});
  for (const char* stages :
       {"{ merge = 1 }", "{ levels = [1] }", "{ window = 24 }", "{ keep = { top = 24 } }"}) {
    EXPECT_EQ(variance({mechanism + stages}), plain) << stages;
  }
  // In the limit too.
  EXPECT_NEAR(variance({mechanism + "{ keep = { ratio = 1e-300 } }", "heads.count=1"}),
              variance({"heads.count=1"}), 1e-8);
  EXPECT_NE(variance({mechanism + "{ window = 23 }"}), plain);
}

}  // namespace
}  // namespace headlab
