// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/design_rounding.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/run/run.h"

namespace headlab {
namespace {

/// Oblique heads at the mean of a design, whose draws do not depend on it.
ConditionEstimates estimates_at(double mean) {
  const std::string m = std::to_string(mean), x = std::to_string(mean + 0.5);
  return run(parse_scenario(
                 "[scenario]\nname = \"far\"\n[data]\nn = 100\ndesign = { law = "
                 "\"normal\", dim = 2, mean = [" +
                     m + ", " + m +
                     "] }\nregression = { law = \"bumps\", heights = [1.0], centres = [[" + m +
                     ", " + m +
                     "]], widths = [1.0] }\nnoise = { law = \"normal\", sd = 0.5 }\n"
                     "[heads]\ncount = 2\ndim = 1\nsubspaces = { law = \"explicit\", "
                     "matrices = [[[0.8], [-0.6]], [[0.6], [0.8]]] }\nkernel = { law = "
                     "\"gaussian\", bandwidth = 0.2 }\n[queries]\nlaw = \"points\"\n"
                     "points = [[" +
                     x + ", " + m + "]]\n[run]\nseed = 1\nreplicates = 2000\n",
                 "far.toml"),
             {.backend = "cpu", .threads = 1})
      .conditions.at(0)
      .estimates;
}

/// Where the bound lies rounding of the points is far below any standard error.
TEST(DesignRounding, CountsForLittleAtTheBound) {
  const ConditionEstimates near = estimates_at(0),
                           far = estimates_at(drawn_points.max_mean_over_sd);
  const auto expected = numbers_of<Estimate>(near), actual = numbers_of<Estimate>(far);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LE(std::abs(expected[i].number->value - actual[i].number->value),
              0.25 * expected[i].number->mcse)
        << expected[i].name;
  }
}

TEST(DesignRounding, ColumnsThatDoNotVaryAreHeld) {
  EXPECT_NO_THROW(require_column_precision(0, 1e6, 0));
  EXPECT_NO_THROW(require_column_precision(0, drawn_points.max_mean_over_sd, 1));
  EXPECT_THROW(require_column_precision(0, 1e6, 1), ParameterError);
}

/// Closed forms go farther, unless points are drawn for them.
TEST(DesignRounding, IsLessForClosedForms) {
  const auto read = [](const std::string& more, bool simulates) {
    return parse_scenario(
        "[scenario]\nname = \"far\"\n[data]\nn = 100\ndesign = { law = \"normal\", dim = 1, "
        "mean = [1e6] }\nregression = { law = \"zero\" }\nnoise = { law = \"normal\", sd = 0.5 "
        "}\n[heads]\ncount = 1\ndim = 1\nsubspaces = { law = \"aligned\" }\nkernel = { law = "
        "\"gaussian\", bandwidth = 0.2 }\n[queries]\nlaw = \"points\"\npoints = "
        "[[1e6]]\n[run]\nreplicates = 8\n",
        "far.toml", {more}, ".", {.simulates = simulates});
  };
  EXPECT_NO_THROW(read("run.seed=1", false));
  EXPECT_THROW(read("run.seed=1", true), InvalidInput);
  EXPECT_THROW(read("data.fixed_design=true", false), InvalidInput);
  EXPECT_THROW(read("queries={ law = \"design\", count = 2 }", false), InvalidInput);
  EXPECT_THROW(read("data.design.covariance=[[1e-8]]", false), InvalidInput);
}

}  // namespace
}  // namespace headlab
