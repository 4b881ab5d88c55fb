// SPDX-License-Identifier: Apache-2.0
/// \file The law of the level L = -log K of a token, with its response, on a few nodes.
///
/// What integrals need of a token are means of functions of L that are smooth over a unit,
/// e^(-sK) and its like. A node at any level counts as much as its Lagrange polynomials say at the
/// nodes of a panel around it, and a design of two dimensions becomes one of hundreds of nodes.
#pragma once

#include <vector>

#include <Eigen/Core>

#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/model/panels.h"

namespace headlab {

/// Equal panels of levels with Gauss-Legendre nodes.
class LevelGrid {
 public:
  using Shares = Eigen::Matrix<double, panel_order, 1>;

  /// Interpolates to about exp(-digits).
  LevelGrid(double from, double to, double digits);

  const Eigen::ArrayXd& levels() const { return levels_; }
  bool holds(double level) const { return level >= from_ && level <= to_; }
  /// The first node of the panel that a level is in, and what each of its nodes gets.
  Eigen::Index place(double level, Shares& shares) const;

 private:
  double from_;
  double to_;
  double width_;
  Eigen::ArrayXd reference_;  ///< nodes of [0, 1]
  Eigen::ArrayXd barycentric_;
  Eigen::ArrayXd levels_;
};

/// The law of a level that is summed up node by node. Levels beyond the grid, where weights are
/// below rounding, are left out.
class LevelMeasure {
 public:
  explicit LevelMeasure(const LevelGrid& grid);

  /// \param mean,square of the response at this node
  void add(double level, double probability, double mean, double square);
  const DesignNodes& nodes() const { return nodes_; }

 private:
  const LevelGrid& grid_;
  DesignNodes nodes_;
};

}  // namespace headlab
