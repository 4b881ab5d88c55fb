// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/mechanisms/level_measure.h"

#include <algorithm>
#include <cmath>

namespace headlab {

using Eigen::Index;
using Eigen::VectorXd;

LevelGrid::LevelGrid(double from, double to, double digits)
    : from_(from),
      to_(to),
      reference_(panel_nodes(0, 1, {}, [](double) { return 2.0; }).points),
      barycentric_(reference_.size()) {
  // Interpolation by 15 points is as good as quadrature by 15 points of half the digits.
  const double panels = std::max(1.0, std::ceil((to - from) / panel_width(2 * digits)));
  width_ = (to - from) / panels;
  for (Index j = 0; j < panel_order; ++j) {
    double product = 1;
    for (Index i = 0; i < panel_order; ++i) {
      if (i != j) product *= reference_(j) - reference_(i);
    }
    barycentric_(j) = 1 / product;
  }
  levels_.resize(static_cast<Index>(panels) * panel_order);
  for (Index i = 0; i < levels_.size(); ++i) {
    levels_(i) =
        from + width_ * (static_cast<double>(i / panel_order) + reference_(i % panel_order));
  }
}

Index LevelGrid::place(double level, Shares& shares) const {
  const double panels = static_cast<double>(levels_.size() / panel_order);
  const double panel = std::clamp(std::floor((level - from_) / width_), 0.0, panels - 1);
  const double at = (level - from_) / width_ - panel;
  double sum = 0;
  for (Index j = 0; j < panel_order; ++j) {
    const double away = at - reference_(j);
    if (away == 0) {
      shares.setZero();
      shares(j) = sum = 1;
      break;
    }
    sum += shares(j) = barycentric_(j) / away;
  }
  shares /= sum;
  return static_cast<Index>(panel) * panel_order;
}

LevelMeasure::LevelMeasure(const LevelGrid& grid) : grid_(grid) {
  nodes_.level = grid.levels();
  for (VectorXd* part : {&nodes_.probability, &nodes_.mean, &nodes_.square}) {
    *part = VectorXd::Zero(grid.levels().size());
  }
}

void LevelMeasure::add(double level, double probability, double mean, double square) {
  if (!grid_.holds(level)) return;
  LevelGrid::Shares shares;
  const Index first = grid_.place(level, shares);
  nodes_.probability.segment<panel_order>(first) += probability * shares;
  nodes_.mean.segment<panel_order>(first) += probability * mean * shares;
  nodes_.square.segment<panel_order>(first) += probability * square * shares;
}

}  // namespace headlab
