// SPDX-License-Identifier: Apache-2.0
/// \file Measures of terms whose other figures are known.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/moments/error_terms.h"
#include "engine/moments/jackknife.h"

namespace headlab {

/// Adds measures of figures with a value left out for each node.
/// \param counts  [nodes], replicates of each
void add_measures(ErrorTerms<Jackknifed>& terms, const Measures& measures,
                  std::span<const double> counts);
/// The same of closed forms: remainders are what those of the figures change, added up.
void add_measures(ErrorTerms<Remainder>& terms, const Measures& measures);

/// Tells measures how far float32 may have moved them, from what is known of their figures.
void set_digits_of_measures(ErrorTerms<Jackknifed>& terms);

/// [queries], those whose figures measures are made of.
std::vector<bool> measured_queries(const Measures& measures, std::size_t queries);

}  // namespace headlab
