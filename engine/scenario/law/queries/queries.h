// SPDX-License-Identifier: Apache-2.0
/// \file What every law of the query points is made of.
#pragma once

#include <cstdint>
#include <vector>

namespace headlab {

/// Query points x, ready for a plan.
struct QuerySet {
  std::vector<double> points = {};       ///< [Q][d]
  std::vector<double> truth = {};        ///< [Q], m as it was given; empty: not given
  std::vector<std::uint32_t> rows = {};  ///< [Q], rows of the design's data file; empty: not known
};

}  // namespace headlab
