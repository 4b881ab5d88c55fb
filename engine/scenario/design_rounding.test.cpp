// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/design_rounding.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

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
  const ConditionEstimates near = estimates_at(0), far = estimates_at(max_mean_over_sd);
  const auto expected = numbers_of<Estimate>(near), actual = numbers_of<Estimate>(far);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LE(std::abs(expected[i].number->value - actual[i].number->value),
              0.25 * expected[i].number->mcse)
        << expected[i].name;
  }
}

TEST(DesignRounding, ColumnsThatDoNotVaryAreHeld) {
  FileDesign design;
  design.rows = {{1e6, 1}, {1e6, 2}};
  EXPECT_NO_THROW(require_float32_design(design));
  design.rows = {{1e6, 1}, {1e6 + 1, 2}};
  EXPECT_THROW(require_float32_design(design), ParameterError);
}

}  // namespace
}  // namespace headlab
