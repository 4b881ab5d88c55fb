// SPDX-License-Identifier: Apache-2.0
#include "tools/report/scale.h"

#include <cmath>
#include <limits>
#include <regex>

#include <gtest/gtest.h>

#include "tools/report/canvas.h"
#include "tools/report/figure.h"
#include "tools/report/labels.h"

namespace headlab::tools {

namespace {

const double nan = std::numeric_limits<double>::quiet_NaN();
const double infinite = std::numeric_limits<double>::infinity();

/// Ticks within the range and ascending, two or more of them.
void expect_good_ticks(const Scale& scale) {
  const std::vector<Tick> ticks = scale.ticks();
  ASSERT_GE(ticks.size(), 2u);
  EXPECT_LE(ticks.size(), 20u);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    EXPECT_TRUE(scale.holds(ticks[i].value)) << ticks[i].value;
    EXPECT_FALSE(ticks[i].label.empty());
    if (i > 0) {
      EXPECT_GT(ticks[i].value, ticks[i - 1].value);
    }
  }
}

TEST(Scale, OfLessThanADecadeHasTicksAllAlong) {
  std::vector<std::string> labels;
  for (const Tick& tick : Scale(ScaleKind::logarithmic, 0.085, 0.22, 0, 100).ticks(5)) {
    labels.push_back(tick.label);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"0.09", "0.10", "0.12", "0.15", "0.20"}));
}

TEST(Scale, MarksRoundNumbers) {
  const std::vector<Tick> ticks = Scale(ScaleKind::linear, 0, 1, 0, 100).ticks();
  ASSERT_EQ(ticks.size(), 6u);
  EXPECT_EQ(ticks[3].label, "0.6");
  EXPECT_EQ(Scale(ScaleKind::linear, -3, 3, 0, 1).ticks().front().label, "−2");
  EXPECT_EQ(Scale(ScaleKind::logarithmic, 0.5, 2000, 0, 1).ticks().front().label, "1");
}

TEST(Scale, HasEnoughTicks) {
  // Of the dimensions 1 to 12 more than 5 and 10, of 2.9 to 4.9 more than 4.
  EXPECT_EQ(Scale(ScaleKind::linear, 0.6, 12.4, 0, 1).ticks(5).size(), 6u);
  EXPECT_GE(Scale(ScaleKind::logarithmic, 2.9, 4.9, 0, 1).ticks(2).size(), 2u);
  // Decades alone where there is room for a few.
  EXPECT_EQ(Scale(ScaleKind::logarithmic, 0.04, 1.2, 0, 1).ticks(2).size(), 5u);
  EXPECT_EQ(Scale(ScaleKind::logarithmic, 0.04, 12, 0, 1).ticks(2).size(), 3u);
}

TEST(Scale, HasTicksInEveryRange) {
  for (const double low : {1e-300, 1e-12, 0.003, 1.0, 99.0, 1e8}) {
    for (const double factor : {1.0, 1.0001, 1.5, 3.0, 40.0, 1e7}) {
      for (const ScaleKind kind : {ScaleKind::linear, ScaleKind::logarithmic}) {
        SCOPED_TRACE(testing::Message() << low << " x " << factor);
        expect_good_ticks(Scale(kind, low, low * factor, 0, 500));
      }
    }
  }
  expect_good_ticks(Scale(ScaleKind::signed_log, -250, 12, 0, 500));
  expect_good_ticks(Scale(ScaleKind::signed_log, -1.5, 1.5, 0, 500));
  expect_good_ticks(Scale(ScaleKind::linear, -5e-5, -4e-5, 0, 500));
}

TEST(Scale, MakesARangeOfWhatIsNone) {
  for (const auto& [low, high] : {std::pair(0.0, 0.0), std::pair(3.0, 3.0), std::pair(nan, 1.0),
                                  std::pair(1.0, infinite), std::pair(2.0, 1.0)}) {
    for (const ScaleKind kind :
         {ScaleKind::linear, ScaleKind::logarithmic, ScaleKind::signed_log}) {
      const Scale scale(kind, low, high, 10, 20);
      EXPECT_LT(scale.low(), scale.high());
      EXPECT_TRUE(std::isfinite(scale(1)));
    }
  }
}

TEST(Scale, IsLogarithmicForFiguresFarApart) {
  const auto kind = [](const std::vector<double>& values) { return kind_for_figure(values); };
  EXPECT_EQ(kind({1, 5, 21, nan}), ScaleKind::logarithmic);
  EXPECT_EQ(kind({1, 5, 19}), ScaleKind::linear);
  EXPECT_EQ(kind({-1, 5, 21}), ScaleKind::linear);
  EXPECT_EQ(kind({0, 21}), ScaleKind::linear);
  EXPECT_EQ(kind({nan}), ScaleKind::linear);
  EXPECT_EQ(kind({}), ScaleKind::linear);
}

TEST(Scale, HasNoLogarithmFromZero) {
  EXPECT_EQ(Scale(ScaleKind::logarithmic, 0, 10, 0, 1).kind(), ScaleKind::linear);
  EXPECT_EQ(Scale(ScaleKind::logarithmic, 1e-3, 10, 0, 1).kind(), ScaleKind::logarithmic);
  EXPECT_FALSE(has_place(ScaleKind::logarithmic, 0));
  EXPECT_FALSE(has_place(ScaleKind::logarithmic, -1));
  EXPECT_FALSE(has_place(ScaleKind::linear, nan));
  EXPECT_TRUE(has_place(ScaleKind::linear, -1));
  // What has no place does not widen a range either.
  const std::vector<double> values = {0, -3, nan, 2, 8};
  const Range range = range_of(ScaleKind::logarithmic, values, 0);
  EXPECT_EQ(range.low, 2);
  EXPECT_EQ(range.high, 8);
}

TEST(Scale, KeepsValuesWithinItsEnds) {
  const Scale scale(ScaleKind::linear, 0, 10, 100, 0);
  EXPECT_EQ(scale(0), 100);
  EXPECT_EQ(scale(10), 0);
  EXPECT_EQ(scale(20), 0);
  EXPECT_FALSE(scale.holds(20));
}

TEST(Scale, TakesTheSpacingOfLevelsForItsKind) {
  EXPECT_EQ(kind_for_levels(std::vector<double>{50, 150, 500, 1500}), ScaleKind::logarithmic);
  EXPECT_EQ(kind_for_levels(std::vector<double>{1, 4, 7, 10}), ScaleKind::linear);
  EXPECT_EQ(kind_for_levels(std::vector<double>{0, 10, 1000}), ScaleKind::linear);
  EXPECT_EQ(kind_for_levels(std::vector<double>{1, 2, 4}), ScaleKind::linear);
}

TEST(Scale, WritesPowersOfTenAsSuch) {
  EXPECT_EQ(axis_number(1e6), "10^6");
  EXPECT_EQ(axis_number(-1e-5), "−10^−5");
  EXPECT_EQ(axis_number(2.5e12), "2.5·10^12");
  EXPECT_EQ(axis_number(-200000), "−200000");
  EXPECT_EQ(axis_number(0.0001), "0.0001");
  EXPECT_TRUE(is_number_text(axis_number(-2.5e-12)));
}

TEST(Scale, GivesEveryTickOfALinearAxisTheSameDecimals) {
  const auto labels = [](double low, double high) {
    std::string text;
    for (const Tick& tick : Scale(ScaleKind::linear, low, high, 0, 1).ticks()) {
      text += (text.empty() ? "" : " ") + tick.label;
    }
    return text;
  };
  EXPECT_EQ(labels(0, 0.0125), "0.000 0.005 0.010");
  EXPECT_EQ(labels(-0.5, 0.5), "−0.4 −0.2 0.0 0.2 0.4");
  EXPECT_EQ(labels(0, 50), "0 10 20 30 40 50");
  EXPECT_EQ(labels(0, 5e-7), "0 10^−7 2·10^−7 3·10^−7 4·10^−7 5·10^−7");
}

TEST(Scale, PutsPointsOfANarrowLogarithmicAxisUnderOneAnother) {
  const std::vector<Tick> ticks = Scale(ScaleKind::logarithmic, 0.03, 0.12, 0, 1).ticks(3);
  EXPECT_EQ(ticks.back().label, "0.10");
  EXPECT_EQ(Scale(ScaleKind::logarithmic, 0.03, 12, 0, 1).ticks(9).back().label, "10");
}

TEST(Scale, WritesMeasuredNumbersWithTheirLastDigits) {
  EXPECT_EQ(measured_number(0.0206), "0.02060");
  EXPECT_EQ(measured_number(-2.1, 3), "−2.10");
  EXPECT_EQ(measured_number(1234), "1234");
  EXPECT_EQ(measured_number(3.898e-9), "3.898e−09");
  EXPECT_EQ(measured_number(3e-20), "3.000e−20");
  EXPECT_EQ(measured_number(0), "0");
  EXPECT_EQ(measured_number(nan), "–");
  EXPECT_EQ(measured_number(1.234e-5), "0.00001234");
  EXPECT_EQ(estimate_text({.value = 1.30497e-4, .mcse = 7.2e-8}), "0.000130497 ± 0.000000072");
  EXPECT_EQ(estimate_text({.value = -5.138e-9, .mcse = 5.88e-10}), "(−5.14 ± 0.59)e−09");
}

TEST(Scale, WritesTheNumbersOfAnAxisAlike) {
  const std::vector<Tick> ticks = Scale(ScaleKind::logarithmic, 1e-5, 1, 0, 1).ticks();
  EXPECT_EQ(ticks.front().label, "10^−5");
  EXPECT_EQ(ticks[1].label, "10^−4");
  EXPECT_EQ(ticks.back().label, "10^0");
  EXPECT_EQ(Scale(ScaleKind::logarithmic, 1e-3, 1, 0, 1).ticks().front().label, "0.001");
  EXPECT_EQ(Scale(ScaleKind::linear, 0, 1.2e6, 0, 1).ticks()[1].label, "2·10^5");
}

TEST(Scale, DropsLabelsThatWouldOverlap) {
  std::vector<Tick> ticks = {{1, "one"}, {2, "two"}, {3, "three"}, {4, "four"}};
  const std::vector<double> places = {0, 10, 30, 60}, widths = {20, 20, 20, 20};
  const auto overlaps = [&] {
    double end = -1e9;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      if (ticks[i].label.empty()) continue;
      if (places[i] - widths[i] / 2 < end) return true;
      end = places[i] + widths[i] / 2;
    }
    return false;
  };
  EXPECT_TRUE(overlaps());  // the control: there is something to drop
  drop_overlapping(ticks, places, widths, 5);
  EXPECT_FALSE(overlaps());
  EXPECT_EQ(ticks[0].label, "one");
  EXPECT_EQ(ticks[1].label, "");
  EXPECT_EQ(ticks[2].label, "three");
  EXPECT_EQ(ticks[3].label, "four");
}

TEST(Scale, KeepsPowersOfTenOnAnAxisOfLogarithms) {
  std::vector<Tick> ticks;
  std::vector<double> places;
  for (const double value : {-20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20}) {
    ticks.push_back({value, axis_number(value)});
    places.push_back(60 * std::copysign(std::log10(1 + std::abs(value)), value));
  }
  const std::vector<double> widths(ticks.size(), 16);
  const auto labels_of = [&](ScaleKind kind) {
    std::vector<Tick> some = ticks;
    drop_overlapping(some, places, widths, 5, kind);
    std::string labels;
    for (const Tick& tick : some) labels += tick.label + (tick.label.empty() ? "" : " ");
    return labels;
  };
  EXPECT_EQ(labels_of(ScaleKind::signed_log), "−10 −2 0 2 10 ");
  EXPECT_EQ(labels_of(ScaleKind::linear), "−20 −5 −1 1 5 20 ");  // the control
}

}  // namespace

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

TEST(PercentText, HasTwoDigitsAndADashForWhatIsNone) {
  EXPECT_EQ(percent_text(0.0006), "0.060 %");
  EXPECT_EQ(percent_text(0.25), "25 %");
  EXPECT_EQ(percent_text(12.3), "1230 %");
  EXPECT_EQ(percent_text(0), "0 %");
  EXPECT_EQ(percent_text(0.9972), "99.7 %");
  EXPECT_EQ(percent_text(0.9923), "99.2 %");
  EXPECT_EQ(percent_text(1.0004), "100.04 %");
  EXPECT_EQ(percent_text(1), "100 %");
  EXPECT_EQ(percent_text(std::numeric_limits<double>::infinity()), "–");
  EXPECT_EQ(percent_text(std::numeric_limits<double>::quiet_NaN()), "–");
}

TEST(Canvas, DropsLabelsOfALowAxisThatWouldOverlap) {
  for (const double high : {0.6, 7.0, 40.0, 400.0, 1e5}) {
    const std::vector<double> heights = label_heights(62, 0.5, high);
    ASSERT_FALSE(heights.empty()) << high;
    for (std::size_t i = 1; i < heights.size(); ++i) {
      EXPECT_GE(heights[i] - heights[i - 1], text_size) << high;
    }
  }
  // The control: there is something to drop.
  EXPECT_LT(label_heights(62, 0.5, 40).size(), label_heights(300, 0.5, 40).size());
}

}  // namespace

}  // namespace headlab::tools
