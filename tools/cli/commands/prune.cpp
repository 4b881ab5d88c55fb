// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "engine/activations/activations.h"
#include "engine/files/atomic_file.h"
#include "engine/files/models/head_cuts.h"
#include "engine/files/models/model_checkpoint.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "validation/heads/removal.h"

namespace headlab::tools {
namespace {

using Eigen::Index;

struct PruneArguments : CommonArguments {
  std::string file;
  std::optional<int> layer;
  std::optional<std::string> remove, checkpoint, output_name;
  RemovalSetting setting;
  bool no_refit = false, shrink = false;
  std::string layout = "bhtk";

  void list(Options& options) {
    options.text("FILE", "", "Activations: NetCDF of import-activations, NPZ or safetensors", file);
    list_layer(options, layer);
    list_layout(options, layout);
    options.text("--remove", "SHARE|N", "Heads to remove: 25%, or a number of them", remove);
    options.word(
        "--by", "ORDER",
        "What goes first: what adds least to the error after refits (refit, the default) or "
        "without them (spread), to the loss (second_order, sensitivity), or random",
        setting.by, removal_orders());
    options.flag("--no-refit", "Leave the output maps of the other heads as they are", no_refit);
    options.flag("--shrink",
                 "Take as many heads from each layer and group, and cut them out of the tensors",
                 shrink);
    options.text("--checkpoint", "FOLDER", "The model: config.json and safetensors", checkpoint);
    options.text("--output-name", "PATTERN",
                 "Name of the output maps, with # for the layer, where config.json does not tell: "
                 "layers.#.attn.out.weight",
                 output_name);
    take(options, {{"--seed", "Seed of a random order; the default is 0"},
                   {"--out", "Write the model without the heads", "FOLDER"},
                   "--overwrite",
                   "--threads"});
  }
};

/// How many of the heads: a share of them, or so many.
std::size_t count_of(const std::string& remove, std::size_t heads) {
  std::size_t count = 0;
  const char* const end = remove.data() + remove.size();
  const auto [stop, error] = std::from_chars(remove.data(), end, count);
  if (error != std::errc() || stop != end) {
    const double share = parse_share("--remove", remove,
                                     "a number from 1 to " + std::to_string(heads - 1) + ", or ");
    count = static_cast<std::size_t>(std::llround(share * static_cast<double>(heads)));
  }
  if (count < 1 || count >= heads) {
    throw InvalidInput("--remove: is " + counted(count, "head") + " of " + std::to_string(heads) +
                       " (allowed: 1 to " + std::to_string(heads - 1) + ")");
  }
  return count;
}

std::string plan_text(const std::vector<RemovedHead>& order,
                      const std::vector<RemovalPrediction>& predictions) {
  Columns columns;
  Texts steps, layers, heads, shares, nats;
  for (std::size_t i = 0; i < order.size(); ++i) {
    steps.push_back(std::to_string(i + 1));
    layers.push_back(std::to_string(order[i].layer));
    heads.push_back(std::to_string(order[i].head));
    shares.push_back(short_number(predictions[i].share));
    nats.push_back(short_number(predictions[i].nats));
  }
  columns.add_key("step", steps, true);
  columns.add_key("layer", layers, true);
  columns.add_key("head", heads, true);
  columns.add("lost/stream", shares, true);
  if (!std::isnan(predictions.front().nats)) columns.add("nats", nats, true);
  return columns.text(table_margin);
}

/// Where the output maps stand in a checkpoint.
struct OutputNames {
  std::string pattern;
  bool input_first = false;

  std::string of(int layer) const {
    std::string name = pattern;
    name.replace(name.find('#'), 1, std::to_string(layer));
    return name;
  }
};

OutputNames output_names(const PruneArguments& arguments) {
  const auto& pattern = arguments.output_name;
  if (pattern && std::ranges::count(*pattern, '#') != 1) {
    throw InvalidInput("--output-name: \"" + one_line(*pattern) + "\" needs one # for the layer");
  }
  require_model(*arguments.checkpoint);
  if (pattern) return {.pattern = *pattern};
  const std::string config = config_next_to(*arguments.checkpoint);
  if (config.empty()) {
    throw InvalidInput(one_line(*arguments.checkpoint) +
                       ": has no config.json - name the output maps by --output-name");
  }
  const Architecture& family = *read_model_config(config, nullptr).architecture;
  return {.pattern = family.output, .input_first = family.input_first};
}

HeadsOfLayers by_layer(const std::vector<RemovedHead>& order) {
  HeadsOfLayers removed;
  for (const RemovedHead& one : order) removed[one.layer].push_back(one.head);
  return removed;
}

/// Output maps and biases of the layers without the heads.
std::vector<TensorChange> changes_of(const std::vector<RemovableLayer>& layers,
                                     const HeadsOfLayers& removed, bool refit,
                                     const OutputNames& names) {
  std::vector<TensorChange> changes;
  for (const RemovableLayer& layer : layers) {
    if (!removed.contains(layer.number())) continue;
    const ChangedMap changed = layer.without(removed.at(layer.number()), refit);
    const TokenRows map = names.input_first ? changed.map : changed.map.transpose();
    const std::string name = names.of(layer.number());
    using Sizes = std::vector<std::uint64_t>;
    changes.push_back(TensorChange{
        .name = name,
        .shape =
            Sizes{static_cast<std::uint64_t>(map.rows()), static_cast<std::uint64_t>(map.cols())},
        .numbers = std::vector<double>(map.data(), map.data() + map.size())});
    if (changed.constant.size() == 0) continue;
    const std::string ending = ".weight";
    const auto& constant = changed.constant;
    changes.push_back(TensorChange{
        .name =
            name.substr(0, name.size() - (name.ends_with(ending) ? ending.size() : 0)) + ".bias",
        .shape = Sizes{static_cast<std::uint64_t>(constant.size())},
        .numbers = std::vector<double>(constant.begin(), constant.end()),
        .added = true});
  }
  return changes;
}

std::string record_of(const std::vector<RemovedHead>& order, const RemovalSetting& setting) {
  std::string heads;
  for (const RemovedHead& one : order) {
    heads += (heads.empty() ? "[" : ", [") + std::to_string(one.layer) + ", " +
             std::to_string(one.head) + "]";
  }
  return "{\"removed\": [" + heads + "], \"by\": \"" + setting.by +
         "\", \"refit\": " + (setting.refit ? "true" : "false") +
         ", \"shrink\": " + (setting.even ? "true" : "false") + "}\n";
}

void require_fits(const PruneArguments& arguments) {
  if (arguments.file.empty()) {
    throw InvalidInput("prune: no file given - write headlab prune FILE --remove 25%");
  }
  if (!arguments.remove) {
    throw InvalidInput("prune: --remove is missing - write a share of the heads, or their number");
  }
  if (arguments.out.has_value() != arguments.checkpoint.has_value()) {
    throw InvalidInput("prune: --checkpoint and --out go together");
  }
  require_out(arguments.overwrite, arguments.out);
  if (!arguments.out) return;
  require_replaceable("--out", *arguments.out, true);
  if (!arguments.overwrite) require_nothing_at(*arguments.out, overwrite_only);
}

ExitCode prune(const PruneArguments& arguments) {
  const int threads = thread_count(threads_of(arguments));
  require_fits(arguments);
  // Found out before the work: where it goes cannot be written.
  std::optional<OutputFolder> place;
  if (arguments.out) place.emplace(folder_of(*arguments.out));
  RemovalSetting setting = arguments.setting;
  setting.refit = !arguments.no_refit;
  setting.even = arguments.shrink;
  setting.seed = arguments.seed.value_or(0);
  OutputNames names;
  if (arguments.checkpoint) names = output_names(arguments);
  const std::shared_ptr<ArrayFile> file =
      heads_second(open_activation_files({arguments.file}), arguments.layout);
  std::vector<RemovableLayer> layers;
  std::size_t heads = 0;
  for (const int number : layer_numbers(*file, arguments.layer)) {
    const LayerActivations layer(file, number);
    identity_of(layer, false, threads);
    layers.emplace_back(layer, removal_moments(layer, {}, threads, stop_requested));
    heads += layers.back().heads();
  }
  require_removable(layers, setting);
  const std::vector<RemovedHead> order =
      removal_order(layers, setting, count_of(*arguments.remove, heads));
  const auto predictions = removal_predictions(layers, order, setting.refit);
  end_on_signals();
  if (arguments.out) {
    const HeadsOfLayers removed = by_layer(order);
    CheckpointChanges changes;
    changes.tensors = changes_of(layers, removed, setting.refit, names);
    changes.record = record_of(order, setting);
    if (arguments.shrink) cut_heads(*arguments.checkpoint, removed, changes);
    write_changed_checkpoint(*arguments.checkpoint, *arguments.out, changes, arguments.overwrite);
    std::cerr << "headlab: wrote " << *arguments.out << "\n";
  }
  print(sentences(
      plan_text(order, predictions) +
      "\nlost/stream: error of the output without the heads up to this one, over the square of the "
      "stream, summed over layers" +
      (std::isnan(predictions.front().nats) ? "" : "; nats: predicted loss a token") +
      "\npredictions order heads, they do not size their costs: measure the loss of both models on "
      "text that nothing was fitted to, beside that of random heads (plan.evaluate in Python)\n"));
  return ExitCode::done;
}

}  // namespace

Command prune_command() {
  return make_command("prune", "Write a trained model without some of its heads", prune);
}

}  // namespace headlab::tools
