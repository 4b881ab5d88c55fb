// SPDX-License-Identifier: Apache-2.0
/// \file Diversity of the heads of a model, layer by layer, beside that of random heads; and how
/// alike they are in pairs.
#include <algorithm>
#include <cmath>

#include "kernels/counted.h"
#include "tools/report/figure.h"
#include "tools/report/heat_map.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_layer_points = 80;
constexpr std::size_t max_layers = 4;
constexpr double random_errors = 2;

struct IndexAt {
  double layer, value, upper_bound, random_mean, random_sd, z;
};

struct IndexPanel {
  std::string name;
  std::vector<IndexAt> layers = {};
};

std::vector<IndexPanel> index_panels(const Value& document) {
  std::vector<IndexPanel> panels;
  for (const Value& layer : items_of(member(document, "layers"))) {
    const Value& indices = member(layer, "indices");
    for (const auto& [name, location, index] : members_of(indices)) {
      const IndexAt at{
          number_of(member(layer, "layer")),     number_of(member(index, "value")),
          number_of(member(index, "ceiling")),   number_of(member(index, "random_mean")),
          number_of(member(index, "random_sd")), number_of(member(index, "z"))};
      if (!std::isfinite(at.value)) continue;
      auto panel = std::ranges::find(panels, name, &IndexPanel::name);
      if (panel == panels.end()) panel = panels.insert(panels.end(), {name});
      panel->layers.push_back(at);
    }
  }
  return panels;
}

Canvas draw_indices(const std::vector<IndexPanel>& panels, double width) {
  std::vector<AxesPanel> all;
  for (const IndexPanel& panel : panels) {
    std::vector<double> numbers, values = {0};
    for (const IndexAt& at : panel.layers) {
      numbers.push_back(at.layer);
      values.insert(values.end(), {at.value, at.upper_bound, at.random_mean});
    }
    const auto draw = [&panel](Canvas& canvas, const Axes& axes) {
      std::vector<Point> own, random, bound, upper, lower;
      for (const std::size_t i : spread(panel.layers.size(), max_layer_points)) {
        const IndexAt& at = panel.layers[i];
        own.push_back(axes.at(at.layer, at.value));
        if (std::isfinite(at.upper_bound)) bound.push_back(axes.at(at.layer, at.upper_bound));
        if (!std::isfinite(at.random_mean)) continue;
        random.push_back(axes.at(at.layer, at.random_mean));
        const double sd = std::isfinite(at.random_sd) ? random_errors * at.random_sd : 0;
        upper.push_back(axes.at(at.layer, at.random_mean + sd));
        lower.push_back(axes.at(at.layer, at.random_mean - sd));
      }
      canvas.band(upper, lower, "band c2");
      canvas.polyline(bound, "line c4");
      canvas.polyline(random, "line c2");
      canvas.polyline(own, "line c1");
      for (const Point& at : bound) canvas.mark(4, at, false, 3.5);
      for (const Point& at : random) canvas.mark(2, at, false, 3.5);
      for (const Point& at : own) canvas.mark(1, at, false, 3.5);
    };
    all.push_back({panel.name, ScaleKind::linear, numbers, values, draw});
  }
  return draw_panels(width, all, {"layer", "index", 150, 0.05},
                     {{1, "heads of the file", false, true},
                      {2, "random heads, ± 2 sd", false, true},
                      {4, "largest possible", false, true}});
}

/// Mean squared cosine of the principal angles of every pair of heads.
HeadMatrix mean_squared_cosines(const Value& layer) {
  const Value::Array& pairs = items_of(member(layer, "principal_cosines"));
  HeadMatrix matrix{.title = "layer " + axis_number(number_of(member(layer, "layer"))),
                    .heads = pairs.size(),
                    .values = {}};
  for (const Value& row : pairs) {
    if (items_of(row).size() != matrix.heads) return {};
    for (const Value& cosines : items_of(row)) {
      double sum = 0;
      for (const Value& cosine : items_of(cosines)) sum += std::pow(number_of(cosine), 2);
      matrix.values.push_back(sum / static_cast<double>(items_of(cosines).size()));
    }
  }
  return matrix;
}

/// The most alike pair, and how many others are as alike: heads that share their keys, say.
std::string alike_sentence(const std::vector<HeadMatrix>& matrices, const PairExtremes& most,
                           std::size_t where, bool shared_keys) {
  constexpr double rounding = 1e-9;
  std::size_t ties = 0;
  for (const HeadMatrix& matrix : matrices) {
    for (std::size_t h = 0; h < matrix.heads; ++h) {
      for (std::size_t l = h + 1; l < matrix.heads; ++l) {
        ties += matrix.at(h, l) >= most.highest - rounding ? 1 : 0;
      }
    }
  }
  const std::string cosine = measured_number(most.highest, 3);
  if (ties > 1) {
    // Heads that share keys have one subspace; any others that have are as good as equal.
    const bool one_subspace = most.highest >= 1 - rounding;
    return std::to_string(ties) + " pairs of heads are most alike, with a mean squared cosine of " +
           cosine +
           (one_subspace
                ? ": each pair has one subspace" +
                      std::string(shared_keys ? ", as heads that share their keys have" : "")
                : "") +
           "; one of them is " + pair_text(most.high) + " of " + matrices[where].title + ".";
  }
  return "The most alike heads are " + pair_text(most.high) + " of " + matrices[where].title +
         ", with a mean squared cosine of " + cosine + ".";
}

}  // namespace

std::vector<Picture> diversity_figures(const Source& source) {
  const std::vector<IndexPanel> panels = index_panels(source.document);
  if (panels.empty()) return {};
  Table table{
      .caption = "Indices of each layer",
      .headings = {"layer", "index", "value", "largest possible", "random mean", "random sd", "z"}};
  std::string finding;
  for (const IndexPanel& panel : panels) {
    const IndexAt* most = nullptr;
    std::size_t below = 0, above = 0;
    for (const IndexAt& at : panel.layers) {
      table.rows.push_back({axis_number(at.layer), panel.name, measured_number(at.value),
                            measured_number(at.upper_bound), measured_number(at.random_mean),
                            measured_number(at.random_sd), measured_number(at.z, 3)});
      if (at.z < -random_errors) ++below;
      if (at.z > random_errors) ++above;
      if (most == nullptr || std::abs(at.z) > std::abs(most->z)) most = &at;
    }
    if (!std::isfinite(most->z)) continue;
    const auto in_layers = [&](std::size_t some, const char* where) {
      return std::to_string(some) + where + counted(panel.layers.size(), "layer");
    };
    finding +=
        (finding.empty() ? "" : " ") + ("The " + panel.name) + " index is " +
        (below + above == 0 ? "within ± 2 sd of random heads in every layer"
         : above == 0       ? "below random heads by more than 2 sd in " + in_layers(below, " of ")
         : below == 0       ? "above random heads by more than 2 sd in " + in_layers(above, " of ")
                      : "farther than 2 sd below random heads in " + in_layers(below, " of ") +
                            ", above in " + std::to_string(above)) +
        "; farthest is layer " + axis_number(most->layer) + " (z " + measured_number(most->z, 3) +
        ").";
  }
  if (finding.empty()) finding = "There are no random heads to compare with.";
  return {{.title = "Diversity of the heads, layer by layer",
           .finding = finding,
           .draw = [=](double width) { return draw_indices(panels, width); },
           .table = std::move(table),
           .max_rows = 150}};
}

std::vector<Picture> alike_figures(const Source& source) {
  const Value::Array& layers = items_of(member(source.document, "layers"));
  std::vector<HeadMatrix> matrices;
  for (const std::size_t i : spread(layers.size(), max_layers)) {
    const HeadMatrix matrix = mean_squared_cosines(layers[i]);
    if (matrix.heads > 1) matrices.push_back(matrix);
  }
  if (matrices.empty()) return {};
  const double with_own_keys = number_of(member(source.document, "kv_heads"));
  const bool shared_keys = with_own_keys < static_cast<double>(matrices.front().heads);
  Table table{.caption = "The most and the least alike heads of each layer shown",
              .headings = {"layer", "most alike", "mean squared cosine", "least alike",
                           "mean squared cosine"}};
  const PairExtremes* most = nullptr;
  std::vector<PairExtremes> all;
  for (const HeadMatrix& matrix : matrices) all.push_back(extremes_of(matrix));
  std::size_t where = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].found) continue;
    table.rows.push_back({matrices[i].title, pair_text(all[i].high),
                          measured_number(all[i].highest, 3), pair_text(all[i].low),
                          measured_number(all[i].lowest, 3)});
    if (most == nullptr || all[i].highest > most->highest) most = &all[i], where = i;
  }
  return {
      {.title = "How alike the heads are",
       .finding = most ? alike_sentence(matrices, *most, where, shared_keys)
                       : "No two heads can be compared.",
       .draw =
           [=](double width) {
             return draw_heat_maps({"mean squared cosine", "a head with itself"}, matrices, width);
           },
       .table = std::move(table),
       .note = sentences({"Mean squared cosine of the principal angles: 1 for heads on one "
                          "subspace.",
                          shows_text(matrices.size(), layers.size(), "layers.")})}};
}

}  // namespace headlab::tools
