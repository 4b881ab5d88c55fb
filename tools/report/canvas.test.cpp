// SPDX-License-Identifier: Apache-2.0
#include "tools/report/canvas.h"

#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

/// Heights of the labels of an axis of `height` from `low` to `high`, from the top.
std::vector<double> label_heights(double height, double low, double high) {
  Canvas canvas(300, height);
  const Axes axes{{50, 0, 290, height}, {}, Scale(ScaleKind::logarithmic, low, high, height, 0)};
  draw_y_axis(canvas, axes, {"", axes.y.ticks(2)});
  const std::string svg = canvas.svg("id", "title", "description");
  const std::regex label("<text x=\"[^\"]*\" y=\"([^\"]*)\"");
  std::vector<double> heights;
  for (std::sregex_iterator at(svg.begin(), svg.end(), label), end; at != end; ++at) {
    heights.push_back(std::stod((*at)[1]));
  }
  return heights;
}

TEST(Canvas, DropsLabelsOfALowAxisThatWouldOverlap) {
  for (const double high : {0.6, 7.0, 50.0, 400.0, 1e5}) {
    const std::vector<double> heights = label_heights(62, 0.5, high);
    ASSERT_FALSE(heights.empty()) << high;
    for (std::size_t i = 1; i < heights.size(); ++i) {
      EXPECT_GE(heights[i] - heights[i - 1], text_size) << high;
    }
  }
  // The control: there is something to drop.
  EXPECT_LT(label_heights(62, 0.5, 50).size(), label_heights(300, 0.5, 50).size());
}

}  // namespace
}  // namespace headlab::tools
