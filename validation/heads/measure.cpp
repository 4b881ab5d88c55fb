// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/measure.h"

#include <algorithm>

#include "engine/activations/activations.h"
#include "engine/files/document.h"
#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"
#include "validation/heads/contexts.h"
#include "validation/heads/leave_one_out.h"
#include "validation/heads/refit.h"

namespace headlab {
namespace {

/// Heads whose figure is below a limit by two standard errors.
std::vector<std::size_t> heads_below(const MeasuredLayer& layer, const char* name, double limit) {
  const HeadFigure* const figure = layer.find(name);
  std::vector<std::size_t> found;
  if (figure == nullptr || figure->errors.empty()) return found;
  for (std::size_t h = 0; h < figure->values.size(); ++h) {
    if (figure->values[h] + 2 * figure->errors[h] < limit) found.push_back(h);
  }
  return found;
}

void name_heads(const LayerActivations& activations, const LayerSums& sums,
                const HeadSetting& setting, MeasuredLayer& layer) {
  layer.little.heads = heads_below(layer, "spread_share", setting.writes_little);
  for (const std::size_t h : layer.little.heads) {
    for (const std::size_t l : layer.little.heads) {
      layer.little.together += layer.find("share_covariance")->values[h * layer.shape.heads + l];
    }
  }
  layer.refitted.heads = heads_below(layer, "refit_cost_share", setting.can_be_written);
  if (layer.refitted.heads.empty()) return;
  layer.refitted.together = refit_error_of(activations, sums, setting, layer.refitted.heads) /
                            layer.find("stream")->values[0];
}

MeasuredLayer measure_layer(const LayerActivations& activations, const HeadSetting& setting,
                            int threads, const std::function<bool()>& stop) {
  MeasuredLayer layer{.number = activations.number(),
                      .shape = activations.shape(),
                      .d = activations.d(),
                      .sequences = activations.sequences(),
                      .documents = activations.documents()};
  layer.identity = identity_of(activations, setting.exact, threads);
  const bool may_refit = can_refit(activations, setting, possible_tokens(activations, setting));
  LayerSums sums = layer_sums(activations, setting,
                              may_refit ? KeptMoments::by_fold : KeptMoments::none, threads, stop);
  layer.tokens = sums.count;
  layer.blind = sums.blind;
  layer.largest_document = sums.largest_document;
  layer.no_refit = no_refit(activations, sums, setting);
  const bool refitted = layer.no_refit.empty();
  if (refitted) add_held_out(activations, setting, sums, threads, stop);
  layer.figures = head_figures(activations, sums, setting, refitted);
  name_heads(activations, sums, setting, layer);
  const auto more = [&](const std::vector<HeadFigure>& figures) {
    layer.figures.insert(layer.figures.end(), figures.begin(), figures.end());
  };
  if (!setting.target.empty()) more(context_figures(activations, sums, setting, threads));
  if (setting.leave_one_out) more(leave_one_out_figures(activations, sums, setting, threads, stop));
  return layer;
}

}  // namespace

const HeadFigure* MeasuredLayer::find(const std::string& name) const {
  const auto found = std::ranges::find(figures, name, &HeadFigure::name);
  return found == figures.end() ? nullptr : &*found;
}

std::vector<int> layer_numbers(const ArrayFile& file, std::optional<int> layer) {
  const std::vector<int> numbers = layers_of(file);
  if (!layer) return numbers;
  if (std::ranges::find(numbers, *layer) == numbers.end()) {
    reject({file.source()}, "",
           "has no layer " + std::to_string(*layer) + " (its layers: " +
               std::to_string(numbers.front()) + " to " + std::to_string(numbers.back()) + ")");
  }
  return {*layer};
}

MeasuredHeads measure_heads(const std::shared_ptr<ArrayFile>& file, std::optional<int> layer,
                            const HeadSetting& setting, int threads,
                            const std::function<bool()>& stop) {
  MeasuredHeads out{.source = file->source(), .setting = setting};
  for (const int number : layer_numbers(*file, layer)) {
    out.layers.push_back(measure_layer(LayerActivations(file, number), setting, threads, stop));
  }
  return out;
}

std::string measured_heads_json(const MeasuredHeads& heads, const Provenance& program) {
  return json_text(MadeDocument{MadeBy{program, {}, heads.setting.seed},
                                [&](auto& visit) {
                                  visit("file", heads.source, "file of the activations");
                                  visit("layers", heads.layers, "layers", {.item = "layer"});
                                  visit("words", words_of(heads), "what may be said of them");
                                }},
                   0);
}

void put_measured_heads(const NetcdfGroup& root, const MeasuredHeads& heads,
                        const Provenance& program) {
  root.put_attribute("title", "Heads of a trained model, measured on text");
  root.put_attribute("source", "headlab " + program.version);
  root.put_attribute("git", program.git);
  root.put_attribute("activations", heads.source);
  std::size_t most = 0;
  std::vector<std::int64_t> numbers, documents, tokens;
  std::vector<HeadFigure> all;  // of any layer, in the order of the first that has them
  for (const MeasuredLayer& layer : heads.layers) {
    most = std::max(most, layer.shape.heads);
    numbers.push_back(layer.number);
    documents.push_back(static_cast<std::int64_t>(layer.documents));
    tokens.push_back(static_cast<std::int64_t>(layer.tokens));
    for (const HeadFigure& figure : layer.figures) {
      if (std::ranges::find(all, figure.name, &HeadFigure::name) == all.end())
        all.push_back(figure);
    }
  }
  root.define_dimension("layer", heads.layers.size());
  root.define_dimension("head", most);
  root.define_dimension("head_2", most);
  root.write("layer", {"layer"}, {.long_name = "number of the layer"}, numbers);
  root.write("documents", {"layer"}, {.long_name = "documents"}, documents);
  root.write("tokens", {"layer"}, {.long_name = "tokens that count"}, tokens);
  std::string words;
  for (const std::string& one : words_of(heads)) words += (words.empty() ? "" : "\n") + one;
  root.put_attribute("words", words);
  NumberNames distances;
  Identity().fields(distances);
  for (std::size_t i = 0; i < distances.names.size(); ++i) {
    std::vector<double> of_layers;
    for (const MeasuredLayer& layer : heads.layers) {
      NumberAt number{i};
      layer.identity.fields(number);
      of_layers.push_back(number.value);
    }
    const auto& [name, meaning] = distances.names[i];
    root.write("identity_" + name, {"layer"}, {.long_name = meaning}, of_layers);
  }
  for (const HeadFigure& figure : all) {
    std::vector<std::string> axes = {"layer"};
    if (figure.of != FigureOf::layer) axes.emplace_back("head");
    if (figure.of == FigureOf::pair) axes.emplace_back("head_2");
    const auto put = [&](const std::string& name, const std::string& meaning, auto member) {
      root.define_doubles(name, axes, {meaning, figure.unit});
      for (std::size_t i = 0; i < heads.layers.size(); ++i) {
        const HeadFigure* const own = heads.layers[i].find(figure.name);
        if (own == nullptr || (own->*member).empty()) continue;
        NetcdfGroup::Slab where{.start = {i}, .count = {1}};
        where.start.resize(axes.size(), 0);
        where.count.resize(axes.size(), heads.layers[i].shape.heads);
        root.put(name, where, own->*member);
      }
    };
    put(figure.name, figure.meaning, &HeadFigure::values);
    if (!figure.errors.empty()) {
      put(figure.name + "_se", "standard error over documents of " + figure.name,
          &HeadFigure::errors);
    }
  }
}

}  // namespace headlab
