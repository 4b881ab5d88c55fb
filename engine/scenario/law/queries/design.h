// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/scenario/law/queries/queries.h"
#include "kernels/design_point.h"
#include "kernels/parameter.h"
#include "kernels/philox.h"
#include "kernels/table.h"

namespace headlab {

/// Query points drawn from the design, once for all replicates or for every leaf.
struct DesignQueries {
  static constexpr const char* name = "design";
  static constexpr const char* summary = "drawn from the design";
  static constexpr const char* example = "count = 2";

  int count = 1;  ///< Q
  std::uint64_t seed = 0;
  bool redraw = false;  ///< for every leaf

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("count", count, within(1, 1e6), "number of queries");
    visit.optional("seed", seed, "of the queries, default 0");
    visit.optional("redraw", redraw, "draw again for every 8 replicates, default false");
  }
  void check(int) const {}

  /// Number of query points, Q.
  int size() const { return count; }

  /// Query q of a draw is design point q of replicate `draw` with purposes of its own, so a smaller
  /// count is a prefix of a larger one. Coordinates are the float32 numbers of the draw, widened.
  QuerySet generate(int d, const DesignSampler& design, const Table& table,
                    std::uint64_t draw = 0) const {
    QuerySet set;
    set.points.reserve(static_cast<std::size_t>(count) * static_cast<std::size_t>(d));
    set.rows.reserve(static_cast<std::size_t>(count));
    std::vector<float> x(static_cast<std::size_t>(point_buffer(d)));
    for (int q = 0; q < count; ++q) {
      set.rows.push_back(draw_design_point(design, table.design(), d, seed, Purpose::queries,
                                           Purpose::queries_choice, draw,
                                           static_cast<std::uint64_t>(q), x.data()));
      set.points.insert(set.points.end(), x.begin(), x.begin() + d);
    }
    return set;
  }
};

}  // namespace headlab
