// SPDX-License-Identifier: Apache-2.0
/// \file Figures of heads, of pairs and of a layer, with standard errors over documents.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "validation/heads/layer_sums.h"

namespace headlab {

/// What a figure is a number of.
enum class FigureOf { layer, head, pair };

/// A named figure [1], [H] or [H][H]; NaN where it is undefined.
struct HeadFigure {
  std::string name;
  FigureOf of = FigureOf::head;
  std::string meaning;
  std::string unit = "1";
  std::vector<double> values;
  std::vector<double> errors = {};  ///< standard errors over documents, or none
};

/// The kinds of noise in the values of a layer: responses alike for all heads; exchanged tokens;
/// noise in the inputs; rounding of the value cache.
const std::vector<std::string>& noise_kinds();

/// All figures that the sums of a layer give, each once: files, tables and frames follow from this
/// list. Standard errors are those of the jackknife that leaves out one group of documents, where
/// there are at least `min_documents`.
std::vector<HeadFigure> head_figures(const LayerActivations& layer, const LayerSums& sums,
                                     const HeadSetting& setting, bool refitted);

/// Gives figures the standard errors of the jackknife over groups of documents.
/// \param without the same figures without a group
void add_errors(std::vector<HeadFigure>& figures, std::size_t groups,
                const std::function<std::vector<HeadFigure>(std::size_t group)>& without);

}  // namespace headlab
