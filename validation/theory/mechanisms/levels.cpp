// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "validation/theory/exact/scalar_tables.h"
#include "validation/theory/mechanisms/finite_n_tokens.h"
#include "validation/theory/mechanisms/level_measure.h"

namespace headlab {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::VectorXd;

HeadMoments two_level_moments(const TheoryModel& model, std::uint64_t tokens, double truth,
                              const ScalarHead& head, const Resolution& resolution) {
  const double own = model.levels.at(0);
  const double block = model.levels.at(1);
  const std::uint64_t blocks = tokens / 2;
  const ScalarLaw& law = head.laws.at(0);

  // The level of a block is at most the larger one of its tokens, L_i <= max(L(u_1), L(u_2)).
  ArrayXd ends(3);
  ends << law.mean - resolution.reach() * law.sd, law.mean + resolution.reach() * law.sd, 0;
  ends(2) = head.softmax ? ends(0) : std::clamp(head.centre, ends(0), ends(1));
  const ArrayXd end_levels = head.minus_log_kernel(ends);
  const double least = end_levels.minCoeff() - std::log(2.0);
  const SigmaRange range = sigma_range({-least, least, end_levels.maxCoeff(),
                                        [&](double level) {
                                          const double beyond = head.survival(level);
                                          return beyond * (2 - beyond);
                                        }},
                                       blocks, resolution);
  // A token far away matters as far as its block is near by the other token, whose best place
  // leaves this share of its level.
  SigmaRange reachable = range;
  if (head.softmax) reachable.loss.setZero();
  const double share = std::min(own, own * block / (4 * own + block));
  const Nodes u = scalar_nodes(law, {{.head = head, .range = reachable, .loss_share = share}},
                               law.sd * resolution.widest(), resolution);
  const ArrayXd mass = masses(u, law);
  const ResponseMoments response(model, truth, model.design.components.at(0),
                                 law.sd > 0 ? (head.direction / law.sd).eval() : head.direction);
  std::vector<FunctionMoments> moments;
  for (const double at : u.points) {
    moments.push_back(response(VectorXd::Constant(1, law.sd > 0 ? (at - law.mean) / law.sd : 0)));
  }

  const LevelGrid grid(least - 1e-9 * std::abs(least), range.to + resolution.digits + 10,
                       resolution.digits);
  LevelMeasure measure(grid);
  const ArrayXd single = own * head.minus_log_kernel(u.points);
  for (Index i = 0; i < u.points.size(); ++i) {
    const ArrayXd shared = block * head.minus_log_kernel((u.points(i) + u.points) / 2);
    for (Index j = 0; j <= i; ++j) {
      // Pairs of tokens in either order.
      const double p = mass(i) * mass(j) * (i == j ? 1 : 2);
      if (!(p > 1e-40)) continue;
      const double difference = single(j) - single(i);
      const double w = 1 / (1 + std::exp(-difference));
      const double v = 1 - w;
      const double level =
          shared(j) + std::min(single(i), single(j)) - std::log1p(std::exp(-std::abs(difference)));
      const FunctionMoments& a = moments[static_cast<std::size_t>(i)];
      const FunctionMoments& b = moments[static_cast<std::size_t>(j)];
      measure.add(level, p, w * a.mean + v * b.mean,
                  w * w * a.mean_square + v * v * b.mean_square + 2 * w * v * a.mean * b.mean);
    }
  }
  HeadMoments result = head_moments(blocks, sigma_nodes(range, resolution), {measure.nodes()});
  result.coarsened = u.coarsened;
  return result;
}

FilteredKeyMoments filtered_key_moments(const std::vector<double>& levels) {
  FilteredKeyMoments moments = {0, 0, 0};
  for (std::size_t l = 0; l < levels.size(); ++l) {
    moments.covariance += std::ldexp(levels[l], -static_cast<int>(l));
    for (std::size_t j = 0; j < levels.size(); ++j) {
      moments.variance += std::ldexp(levels[l] * levels[j], -static_cast<int>(std::max(l, j)));
    }
  }
  moments.price_exponent = moments.variance / (moments.covariance * moments.covariance) - 1;
  return moments;
}

}  // namespace headlab
