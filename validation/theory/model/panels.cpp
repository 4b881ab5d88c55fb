// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/model/panels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include <boost/math/quadrature/gauss.hpp>

namespace headlab {
namespace {

using PanelRule = boost::math::quadrature::gauss<double, panel_order>;

void divide(double from, double to, const std::function<double(double)>& width,
            std::vector<double>& edges) {
  if (edges.size() > max_panels + 1) return;
  double least = width(from);
  for (int quarter = 1; quarter <= 4; ++quarter) {
    least = std::min(least, width(from + (to - from) * quarter / 4));
  }
  const double middle = from + (to - from) / 2;
  if (to - from <= least || middle <= from || middle >= to) {
    edges.push_back(to);
    return;
  }
  divide(from, middle, width, edges);
  divide(middle, to, width, edges);
}

}  // namespace

double panel_width(double digits) {
  if (digits <= 0) return std::numeric_limits<double>::infinity();
  return std::numbers::pi / std::sinh(digits / (2 * panel_order));
}

Nodes panel_nodes(double from, double to, const std::vector<double>& breaks,
                  const std::function<double(double)>& width) {
  std::vector<double> coarse = {from, to};
  for (double edge : breaks) {
    if (edge > from && edge < to) coarse.push_back(edge);
  }
  std::ranges::sort(coarse);
  std::vector<double> edges = {from};
  for (std::size_t i = 1; i < coarse.size(); ++i) divide(coarse[i - 1], coarse[i], width, edges);
  if (edges.size() > max_panels + 1) {
    throw TooManyPanels("an integral needs more than " + std::to_string(max_panels * panel_order) +
                        " points");
  }

  const auto& abscissa = PanelRule::abscissa();  // the half of the rule from 0 upward
  const auto& weights = PanelRule::weights();
  const auto panels = static_cast<Eigen::Index>(edges.size() - 1);
  Nodes nodes;
  nodes.points.resize(panels * panel_order);
  nodes.weights.resize(panels * panel_order);
  Eigen::Index next = 0;
  const auto add = [&](double point, double weight) {
    nodes.points(next) = point;
    nodes.weights(next++) = weight;
  };
  for (std::size_t i = 1; i < edges.size(); ++i) {
    const double centre = (edges[i - 1] + edges[i]) / 2;
    const double half = (edges[i] - edges[i - 1]) / 2;
    for (std::size_t j = abscissa.size(); j-- > 1;) {
      add(centre - half * abscissa[j], half * weights[j]);
    }
    for (std::size_t j = 0; j < abscissa.size(); ++j) {
      add(centre + half * abscissa[j], half * weights[j]);
    }
  }
  return nodes;
}

}  // namespace headlab
