// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/design_rounding.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/refusal.h"
#include "kernels/decompositions.h"
#include "kernels/laws.h"

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

/// A head along the direction in which two coordinates differ, of mean `mean` and correlation 1 -
/// `apart`. Its draws do not depend on the mean.
std::string difference_seen(double mean, double apart) {
  std::ostringstream text;
  text.precision(17);
  const double c = 1 - apart, sd = std::sqrt(apart);
  text << "[scenario]\nname = \"alike\"\n[data]\nn = 100\ndesign = { law = \"normal\", dim = 2, "
       << "mean = [" << mean << ", " << mean << "], covariance = [[1, " << c << "], [" << c
       << ", 1]] }\nregression = { law = \"zero\" }\nnoise = { law = \"normal\", sd = 1 }\n"
       << "[heads]\ncount = 1\ndim = 1\nsubspaces = { law = \"explicit\", matrices = "
       << "[[[0.7071067811865476], [-0.7071067811865476]]] }\nkernel = { law = \"gaussian\", "
       << "bandwidth = " << 0.3 * sd << " }\n[queries]\nlaw = \"points\"\npoints = [[" << mean
       << ", " << mean << "]]\n[run]\nseed = 1\nreplicates = 2000\n";
  return text.str();
}

std::string refusal_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  return refusal_line([&] { parse_scenario(text, "s.toml", sets); });
}

TEST(DesignRounding, IsJudgedInTheDirectionsThatHeadsSee) {
  const std::string text = difference_seen(1e4, 1e-6);
  EXPECT_EQ(
      refusal_of(text),
      "s.toml:5:73: data.design.covariance: head 0 sees a direction in which points have root "
      "mean square 1e+04 and standard deviation 0.001, a ratio of 1e+07 (allowed: 16384, "
      "points are float32) - bring the means nearer to 0, or use coordinates that are less "
      "alike");
  // Across it the same points vary enough, and about 0 they are held.
  EXPECT_EQ(refusal_of(text, {"heads.subspaces.matrices=[[[0.6], [0.8]]]"}), "accepted");
  EXPECT_EQ(refusal_of(text, {"data.design.mean=[0, 0]"}), "accepted");
  // Nothing is drawn.
  EXPECT_NO_THROW(parse_scenario(text, "s.toml", {}, ".", {.simulates = false}));
  EXPECT_THROW(
      parse_scenario(text, "s.toml", {"data.fixed_design=true"}, ".", {.simulates = false}),
      InvalidInput);
  // Any head of a set, and one of two dimensions.
  EXPECT_NE(refusal_of(text, {"heads.count=2",
                              "heads.subspaces.matrices=[[[0.6], [0.8]], [[0.8], [-0.6]]]"})
                .find(": head 1 sees"),
            std::string::npos);
  EXPECT_NE(refusal_of(text, {"heads.dim=2", "heads.subspaces={ law = \"aligned\" }"}), "accepted");
  // Heads that may see any direction, whichever they see first.
  for (const char* subspaces :
       {"{ law = \"coordinates\", redraw = true }", "{ law = \"learned\" }"}) {
    EXPECT_NE(refusal_of(text, {std::string("heads.subspaces=") + subspaces})
                  .find(": heads may see a direction"),
              std::string::npos);
  }
  EXPECT_EQ(refusal_of(text, {"heads.subspaces={ law = \"coordinates\" }"}), "accepted");
}

TEST(DesignRounding, OfDirectionsIsThatOfEveryCorrelatedDesign) {
  const std::string text = difference_seen(0, 1e-6);
  const std::string alike = "[[1, 0.999999], [0.999999, 1]]";
  EXPECT_EQ(
      refusal_of(text, {"data.design={ law = \"mixture\", weights = [0.5, 0.5], means = [[0, 0], "
                        "[9, 9]], covariances = [" +
                        alike + ", " + alike + "] }"}),
      "accepted");
  EXPECT_NE(
      refusal_of(text, {"data.design={ law = \"mixture\", weights = [0.5, 0.5], means = [[0, 0], "
                        "[90, 90]], covariances = [" +
                        alike + ", " + alike + "] }"})
          .find("data.design.covariances: in component 1, head 0 sees"),
      std::string::npos);
  for (const double ar1 : {0.999999, -0.5}) {
    const auto found =
        refusal_of(text, {"data.design={ law = \"normal\", dim = 2, mean = [1e4, 1e4], ar1 = " +
                          std::to_string(ar1) + " }"});
    EXPECT_EQ(found.find("data.design.ar1: head 0 sees") != std::string::npos, ar1 > 0) << found;
  }
  // Coordinates that are alike to more than float32 about 0.
  EXPECT_NE(refusal_of(difference_seen(0, 1e-9)), "accepted");
}

/// The largest ratio of a root mean square and a standard deviation within a plane, by trying.
double worst_ratio(const NormalDesign& design, const Eigen::MatrixXd& plane) {
  // Both forms on the plane: of cos², 2 cos sin and sin².
  double square[3] = {}, variance[3] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    const double p = plane(static_cast<Eigen::Index>(i), 0),
                 q = plane(static_cast<Eigen::Index>(i), 1);
    const double second = design.mean[i] * design.mean[i] + design.covariance[i][i];
    square[0] += p * p * second;
    square[1] += p * q * second;
    square[2] += q * q * second;
    for (std::size_t j = 0; j < 4; ++j) {
      const double r = plane(static_cast<Eigen::Index>(j), 0),
                   s = plane(static_cast<Eigen::Index>(j), 1);
      variance[0] += p * r * design.covariance[i][j];
      variance[1] += 0.5 * (p * s + q * r) * design.covariance[i][j];
      variance[2] += q * s * design.covariance[i][j];
    }
  }
  double worst = 0;
  constexpr int steps = 20000;
  for (int step = 0; step < steps; ++step) {
    const double angle = 3.14159265358979 * step / steps;
    const double c = std::cos(angle), s = std::sin(angle);
    worst =
        std::max(worst, (c * c * square[0] + 2 * c * s * square[1] + s * s * square[2]) /
                            (c * c * variance[0] + 2 * c * s * variance[1] + s * s * variance[2]));
  }
  return std::sqrt(worst);
}

/// No direction of a plane in four dimensions is missed, and none is refused for another.
TEST(DesignRounding, IsThatOfTheWorstDirection) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  int allowed = 0, rejected = 0;
  for (int trial = 0; trial < 200; ++trial) {
    NormalDesign design{.dim = 4,
                        .mean = {3000 * normal(random), 100, 500 * normal(random), 1},
                        .covariance = Rows(4, std::vector<double>(4))};
    Eigen::MatrixXd factor(4, 4);
    for (Eigen::Index i = 0; i < 16; ++i) factor(i) = normal(random);
    factor.col(2) *= 0.1;
    factor.col(3) *= 0.01;
    const Eigen::MatrixXd plane = signed_qr(factor.leftCols(2)).q;
    const Eigen::MatrixXd covariance = factor * factor.transpose();
    // Near the bound, on either side of it.
    double scale = 1;
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < 16; ++i) {
        design.covariance[i / 4][i % 4] =
            scale * scale *
            covariance(static_cast<Eigen::Index>(i / 4), static_cast<Eigen::Index>(i % 4));
      }
      scale *= worst_ratio(design, plane) / drawn_points.max_mean_over_sd;
      if (step == 1) scale *= 1 + 0.01 * normal(random);
    }
    const double ratio = worst_ratio(design, plane) / drawn_points.max_mean_over_sd;
    if (std::abs(ratio - 1) < 0.001) continue;
    const auto check = [&] { require_head_precision(design, spreads_of(design), {plane}); };
    if (ratio < 1) {
      EXPECT_NO_THROW(check()) << ratio;
      ++allowed;
    } else {
      EXPECT_THROW(check(), ParameterError) << ratio;
      ++rejected;
    }
  }
  EXPECT_GT(allowed, 20);
  EXPECT_GT(rejected, 20);
}

/// Where the bound lies rounding is far below any standard error here, too.
TEST(DesignRounding, CountsForLittleAtTheBoundOfADirection) {
  const double apart = 1e-5;
  const double most = drawn_points.max_mean_over_sd;
  // The mean square is one more than the square of the mean.
  const double bound = std::sqrt(apart * (most * most + 1) - 1);
  EXPECT_EQ(refusal_of(difference_seen(bound, apart)), "accepted");
  EXPECT_NE(refusal_of(difference_seen(1.1 * bound, apart)), "accepted");
  const auto variance = [&](double mean) {
    return run(parse_scenario(difference_seen(mean, apart), "s.toml"),
               {.backend = "cpu", .threads = 1})
        .conditions.at(0)
        .estimates.head_variance_mean;
  };
  const Estimate near = variance(0), far = variance(bound);
  EXPECT_LE(std::abs(near.value - far.value), 0.25 * near.mcse);
}

class DesignRoundingOfAFile : public FolderTest {};

TEST_F(DesignRoundingOfAFile, IsThatOfItsRows) {
  const auto write = [&](const char* name, double mean, double apart, int copies) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::ofstream out(at(name));
    out.precision(17);
    for (int i = 0; i < 500; ++i) {
      const double common = normal(random), own = normal(random);
      out << mean + common << "," << mean + common + std::sqrt(2 * apart) * own;
      for (int copy = 0; copy < copies; ++copy) out << "," << mean + common;
      out << "\n";
    }
  };
  write("far.csv", 1e4, 1e-6, 0);
  write("near.csv", 0, 1e-6, 0);
  write("alike.csv", 0, 0, 0);
  const auto found = [&](const char* name) {
    return refusal_of(difference_seen(0, 1e-6),
                      {"data.design={ law = \"file\", path = \"" + at(name) + "\" }"});
  };
  EXPECT_NE(found("far.csv").find("data.design.path: head 0 sees a direction"), std::string::npos);
  EXPECT_EQ(found("near.csv"), "accepted");
  // A direction in which nothing varies is held, as a column that does not vary is.
  EXPECT_EQ(found("alike.csv"), "accepted");
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
