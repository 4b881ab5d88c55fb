// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/self_test.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "engine/run/run.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

constexpr const char* study_text = R"([scenario]
name = "self-test"
[data]
n = 50
design = { law = "normal", dim = 2 }
regression = { law = "zero" }
noise = { law = "normal", sd = 1.0 }
[heads]
count = 2
dim = 1
subspaces = { law = "orthogonal" }
kernel = { law = "gaussian", bandwidth = 0.5 }
[queries]
law = "points"
points = [[0.0, 0.0]]
[run]
seed = 1
replicates = 4096
)";
constexpr double point_count = 50;

QueryEstimates estimates_of(const std::vector<std::string>& sets, const std::string& backend) {
  const RunResult result = run(parse_scenario(study_text, "self-test", sets), {.backend = backend});
  return result.conditions.at(0).estimates.queries.at(0);
}

std::string print_two(const char* format, double a, double b) {
  char text[80];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

}  // namespace

SelfTestCheck compare_estimate(const std::string& name, const Estimate& figure, double expected) {
  const double z = (figure.value - expected) / figure.mcse;
  return {name, std::abs(z) <= 4,
          figure_text(figure) + print_two(", theory %.6g, z = %.2f", expected, z)};
}

SelfTestCheck compare_exact(const std::string& name, double value, double expected,
                            double tolerance) {
  return {name, std::abs(value - expected) <= tolerance,
          print_two("off by %.1e, rounding allows %.1e", std::abs(value - expected), tolerance)};
}

std::vector<SelfTestCheck> self_test(const std::string& backend) {
  // Sums over the points of a training set in float32.
  const double rounding = point_count * static_cast<double>(std::numeric_limits<float>::epsilon());
  const QueryEstimates noise = estimates_of({}, backend);
  const QueryEstimates constant = estimates_of(
      {"data.regression={ law = \"cosines\", amplitude = [1.0], frequency = [[0.0, 0.0]], "
       "phase = [0.0] }",
       "run.replicates=64"},
      backend);
  const QueryEstimates aligned =
      estimates_of({"heads.subspaces={ law = \"aligned\" }", "run.replicates=64"}, backend);
  const double variance = aligned.head_covariance.at(0).value;
  return {compare_estimate("covariance of orthogonal heads", noise.head_covariance.at(1),
                           1 / point_count),
          compare_exact("weights sum to 1", 1 + constant.head_bias.at(0).value, 1, rounding),
          compare_exact("aligned heads agree", aligned.head_covariance.at(1).value / variance, 1,
                        rounding)};
}

}  // namespace headlab::tools
