// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/figure_name.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/moments/estimates.h"

namespace headlab {
namespace {

std::vector<FigureKind> list_figures() {
  std::vector<FigureKind> all;
  std::vector<std::string> axes;
  const auto use = [&](const std::string& name, const auto&, const FieldText& text) {
    FigureKind kind{name, axes, text.positive};
    std::istringstream words(text.axes);
    for (std::string word; words >> word;) kind.axes.push_back(word);
    all.push_back(std::move(kind));
  };
  FigureVisitor<Estimate, decltype(use)> averages{use}, indices{use, "index_"},
      of_query{use, "query_"};
  const ErrorTerms<Estimate> terms;
  terms.fields(averages);
  terms.index_fields(indices);
  axes = {"query"};
  QueryErrorTerms<Estimate>().fields(of_query);
  return all;
}

std::string kind_text(const FigureKind& kind) {
  return kind.axes.empty() ? kind.name : kind.name + "[" + listed(kind.axes) + "]";
}

}  // namespace

std::string FigureName::text() const {
  if (layer) return "layers[" + std::to_string(*layer) + "]." + name;
  std::string text = name;
  for (std::size_t i = 0; i < index.size(); ++i) {
    text += (i == 0 ? "[" : ",") + std::to_string(index[i]);
  }
  return index.empty() ? text : text + "]";
}

const std::vector<FigureKind>& figure_kinds() {
  static const std::vector<FigureKind> all = list_figures();
  return all;
}

FigureKind figure_kind(const std::string& option, const std::string& name,
                       const std::vector<std::string>& measures) {
  if (std::ranges::count(measures, name) > 0) return {.name = name};
  std::vector<std::string> names = measures;
  for (const FigureKind& kind : figure_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw InvalidInput(option + ": figure \"" + one_line(name) + "\" is unknown" +
                     suggestion(name, names));
}

FigureName parse_figure(const std::string& option, const std::string& text,
                        const std::vector<std::string>& measures) {
  const std::size_t open = std::min(text.find('['), text.size());
  FigureName figure{.name = text.substr(0, open)};
  const FigureKind kind = figure_kind(option, figure.name, measures);
  const auto reject_index = [&]() {
    throw InvalidInput(option + ": \"" + one_line(text) + "\" does not fit (allowed: " +
                       kind_text(kind) + (kind.axes.empty() ? ")" : ", numbers from 0)"));
  };
  const char* at = text.data() + open;
  const char* const end = text.data() + text.size();
  while (at != end && *at != ']') {
    const auto [stop, error] = std::from_chars(at + 1, end, figure.index.emplace_back());
    if (error != std::errc() || stop == end || (*stop != ',' && *stop != ']')) reject_index();
    at = stop;
  }
  if (open < text.size() && at + 1 != end) reject_index();
  if (figure.index.size() != kind.axes.size()) reject_index();
  return figure;
}

FigureName parse_layer_figure(const std::string& option, const std::string& text) {
  constexpr std::string_view before = "layers[", behind = "].";
  std::size_t layer = 0;
  const char* const end = text.data() + text.size();
  const char* at = end;
  if (text.starts_with(before)) {
    const auto [stop, error] = std::from_chars(text.data() + before.size(), end, layer);
    if (error == std::errc()) at = stop;
  }
  const std::string_view rest(at, end);
  if (!rest.starts_with(behind)) {
    throw InvalidInput(option + ": figure \"" + one_line(text) +
                       "\" is not of a study of depth (allowed: layers[L].METRIC, L from 0, as "
                       "layers[1].cosine)");
  }
  const std::string metric(rest.substr(behind.size()));
  std::vector<std::string> names;
  for (const LayerMetricDescription& one : layer_metric_descriptions()) {
    if (one.name != "collapsed") names.push_back(one.name);  // a count in the results
  }
  if (std::ranges::find(names, metric) == names.end()) {
    throw InvalidInput(option + ": metric \"" + one_line(metric) + "\" of layers is unknown" +
                       suggestion(metric, names));
  }
  return {.name = metric, .layer = layer};
}

}  // namespace headlab
