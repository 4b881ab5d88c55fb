// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "validation/theory/controls/point_means.h"

namespace headlab {
namespace {

std::vector<TiltedMoments> at_queries(const TheoryModel& model, const TiltedDesign& tilted) {
  std::vector<TiltedMoments> moments;
  for (const Eigen::VectorXd& x : model.queries) moments.push_back(tilted.at(x));
  return moments;
}

}  // namespace

TiltedMeans::TiltedMeans(const TheoryModel& model) : model_(model) {
  const std::size_t heads = model.projections.size();
  pairs_.resize(heads * heads);
  for (std::size_t h = 0; h < heads; ++h) {
    heads_.push_back(at_queries(model, TiltedDesign(model, h, 1, h, 0, true)));
    for (std::size_t l = h; l < heads; ++l) {
      pairs_[h * heads + l] = at_queries(model, TiltedDesign(model, h, 1, l, 1, true));
    }
  }
}

const TiltedMoments& TiltedMeans::pair(std::size_t h, std::size_t l) const {
  return pairs_[std::min(h, l) * heads_.size() + std::max(h, l)][query_];
}

double TiltedMeans::ratio(std::size_t h, std::size_t l) const {
  return std::exp(pair(h, l).log_mass - head(h).log_mass - head(l).log_mass);
}

double TiltedMeans::noise(std::size_t h, std::size_t l) const {
  return ratio(h, l) * pair(h, l).noise_variance;
}

double TiltedMeans::product(std::size_t h, std::size_t l) const {
  return ratio(h, l) * pair(h, l).regression.product_about(estimate(h), estimate(l));
}

}  // namespace headlab
