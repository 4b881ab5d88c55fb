// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/controls/control_means.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/control_pilot.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "kernels/backends.h"
#include "kernels/plan.h"
#include "kernels/testing/paths.h"

namespace headlab {
namespace {

const std::string text =
    World{
        .n = "30",
        .design = R"({ law = "normal", dim = 3 })",
        .regression =
            R"({ law = "cosines", amplitude = [1.0], frequency = [[1.0, -0.5, 0.3]], phase = [0.3] })",
        .noise = R"({ law = "normal", sd = 0.5 })",
        .heads = "count = 3\ndim = 2\nsubspaces = { law = \"haar\" }",
        .kernel = R"({ law = "gaussian", bandwidth = 0.6 })",
        .points = "[[0, 0, 0], [1.5, -0.8, 1.4]]",
        .run = "replicates = 20\ncontrols = \"exact\""}
        .text();

const std::string mixture =
    "data.design={ law = \"mixture\", weights = [0.4, 0.6], means = [[0, 1, 0], [0.5, 0, -1]], "
    "covariances = [[[1, 0.3, 0], [0.3, 0.5, 0], [0, 0, 2]], [[1, 0, 0], [0, 1, 0], [0, 0, 0.2]]] "
    "}";

Condition condition_of(const std::vector<std::string>& sets) {
  return parse_scenario(text, "controls.toml", sets, test::scenario_dir() + "/data")
      .conditions.at(0);
}

/// Controls of many replicates on the reference, and how far their means are from 0.
struct Check {
  std::vector<double> z = {};
  std::size_t unknown = 0;

  void add(const std::vector<double>& control) {
    const auto size = static_cast<double>(control.size());
    double mean = 0, square = 0;
    for (const double x : control) mean += x / size;
    for (const double x : control) square += (x - mean) * (x - mean);
    if (std::isnan(mean)) {
      ++unknown;
      return;
    }
    // Constants vary by rounding: controls are of order 1 or not used.
    if (!(square > 1e-20 * size)) return;
    z.push_back(mean / std::sqrt(square / (size - 1) / size));
  }
  double rms() const {
    double sum = 0;
    for (const double x : z) sum += x * x;
    return std::sqrt(sum / static_cast<double>(z.size()));
  }
};

constexpr std::uint64_t replicates = 4000;

/// \param fault changes the means
Check check(const std::vector<std::string>& sets,
            const std::function<void(ControlMeans&)>& fault = {}) {
  const Condition condition = condition_of(sets);
  ControlMeans means = control_means(condition, make_plan(condition));
  if (fault) fault(means);
  const Plan plan = control_pilot_plan(condition, {}, means);
  const MomentLayout layout = plan.layout();
  std::vector<Moments> out(replicates);
  make_backend("reference")->worker(plan)->run({.first = 0, .count = replicates, .node = 1}, out);
  Check found;
  const auto heads = static_cast<std::size_t>(plan.heads);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    const QueryControls controls(*plan.controls, layout, q);
    std::vector<std::vector<HeadNumbers>> numbers(heads);
    const auto statistic = [&](std::uint64_t r, std::size_t i) {
      return out[r].mean[q * layout.per_query() + i];
    };
    const auto add_all = [&]<std::size_t Count>(const std::vector<ControlValues<Count>>& values) {
      for (std::size_t c = 0; c < Count; ++c) {
        std::vector<double> column;
        for (const auto& one : values) column.push_back(one[c]);
        found.add(column);
      }
    };
    for (std::size_t h = 0; h < heads; ++h) {
      std::vector<ControlValues<estimate_controls>> values;
      for (std::uint64_t r = 0; r < replicates; ++r) {
        numbers[h].push_back(
            controls.numbers(h, statistic(r, h), statistic(r, layout.control_offset() + h)));
        values.push_back(controls.of_estimate(h, numbers[h].back()));
      }
      add_all(values);
    }
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        std::vector<ControlValues<noise_controls>> values;
        for (std::uint64_t r = 0; r < replicates; ++r) {
          const double noise = statistic(r, layout.noise_offset() + layout.pair(h, l));
          values.push_back(controls.of_noise(h, l, noise, numbers[h][r], numbers[l][r]));
        }
        add_all(values);
      }
    }
  }
  return found;
}

/// Controls of one query and head are correlated, so that some dozens are independent.
void expect_right(const Check& found, std::size_t unknown) {
  EXPECT_EQ(found.unknown, unknown);
  ASSERT_GT(found.z.size(), 60u);
  EXPECT_LT(found.rms(), 1.6);
  EXPECT_GT(found.rms(), 0.5);
  for (const double z : found.z) EXPECT_LT(std::abs(z), 5);
}

TEST(ControlMeans, GaussianKernelOnANormalDesign) {
  expect_right(check({}), 0);
}

TEST(ControlMeans, GaussianKernelOnAMixture) {
  expect_right(check({mixture}), 0);
}

const std::string softmax = "heads.kernel={ law = \"softmax\", temperature = 1.5 }";

TEST(ControlMeans, NoiseThatDependsOnThePoint) {
  const std::string noise =
      "data.noise={ law = \"heteroscedastic\", sd = 0.5, slope = 1, direction = [1, 0, 1] }";
  expect_right(check({noise}), 0);
  expect_right(check({noise, mixture, softmax}), 0);
}

TEST(ControlMeans, SoftmaxOnAMixture) {
  expect_right(check({mixture, softmax}), 0);
}

TEST(ControlMeans, HeadsThatSeeDifferentTokens) {
  expect_right(check({"heads.mechanism={ window = [10, 20, 30] }"}), 0);
  expect_right(check({"heads.mechanism={ window = [10, 20, 30], skip = [0, 10, 0], sinks = 2 }"}),
               0);
}

TEST(ControlMeans, RowsOfAFileForAnyKernel) {
  const std::vector<std::string> sets = {
      "data.design={ law = \"file\", path = \"digits.csv\", standardise = true }",
      "data.regression={ law = \"file\", column = 20 }",
      "queries={ law = \"design\", count = 2, seed = 3 }", "data.n=60",
      "heads.kernel={ law = \"laplace\", bandwidth = 1.0 }"};
  expect_right(check(sets), 0);
}

TEST(ControlMeans, AMeanThatIsOneInAHundredOffIsSeen) {
  const Check wrong = check({}, [](ControlMeans& means) {
    for (double& mean : means.of_noise) mean *= 1.01;
  });
  EXPECT_GT(wrong.rms(), 2);
}

TEST(ControlMeans, SaysWhatHasNone) {
  EXPECT_PRED_FORMAT2(testing::IsSubstring,
                      "closed forms need a normal or mixture design; law "
                      "\"sphere\" is neither - leave controls out, or use a "
                      "design of law \"file\"",
                      refusal_line([&] {
                        const Condition condition =
                            condition_of({"data.design={ law = \"sphere\", dim = 3 }"});
                        control_means(condition, make_plan(condition));
                      }));
}

}  // namespace
}  // namespace headlab
