// SPDX-License-Identifier: Apache-2.0
/// \file What the heads of a trained model write on text, head by head.
#include <cmath>
#include <limits>

#include "tools/report/figure.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_measured_layers = 6;

/// The estimate `name` of a head; NaN where the layer has none.
Estimate figure_of_head(const Value& layer, const std::string& name, std::size_t head) {
  const auto at = [&](const std::string& key) {
    const Value::Array& all = items_of(member(layer, key));
    return head < all.size() ? number_of(all[head]) : std::numeric_limits<double>::quiet_NaN();
  };
  return {.value = at(name), .mcse = at(name + "_se")};
}

std::size_t heads_of(const Value& layer) {
  return items_of(member(layer, "spread")).size();
}

std::string layer_title(const Value& layer) {
  return "layer " + axis_number(number_of(member(layer, "layer")));
}

/// Whiskers and marks of a figure over heads, a little to a side.
void draw_heads(Canvas& canvas, const Axes& axes, const Value& layer, const std::string& name,
                std::size_t color, double aside) {
  for (std::size_t h = 0; h < heads_of(layer); ++h) {
    const Estimate one = figure_of_head(layer, name, h);
    if (!std::isfinite(one.value)) continue;
    const double x = static_cast<double>(h) + aside;
    if (std::isfinite(one.mcse)) {
      const double error = band_errors * one.mcse;
      canvas.line(axes.at(x, one.value - error), axes.at(x, one.value + error),
                  "whisker c" + std::to_string(color));
    }
    canvas.mark(color, axes.at(x, one.value), false, 3.5);
  }
}

/// The layers have to outlive what the panels draw.
Canvas draw_measured(double width, const std::vector<Value>& layers, const std::string& spread_name,
                     const std::string& refit_name, bool shares) {
  std::vector<AxesPanel> all;
  for (const Value& layer : layers) {
    std::vector<double> numbers, values = {0};
    for (std::size_t h = 0; h < heads_of(layer); ++h) {
      numbers.push_back(static_cast<double>(h));
      for (const std::string& name : {spread_name, refit_name}) {
        const Estimate one = figure_of_head(layer, name, h);
        const double error = std::isfinite(one.mcse) ? band_errors * one.mcse : 0;
        if (std::isfinite(one.value)) {
          values.insert(values.end(), {one.value - error, one.value + error});
        }
      }
    }
    const auto draw = [&](Canvas& canvas, const Axes& axes) {
      draw_heads(canvas, axes, layer, spread_name, 1, -0.1);
      draw_heads(canvas, axes, layer, refit_name, 2, 0.1);
    };
    // No mark stands on an axis.
    numbers.insert(numbers.end(), {-0.5, static_cast<double>(heads_of(layer)) - 0.5});
    all.push_back({layer_title(layer), ScaleKind::linear, numbers, values, draw});
  }
  return draw_panels(width, all,
                     {"head", shares ? "share of the stream" : "squared output", 150, 0.05},
                     {{1, "head replaced by its mean", false, false},
                      {2, "head left out, the others fitted again", false, false}});
}

}  // namespace

std::vector<Picture> measured_heads_figures(const Source& source) {
  const Value::Array& layers = items_of(member(source.document, "layers"));
  if (layers.empty()) return {};
  const bool shares = member(layers.front(), "spread_share").is<Value::Array>();
  const std::string spread_name = shares ? "spread_share" : "spread",
                    refit_name = shares ? "refit_cost_share" : "refit_cost";
  Table table{
      .caption = "Figures of each head",
      .error = "standard error over documents",
      .headings = {"layer", "head", "replaced by its mean", "left out, the others fitted again",
                   "explained by the others", "second-order prediction", "effective tokens"}};
  const std::vector<std::string> names = {spread_name, refit_name, "explained_by_others",
                                          "second_order", "tokens_effective"};
  std::size_t min_layer = 0, min_head = 0;
  Estimate least{.value = std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (std::size_t h = 0; h < heads_of(layers[i]); ++h) {
      const Estimate own = figure_of_head(layers[i], spread_name, h);
      if (own.value < least.value) least = own, min_layer = i, min_head = h;
      std::vector<std::string> row = {axis_number(number_of(member(layers[i], "layer"))),
                                      std::to_string(h)};
      for (const std::string& name : names) {
        row.push_back(estimate_text(figure_of_head(layers[i], name, h)));
      }
      table.rows.push_back(row);
    }
  }
  const bool has_errors = std::ranges::any_of(
      table.rows, [](const auto& row) { return row[2].find("±") != std::string::npos; });
  std::vector<Value> shown;
  for (const std::size_t i : spread(layers.size(), max_measured_layers)) {
    shown.push_back(layers[i]);
  }
  return {
      {.title = "What each head writes",
       .finding = std::isfinite(least.value)
                      ? "Head " + std::to_string(min_head) + " of " +
                            layer_title(layers[min_layer]) + " writes the least, " +
                            estimate_text(least) + (shares ? " of the square of the stream." : ".")
                      : "No head can be compared.",
       .draw =
           [=](double width) {
             return draw_measured(width, shown, spread_name, refit_name, shares);
           },
       .table = std::move(table),
       .note = sentences(
           {shares ? "Of the mean in its place: mean over tokens of shares of the square of the "
                     "residual stream; of the head left out: a ratio of means. The two are "
                     "not of one scale."
                   : "Error of the layer's output, mean over tokens.",
            has_errors ? "Whiskers are ± 2 standard errors over documents." : "",
            shows_text(shown.size(), layers.size(), "layers, from the first to the last.")}),
       .max_rows = 150}};
}

}  // namespace headlab::tools
