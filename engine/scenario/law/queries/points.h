// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/scenario/law/queries/queries.h"
#include "kernels/counted.h"
#include "kernels/parameter.h"

namespace headlab {

class Table;
struct DesignSampler;

/// The query points as given.
struct PointQueries {
  static constexpr const char* name = "points";
  static constexpr const char* summary = "the points as given";
  static constexpr const char* example = "points = [[0, 0, 0, 0]]";

  std::vector<std::vector<double>> points = {};  ///< [Q][d]
  std::vector<double> truth = {};  ///< [Q], of a regression that is known at rows alone

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("points", points, within(-1e15, 1e15), "[Q][d]");
    visit.optional("truth", truth, within(-1e15, 1e15), "[Q], m there, of regression file");
  }

  /// Throws ParameterError unless every point has d coordinates, there is at least one, and the
  /// truth is given at all or none.
  void check(int d) const {
    if (points.empty()) throw ParameterError("points", "is empty, needs at least one point");
    if (points.size() > 1000000) {
      throw ParameterError(
          "points", "has " + counted(points.size(), "point") + " (allowed: at most 1000000)");
    }
    for (std::size_t q = 0; q < points.size(); ++q) {
      if (points[q].size() != static_cast<std::size_t>(d)) {
        const std::size_t count = points[q].size();
        throw ParameterError(
            "points[" + std::to_string(q) + "]",
            "has " + counted(count, "coordinate") + ", the design has dim " + std::to_string(d));
      }
    }
    if (!truth.empty() && truth.size() != points.size()) {
      throw ParameterError("truth", "has " + counted(truth.size(), "number") + " for " +
                                        counted(points.size(), "point"));
    }
  }

  /// Number of query points, Q.
  int size() const { return static_cast<int>(points.size()); }

  QuerySet generate(int, const DesignSampler&, const Table&) const {
    QuerySet set{.truth = truth};
    set.points.reserve(points.size() * points[0].size());
    for (const auto& point : points) {
      set.points.insert(set.points.end(), point.begin(), point.end());
    }
    return set;
  }
};

}  // namespace headlab
