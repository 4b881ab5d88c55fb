// SPDX-License-Identifier: Apache-2.0
/// \file Measures: figures that a scenario makes of others by formulas, in its section [measures].
///
/// A measure is evaluated with each node of a run left out, as any figure is, so that its standard
/// error covers what its figures have in common.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/files/document.h"
#include "engine/moments/error_terms.h"
#include "engine/moments/figure_name.h"
#include "kernels/formula.h"

namespace headlab {

struct Measure {
  std::string name;
  std::string text;
  Formula formula = {};
  std::vector<FigureName> parts = {};  ///< what the names of the formula mean
  /// What has to be away from 0 for a standard error to say something: what the formula divides by
  /// or takes a logarithm or root of. Their variables are those of the formula.
  std::vector<Formula> divisors = {};
};

/// The measures of a scenario. Throws InvalidInput, as at the measure, for what is no formula, has
/// names that are no figures or measures before it, or has a name that something else bears.
Measures read_measures(const Value& scenario);

/// Whether a measure may be called so, if nothing else is.
bool may_name_measure(const std::string& name);

std::vector<std::string> names_of(const Measures& measures);

/// The figures that a figure is made of, which is itself where it is no measure.
std::vector<FigureName> made_of(const FigureName& figure, const Measures& measures);

/// True where what it divides by is less than 6 of its standard errors from 0.
bool divides_by_noise(const Measured<Estimate>& measure);

}  // namespace headlab
