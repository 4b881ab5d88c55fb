// SPDX-License-Identifier: Apache-2.0
#include "tools/report/slopes.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/files/json_reader.h"

namespace headlab::tools {
namespace {

const std::vector<double> sizes = {100, 200, 400}, bandwidths = {0.5, 0.1};

/// Conditions of all n, and of all bandwidths for each.
/// \param seeds  each n has a seed of its own
Value conditions_of(std::size_t count_of_n, bool seeds = false) {
  std::string text;
  for (std::size_t i = 0; i < count_of_n; ++i) {
    for (const double bandwidth : bandwidths) {
      text += std::string(text.empty() ? "" : ",") + R"({"parameters": {"data": {"n": )" +
              std::to_string(sizes[i]) + R"(}, "heads": {"kernel": {"bandwidth": )" +
              std::to_string(bandwidth) + R"(}}, "run": {"seed": )" +
              std::to_string(seeds ? i : 7) + "}}}";
    }
  }
  return parse_json("[" + text + "]").value();
}

/// 4 n^-0.8 at the smaller bandwidth, more at the larger one.
std::optional<NodeFigure> mse_of(std::size_t condition) {
  const double value = 4 * std::pow(sizes[condition / 2], condition % 2 == 0 ? -0.3 : -0.8);
  NodeFigure mse{{value, {0.9 * value, 1.1 * value, value, value}}, {8, 8, 8, 8}};
  mse.figure.leave_one_out.front() *= condition < 2 ? 1.01 : 1;
  return mse;
}

TEST(SlopesOverN, AreThoseOfTheLeastError) {
  const Value conditions = conditions_of(3);
  const SlopesOverN slopes = slopes_over_n(items_of(conditions), mse_of);
  EXPECT_EQ(slopes.at_the_least, "bandwidth");
  ASSERT_EQ(slopes.all.size(), 1u);
  EXPECT_EQ(slopes.all[0].setting, "");
  EXPECT_NEAR(slopes.all[0].slope.slope.value, -0.8, 1e-12);
  EXPECT_GT(slopes.all[0].slope.slope.mcse, 0);
  const std::string html = slopes_html(slopes);
  EXPECT_NE(html.find("of the least MSE over the bandwidth at each n"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"n\">−0.80"), std::string::npos) << html;
}

TEST(SlopesOverN, NeedThreeSizesAndCommonTrainingSets) {
  const auto count = [](const Value& conditions, const auto& figures) {
    return slopes_over_n(items_of(conditions), figures).all.size();
  };
  EXPECT_EQ(count(conditions_of(3), mse_of), 1u);
  EXPECT_EQ(count(conditions_of(2), mse_of), 0u);
  EXPECT_EQ(count(conditions_of(3, true), mse_of), 0u);
  EXPECT_EQ(
      count(conditions_of(3), [](std::size_t c) { return c == 4 ? std::nullopt : mse_of(c); }), 0u);
  EXPECT_EQ(slopes_html({}), "");
}

}  // namespace
}  // namespace headlab::tools
