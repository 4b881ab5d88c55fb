// SPDX-License-Identifier: Apache-2.0
/// \file Figures found by the names they have in results.nc, as a user writes them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/moments/error_terms.h"
#include "engine/moments/layer_estimates.h"

namespace headlab {

/// A figure of a condition: "mse", "index_output", "head_covariance[0,1,2]"; of a study of depth
/// "layers[8].cosine".
struct FigureName {
  std::string name;
  std::vector<std::size_t> index = {};    ///< of an array, from 0: query, head, head
  std::optional<std::size_t> layer = {};  ///< of a metric of a layer, from 0

  std::string text() const;
  bool operator==(const FigureName&) const = default;
};

/// What is known of a figure without a result.
struct FigureKind {
  std::string name;
  std::vector<std::string> axes = {};  ///< of an array: query, head, head_2
  bool positive = false;               ///< always above 0
};

/// Every figure, in the order of summary.json.
const std::vector<FigureKind>& figure_kinds();

/// The kind of a figure of that name; throws InvalidInput("OPTION: ...") where there is none.
/// \param measures  names of those of the scenario
FigureKind figure_kind(const std::string& option, const std::string& name,
                       const std::vector<std::string>& measures = {});

/// Reads NAME or NAME[i,j]; throws InvalidInput("OPTION: ...") for a name or a number of indices
/// that no figure has.
FigureName parse_figure(const std::string& option, const std::string& text,
                        const std::vector<std::string>& measures = {});

/// Reads layers[L].METRIC; throws InvalidInput("OPTION: ...") for anything else and for a metric
/// that layers do not have.
FigureName parse_layer_figure(const std::string& option, const std::string& text);

/// Number of a figure, with its name in results.nc: calls use(name, number) for one that stands by
/// itself and use(name, numbers, axes) for the Shaped numbers of an array.
template <class Number, class Use>
struct FigureVisitor {
  const Use& use;
  std::string_view prefix = {};  ///< before the name of a number that stands by itself
  template <class T>
  void operator()(const char* name, const T& value, const char*, const FieldText& text = {}) {
    if constexpr (std::is_same_v<T, Number>) {
      if (*text.part_of == 0) use(std::string(prefix) + name, value, text);
    } else if constexpr (std::is_same_v<T, Shaped<Number>>) {
      use(std::string(name), value, text);
    }
  }
};

/// The number of a figure, or nullptr where the condition has none with this index.
template <class Number>
const Number* find_figure(const ErrorTerms<Number>& terms, const FigureName& figure) {
  const Number* found = nullptr;
  std::size_t used = 0;  // indices that are behind
  const auto use = [&](const std::string& name, const auto& value, const FieldText&) {
    if (name != figure.name) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Number>) {
      if (used == figure.index.size()) found = &value;
    } else {
      if (used + value.shape.size() != figure.index.size()) return;
      std::size_t offset = 0;
      for (std::size_t i = 0; i < value.shape.size(); ++i) {
        if (figure.index[used + i] >= value.shape[i]) return;
        offset = offset * value.shape[i] + figure.index[used + i];
      }
      if (offset < value.values.size()) found = &value.values[offset];
    }
  };
  FigureVisitor<Number, decltype(use)> averages{use}, indices{use, "index_"},
      of_query{use, "query_"};
  terms.fields(averages);
  terms.index_fields(indices);
  if (found == nullptr && !figure.index.empty() && figure.index[0] < terms.queries.size()) {
    used = 1;
    terms.queries[figure.index[0]].fields(of_query);
  }
  return found;
}

/// The same of a study of depth, or nullptr where it has no such layer.
template <class Number>
const Number* find_figure(const LayersOf<Number>& layers, const FigureName& figure) {
  if (!figure.layer || *figure.layer >= layers.rows.size()) return nullptr;
  return &layers.rows[*figure.layer].metrics.at(layer_metric(figure.name));
}

}  // namespace headlab
