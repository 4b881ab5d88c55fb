// SPDX-License-Identifier: Apache-2.0
/// \file Curves of a figure over a swept key, of `headlab along` and `headlab plot`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/results/stored_figures.h"
#include "tools/cli/options.h"
#include "tools/tables/table_source.h"
#include "validation/allocation/selection.h"
#include "validation/curves/curves.h"

namespace headlab::tools {

/// A condition with the figure, its value left out node by node.
struct ConditionFigure {
  Jackknifed figure;
  std::vector<double> counts;  ///< replicates of the nodes
};

/// A point of a curve: a condition, or the least of several.
struct CurvePoint {
  double x = 0;
  std::vector<std::size_t> conditions;  ///< to choose from
  Screening choice = {};                ///< of these
  std::size_t chosen() const { return conditions[choice.least]; }
};

struct NamedCurve {
  std::string name;  ///< the values of the other keys: "count = 4"
  std::vector<CurvePoint> points;
  Screening lowest = {};  ///< of the points
  Curve curve = {};
};

/// What curves are asked for.
struct CurvesRequest {
  std::string command;  ///< that heads what is rejected: "along"
  std::string option;   ///< by which `over` is given: "--over"
  std::string over;     ///< the swept key along which the figure is seen, by any of its names
  std::optional<std::string> min_over;  ///< a key of which each point takes the least
  std::string figure = "mse";           ///< averaged over queries
  std::vector<std::size_t> rows = {};   ///< of the table; none: all of them
};

/// The keys that tell curves over `over` apart: without those that follow from it, as a bandwidth
/// by a formula of n does, which belong to the points of a curve, and those that vary with another.
std::vector<const TableColumn*> keys_apart(const TableSource& table,
                                           const std::vector<std::size_t>& rows,
                                           const TableColumn& over,
                                           const std::optional<TableColumn>& min_over = {});

/// Curves over a swept key, one for each setting of the others.
class Curves {
 public:
  /// \param table  the conditions of `results`
  /// Throws InvalidInput where conditions have other draws, or the figure is not there.
  Curves(CurvesRequest request, const StoredResults& results, const TableSource& table);

  const std::vector<NamedCurve>& all() const { return all_; }
  const TableColumn& over() const { return over_; }
  const std::optional<TableColumn>& min_over() const { return min_over_; }
  const std::vector<double>& counts() const { return figures_[first_].counts; }
  Estimate figure_of(const CurvePoint& point) const {
    return figures_[point.chosen()].figure.figure(counts());
  }

 private:
  double x_of(std::size_t i) const;
  void add(const CurvesRequest& request, std::size_t i);
  void finish(NamedCurve& one) const;

  TableColumn over_;
  std::optional<TableColumn> min_over_;
  std::vector<ConditionFigure> figures_;  ///< [conditions], of those not asked for empty
  std::size_t first_ = 0;                 ///< condition that was asked for
  std::vector<const TableColumn*> keys_;  ///< those that tell curves apart
  std::vector<NamedCurve> all_;
};

/// Throws InvalidInput where results have no nodes, which curves need.
void require_nodes(const StoredResults& results);

}  // namespace headlab::tools
