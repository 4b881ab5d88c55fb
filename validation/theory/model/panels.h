// SPDX-License-Identifier: Apache-2.0
/// \file Composite Gauss-Legendre quadrature whose panels follow a local length scale.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <Eigen/Core>

#include "engine/files/error.h"

namespace headlab {

/// Nodes and weights: sum_i weights[i] f(points[i]) is the integral of f.
struct Nodes {
  Eigen::ArrayXd points;
  Eigen::ArrayXd weights;
  bool coarsened = false;  ///< panels are wider than was asked for, to keep within a limit
};

/// Points in one panel.
inline constexpr int panel_order = 15;

/// An integral needs more than max_panels.
class TooManyPanels : public InvalidInput {
 public:
  using InvalidInput::InvalidInput;
};

/// Panels that panel_nodes() lays at most.
inline constexpr std::size_t max_panels = 33000;

/// Width of a panel, in units of w, that integrates exp(-exp(u/w)) and its like to about
/// exp(-digits): functions bounded in the strip |Im u| < w pi/2, where Gauss-Legendre of N points
/// on a panel of half width h w errs by rho^(-2N) with (rho - 1/rho)/2 = (pi/2)/h (Trefethen, Is
/// Gauss quadrature better than Clenshaw-Curtis?, SIAM Review 50, 2008, theorem 4.5). Infinite at
/// 0.
double panel_width(double digits);

/// Divides [from, to] at `breaks` and then in halves, until no panel is wider than the least of
/// `width` at its ends and quarters, and lays the Gauss-Legendre rule on each.
/// \param breaks points to divide at first, so that a narrow feature there is seen
/// \param width > 0, a smooth function
/// Throws TooManyPanels, before it lays them, where max_panels are not enough.
Nodes panel_nodes(double from, double to, const std::vector<double>& breaks,
                  const std::function<double(double)>& width);

}  // namespace headlab
