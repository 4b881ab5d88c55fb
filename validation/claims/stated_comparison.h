// SPDX-License-Identifier: Apache-2.0
/// \file One comparison of figures as a claim states it (docs/claims.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/files/document.h"
#include "engine/scenario/law_reader.h"
#include "validation/claims/figure_comparison.h"
#include "validation/claims/swept_conditions.h"

namespace headlab {

using StatedComparison = std::function<FigureComparison(Experiment&)>;

/// What a comparison has besides its figures.
struct ComparisonSetting {
  Margin margin;
  bool noise_unit = false;  ///< figures and numbers are in units of s2/n
  std::vector<std::string> for_each = {};
};

/// Keys of a table that state a comparison, and those of its setting.
const std::vector<std::string>& comparison_keys();
const std::vector<std::string>& setting_keys();

/// Reads `margin`, `unit` and `for_each` of a table; those that are left out are as in `defaults`,
/// and the margin may be left out where defaults are given.
ComparisonSetting read_setting(const TableReader& reader, const SweptConditions& conditions,
                               const ComparisonSetting* defaults = nullptr);

/// Reads the comparison of a table, once for each choice of values of `for_each`. Every kind of
/// comparison becomes one of two: a number that is at least 0, or a number that is 0, each up to
/// the margin. Throws InvalidInput, as read_stated_claims() does.
std::vector<StatedComparison> read_comparisons(const Value& table, const std::string& key,
                                               const SweptConditions& conditions,
                                               const ComparisonSetting& setting);

}  // namespace headlab
