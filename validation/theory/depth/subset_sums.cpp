// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/subset_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "engine/files/error.h"
#include "validation/theory/model/panels.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;

void require_subsets(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("subset sums: ") + message);
}

/// Density at y of the sum of k uniforms on (0, 1), a B-spline, by de Boor's recursion: sums of
/// positive terms.
double uniform_sum_density(int k, double y) {
  std::vector<double> density(static_cast<std::size_t>(k));  // of r uniforms, at y - j
  for (int j = 0; j < k; ++j) density[static_cast<std::size_t>(j)] = y >= j && y < j + 1 ? 1 : 0;
  for (int r = 2; r <= k; ++r) {
    for (int j = 0; j + r <= k; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const double x = y - j;
      density[at] = (x * density[at] + (r - x) * density[at + 1]) / (r - 1);
    }
  }
  return density[0];
}

/// P(|S - z| <= eps), S the sum of k uniforms on (-1, 1), exact but for rounding: the density is a
/// polynomial of degree k - 1 between integers.
double uniform_sum_hit(int k, double target, double eps) {
  const double from = std::max((target - eps + k) / 2, 0.0);
  const double to = std::min((target + eps + k) / 2, static_cast<double>(k));
  if (from >= to) return 0;
  std::vector<double> knots;
  for (int j = 1; j < k; ++j) knots.push_back(j);
  const Nodes nodes =
      panel_nodes(from, to, knots, [](double) { return std::numeric_limits<double>::infinity(); });
  double sum = 0;
  for (Eigen::Index i = 0; i < nodes.points.size(); ++i) {
    sum += nodes.weights(i) * uniform_sum_density(k, nodes.points(i));
  }
  return sum;
}

/// Points and probabilities that stand for the law of one sample.
struct SampleNodes {
  std::vector<double> points, probabilities;
};

SampleNodes sample_nodes(SampleLaw law) {
  constexpr int half = 32;
  SampleNodes nodes;
  double total = 0;
  for (int i = 0; i < half; ++i) {
    // |x| = s, or |x| = s^2 with the density -log|x| of a product.
    const double s = (i + 0.5) / half;
    const double size = law == SampleLaw::uniform ? s : s * s;
    const double weight = law == SampleLaw::uniform ? 1 : -s * std::log(s);
    for (const double sign : {1.0, -1.0}) {
      nodes.points.push_back(sign * size);
      nodes.probabilities.push_back(weight);
      total += weight;
    }
  }
  for (double& probability : nodes.probabilities) probability /= total;
  return nodes;
}

}  // namespace

double expected_subset_hits(int count, double target, double eps) {
  require_subsets(count >= 0 && count <= 30, "the number of samples must be in [0, 30]");
  require_subsets(std::isfinite(target), "the target must be finite");
  require_subsets(std::isfinite(eps) && eps > 0, "eps must be finite and positive");
  double hits = std::abs(target) <= eps ? 1 : 0;
  double subsets = 1;
  for (int k = 1; k <= count; ++k) {
    subsets = subsets * (count - k + 1) / k;
    hits += subsets * uniform_sum_hit(k, target, eps);
  }
  return hits;
}

RandomEnergyForm::RandomEnergyForm(int count, SampleLaw law) : count_(count) {
  require_subsets(count >= 1 && count <= 24, "the number of samples must be in [1, 24]");
  // Probabilities of cells (sum, sum of squares), each sample shared among the four cells around
  // its place, so that means are kept.
  constexpr double step = 1.0 / 16;
  const int reach = static_cast<int>(count / step) + 2;
  ArrayXXd cells = ArrayXXd::Zero(reach, 2 * reach);  // [square][sum], sum 0 at column `reach`
  cells(0, reach) = 1;
  const SampleNodes nodes = sample_nodes(law);
  for (int sample = 0; sample < count; ++sample) {
    const int rows = static_cast<int>(sample / step) + 2;
    ArrayXXd next = ArrayXXd::Zero(reach, 2 * reach);
    for (std::size_t i = 0; i < nodes.points.size(); ++i) {
      const double x = nodes.points[i];
      const double right = std::floor(x / step);
      const double up = std::floor(x * x / step);
      const double to_right = x / step - right;
      const double to_up = x * x / step - up;
      const auto block = cells.block(0, reach - rows, rows, 2 * rows - 1);
      for (int a = 0; a < 2; ++a) {
        for (int b = 0; b < 2; ++b) {
          const double share = (a ? to_up : 1 - to_up) * (b ? to_right : 1 - to_right);
          const Eigen::Index row = static_cast<Eigen::Index>(up) + a;
          const Eigen::Index column = reach - rows + static_cast<Eigen::Index>(right) + b;
          next.block(row, column, block.rows(), block.cols()) +=
              share * nodes.probabilities[i] * block;
        }
      }
    }
    cells = next;
  }
  const Eigen::Index occupied = (cells > 0).count();
  sum_.resize(occupied);
  square_.resize(occupied);
  probability_.resize(occupied);
  Eigen::Index at = 0;
  for (Eigen::Index column = 0; column < cells.cols(); ++column) {
    for (Eigen::Index row = 0; row < cells.rows(); ++row) {
      if (!(cells(row, column) > 0)) continue;
      sum_(at) = static_cast<double>(column - reach) * step;
      square_(at) = std::max(static_cast<double>(row), 0.5) * step;
      probability_(at++) = cells(row, column);
    }
  }
}

double RandomEnergyForm::failure(double target, double eps) const {
  require_subsets(std::isfinite(target), "the target must be finite");
  require_subsets(std::isfinite(eps) && eps >= 0, "eps must be finite and not negative");
  const ArrayXd density = (2 / (std::numbers::pi * square_)).sqrt() *
                          (-2 * (target - sum_ / 2).square() / square_).exp();
  const double subsets = std::ldexp(1.0, count_);
  return (probability_ * (-2 * eps * subsets * density).exp()).sum();
}

double attention_shift_upper_bound(double largest_logit_error) {
  require_subsets(largest_logit_error >= 0, "a logit error must not be negative");
  return std::tanh(largest_logit_error / 2);
}

}  // namespace headlab
