// SPDX-License-Identifier: Apache-2.0
/// \file Conditions computed from closed forms instead of simulated, as the writers and the tables
/// take them.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/moments/estimates.h"
#include "engine/moments/layer_estimates.h"
#include "kernels/copy_on_write.h"

namespace headlab {

struct Condition;
struct Plan;

/// A diversity index with the largest value it can take; NaN where undefined (null in the outputs).
/// A Number is a Estimate of a simulation, or the Remainder of a closed form.
template <class Number>
struct IndexOf {
  std::string name;
  Number figure = {};
  double upper_bound = std::numeric_limits<double>::quiet_NaN();
  bool simulated = false;  ///< follows from the error, so that it has a standard error or remainder

  template <class Visitor>
  void fields(Visitor& visit) const {
    if (simulated) {
      figure.fields(visit);
    } else {
      visit("value", figure.value, "value");
    }
    visit("ceiling", upper_bound, "largest value");
  }
};

/// The indices of one condition, in the order they are shown.
template <class Number>
using IndicesOf = std::vector<IndexOf<Number>>;
using ConditionIndices = IndicesOf<Estimate>;

/// Closed forms of one condition.
struct TheoryResult {
  std::string source;  ///< "exact" or "first_order", of a study of depth "exact" or "bound"
  std::string form;    ///< in words: "exact for the fixed design"
  /// Largest deviation of the sum of the weights from 1, of forms by quadrature; else NaN.
  double normalisation_error = std::numeric_limits<double>::quiet_NaN();
  CopyOnWrite<Plan> plan;  ///< conditional and pairwise, with the head weights used
  ErrorTerms<Remainder> figures;
  /// Of a study of depth instead: the metrics that there are forms of.
  LayersOf<Remainder> layers = {};
  std::vector<std::size_t> listed = {};
  std::optional<WindowCounts> windows;  ///< known for a fixed design
  double seconds = 0;                   ///< it took
};

/// An estimate and the same from closed forms.
struct ComparedFigure {
  std::string name;  ///< its key in the summary, or what it is of where it is the largest of many
  Estimate simulated;
  Remainder computed;
  /// sqrt(MCSE^2 + remainder^2 + rounding^2): remainder of the closed form, rounding of the
  /// estimate
  double z_scale = std::numeric_limits<double>::quiet_NaN();
  double z = std::numeric_limits<double>::quiet_NaN();  ///< NaN where the MCSE is 0 or unknown

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("figure", name, "what is compared");
    visit("simulated", simulated, "estimate");
    visit("computed", computed, "from closed forms");
    visit("z_scale", z_scale, "sqrt(MCSE^2 + remainder^2 + rounding^2)");
    visit("z", z, "(simulated - computed)/z_scale");
  }
};

/// Simulation and closed forms of one condition.
struct SideBySide {
  std::vector<ComparedFigure> figures;  ///< of the summary
  std::vector<ComparedFigure> largest;  ///< largest |z| of bias, variance, covariance
};

/// One condition from closed forms.
struct ComputedCondition {
  std::shared_ptr<const Condition> condition;
  TheoryResult result;
  IndicesOf<Remainder> indices = {};
  SideBySide simulated = {};  ///< empty unless the condition was simulated as well
};

}  // namespace headlab
