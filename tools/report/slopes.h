// SPDX-License-Identifier: Apache-2.0
/// \file How fast the error of a run falls with n.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/moments/jackknife.h"
#include "tools/report/source.h"

namespace headlab::tools {

/// A figure of a condition with each of its nodes left out, and their replicates.
struct NodeFigure {
  Jackknifed figure;
  std::vector<double> counts;
};

/// Slopes of a sweep over three or more n, each point at the bandwidth or temperature where the MSE
/// is least if these are swept too. Nothing where there is no such sweep, where conditions share no
/// training sets, or where one has no standard error.
/// \param mse_of  that of a condition by its number; nothing where it has no nodes
SlopesOverN slopes_over_n(
    const Value::Array& conditions,
    const std::function<std::optional<NodeFigure>(std::size_t condition)>& mse_of);

/// The table with its words; empty without slopes.
std::string slopes_html(const SlopesOverN& slopes);

/// A row of a table of slopes: name, slope, interval.
std::vector<std::string> slope_row(const std::string& name, const SlopeEstimate& slope);

}  // namespace headlab::tools
