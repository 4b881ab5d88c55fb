// SPDX-License-Identifier: Apache-2.0
/// \file Differences of figures between conditions of a run.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/moments/error_terms.h"
#include "engine/moments/jackknife.h"
#include "engine/moments/layer_estimates.h"

namespace headlab {

/// Figures of a condition less those of its reference. Undefined where there is no reference, where
/// a figure of either is, and where the same draws were simulated to different numbers of
/// replicates.
struct ConditionDifference {
  std::optional<std::size_t> reference = {};  ///< number of a condition, from 0
  /// The conditions have the same seed, and the standard error is that of the difference replicate
  /// by replicate; otherwise they are independent, and variances are added.
  bool paired = false;
  ErrorTerms<Estimate> terms = {};  ///< averages over queries and indices
  /// Of a study of depth instead: rows that both conditions have, and the metrics listed of them.
  LayerEstimates layers = {};
  std::vector<std::size_t> listed = {};

  /// False where the same draws were simulated to different numbers of replicates.
  bool is_known() const { return !listed.empty() || !std::isnan(terms.mse.value); }

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("against", reference ? static_cast<double>(*reference) : undefined,
          "condition that is subtracted, from 0");
    visit("paired", paired, "the standard error is that of differences replicate by replicate");
    if (!listed.empty()) {
      std::vector<LayerMetricsRecord<Estimate>> rows;
      for (const LayerRowOf<Estimate>& row : layers.rows) rows.push_back({row, listed});
      visit("layers", rows, "differences of each layer", {.item = "layer"});
      return;
    }
    Numbers<Visitor> averages{visit}, indices{visit, "index_"};
    terms.fields(averages);
    terms.index_fields(indices);
  }

 private:
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

  /// Visitor that hands on estimates alone.
  template <class Visitor>
  struct Numbers {
    Visitor& visit;
    std::string prefix = {};
    template <class T>
    void operator()(const char* name, const T& value, const char* doc, const FieldText& = {}) {
      if constexpr (std::is_same_v<T, Estimate>) visit((prefix + name).c_str(), value, doc);
    }
  };
};

}  // namespace headlab
