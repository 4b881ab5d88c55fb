// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/import_heads.h"

#include "engine/files/models/model_checkpoint.h"
#include "kernels/counted.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_layer = max_model_layers - 1;

/// "layer 1: heads 0 and 2 left out, keys of rank 0 and 3 below k = 4", a line a layer.
std::string deficient_text(const HeadFile& file) {
  std::string text;
  for (std::size_t i = 0; i < file.deficient.size();) {
    const int layer = file.deficient[i].layer;
    std::vector<std::string> heads, ranks;
    for (; i < file.deficient.size() && file.deficient[i].layer == layer; ++i) {
      heads.push_back(std::to_string(file.deficient[i].head));
      ranks.push_back(std::to_string(file.deficient[i].rank));
    }
    const bool is_all = static_cast<int>(heads.size()) == file.heads();
    text += "layer " + std::to_string(layer) +
            (is_all              ? ": all heads "
             : heads.size() == 1 ? ": head "
                                 : ": heads ") +
            (is_all ? "" : and_listed(heads) + " ") + "left out, keys of rank " +
            and_listed(ranks) + " below k = " + std::to_string(file.k()) + "\n";
  }
  return text;
}

/// One line a layer: what orthonormalising leaves out.
std::string table(const HeadFile& file) {
  Columns columns;
  const auto column = [&](const char* heading, const auto& cell) {
    columns.add(heading, cells_of(file.layers, cell), true);
  };
  column("layer", [](const HeadLayer& layer) { return std::to_string(layer.number); });
  column("condition", [](const HeadLayer& layer) { return median_text(layer.condition_numbers); });
  column("worst", [](const HeadLayer& layer) {
    return short_number(*std::ranges::max_element(layer.condition_numbers));
  });
  std::string text = file.origin + "\n" + file.architecture + ", " +
                     counted(file.layers.size(), "layer") + ", H " + std::to_string(file.heads()) +
                     ", d " + std::to_string(file.d()) + ", k " + std::to_string(file.k());
  if (file.kv_heads != file.heads()) {
    text += ", " + std::to_string(file.kv_heads) + " of keys";
  }
  return text + "\n\n" + columns.text("  ") +
         "\ncondition: median over heads of largest over smallest singular value of the keys\n" +
         (file.constant_coordinate
              ? "biases: the last of the " + std::to_string(file.d()) + " inputs is always 1\n"
              : "") +
         (file.left_out.empty() ? "" : "left out: " + file.left_out + " (docs/real-heads.md)\n") +
         deficient_text(file);
}

}  // namespace

void list_layer(Options& options, std::optional<int>& layer) {
  options.value("--layer", "L|all", "One layer, from 0; the default is all",
                [&layer](const std::string& text) {
                  layer.reset();
                  if (text == "all") return;
                  layer = static_cast<int>(parse_whole_number("--layer", text, 0, max_layer));
                });
}

void ImportHeadsArguments::list(Options& options) {
  options.text("CHECKPOINT", "",
               "FILE.safetensors, FILE.safetensors.index.json, or the folder of either",
               checkpoint);
  Texts families = {"auto"};
  for (const std::string& name : architecture_names()) families.push_back(name);
  options.value(
      "--arch", "ARCH",
      "auto (the default): by model_type of config.json; or " + listed(architecture_names()),
      [this](const std::string& text) {
        architecture = text == "auto" ? nullptr : &find_architecture(text);
      },
      families);
  list_layer(options, layer);
  options.text("--config", "FILE",
               "config.json of the model; by default the one in the folder of CHECKPOINT", config);
  options.number("--heads", "H", "Heads of a layer, instead of --config", heads, 1,
                 max_model_heads);
  options.number("--kv-heads", "G", "Heads with keys of their own, where others share them",
                 kv_heads, 1, max_model_heads);
  options.text("--query", "PATTERN",
               "Name of the query projection, with # for the layer, instead of --arch: "
               "blocks.#.attn.qkv.weight",
               query);
  options.text("--key", "PATTERN",
               "Name of the key projection; that of --query where queries, keys and values are one",
               key);
  options.text("--gain", "PATTERN", "Name of the gain of the norm in front, with --query", gain);
  options.flag("--biases", "Keep biases, as weights of a last coordinate that is always 1", biases);
  take(options,
       {{"--out", "heads.nc, or heads.npy for one layer", "FILE"}, "--overwrite", "--threads"});
}

namespace {

/// Of a model whose tensors are named by --query and --key.
ModelConfig config_of_named_tensors(const ImportHeadsArguments& arguments) {
  if (!arguments.query || !arguments.key) {
    throw InvalidInput("import-heads: --query and --key go together - name both");
  }
  if (arguments.architecture != nullptr || arguments.config) {
    throw InvalidInput("import-heads: --query and --key name the tensors - leave out " +
                       std::string(arguments.config ? "--config" : "--arch"));
  }
  for (const std::string& pattern : {*arguments.query, *arguments.key}) {
    if (pattern.find('#') == std::string::npos) {
      throw InvalidInput("--query and --key: " + one_line(pattern) +
                         " has no # in the place of the layer");
    }
  }
  if (!arguments.heads) {
    throw InvalidInput("import-heads: --query and --key need --heads, the heads of a layer");
  }
  const int heads = *arguments.heads;
  const auto own = std::make_shared<const Architecture>(
      named_tensors(*arguments.query, *arguments.key, arguments.gain.value_or("")));
  return {.own = own,
          .architecture = own.get(),
          .counts = {.heads = heads,
                     .kv_heads = arguments.kv_heads.value_or(heads),
                     .layers = {},
                     .head_dim = {}}};
}

}  // namespace

ModelConfig model_config_of(const ImportHeadsArguments& arguments) {
  if (arguments.query || arguments.key) return config_of_named_tensors(arguments);
  if (arguments.gain) throw InvalidInput("--gain: names a tensor beside --query and --key");
  const Architecture* const named = arguments.architecture;
  const bool by_type = named == nullptr;
  const bool counted = arguments.heads || arguments.kv_heads;
  if (arguments.config && counted) {
    throw InvalidInput("import-heads: --config has the number of heads - leave out " +
                       std::string(arguments.heads ? "--heads" : "--kv-heads"));
  }
  const std::string config =
      arguments.config.value_or(counted ? std::string() : config_next_to(arguments.checkpoint));
  if (!config.empty()) return read_model_config(config, named);
  const std::string beside = counted ? config_next_to(arguments.checkpoint) : "";
  if (by_type && !beside.empty()) {
    const std::string option = arguments.heads ? "--heads" : "--kv-heads";
    throw InvalidInput("import-heads: " + option + " takes the place of " + one_line(beside) +
                       " - leave out " + option + ", or write --arch and --heads");
  }
  if (by_type) {
    throw InvalidInput(
        "import-heads: the architecture is unknown - give --config config.json, or --arch and "
        "--heads (allowed: --arch " +
        listed(architecture_names()) + ")");
  }
  if (!arguments.heads) {
    throw InvalidInput("import-heads: the number of heads is missing - give --config or --heads");
  }
  if (named->has_own_temperature()) {
    throw InvalidInput("import-heads: the temperature of " + named->name +
                       " stands in its config.json - give --config");
  }
  const int heads = *arguments.heads;
  return {.architecture = named,
          .counts = {.heads = heads,
                     .kv_heads = arguments.kv_heads.value_or(heads),
                     .layers = {},
                     .head_dim = {}}};
}

namespace {

ExitCode import_from_checkpoint(const ImportHeadsArguments& arguments) {
  const int threads = thread_count(threads_of(arguments));
  if (arguments.checkpoint.empty()) {
    throw InvalidInput(
        "import-heads: no checkpoint given - write headlab import-heads FOLDER --out heads.nc");
  }
  if (!arguments.out) {
    throw InvalidInput("import-heads: --out is missing - name a file that ends in .nc or .npy");
  }
  check_head_path(*arguments.out, 1);
  std::error_code none;
  if (std::filesystem::equivalent(*arguments.out, arguments.checkpoint, none)) {
    throw InvalidInput("--out " + one_line(*arguments.out) +
                       ": is the checkpoint itself - name another file");
  }
  if (!arguments.overwrite) require_nothing_at(*arguments.out, overwrite_only);
  require_writable("--out", *arguments.out);
  // What is not a checkpoint is said before what is not known of it.
  const ModelCheckpoint readable(arguments.checkpoint);
  const ModelConfig config = model_config_of(arguments);
  const HeadFile heads = import_heads(arguments.checkpoint,
                                      {.architecture = config.architecture,
                                       .counts = config.counts,
                                       .layer = arguments.layer,
                                       .biases = arguments.biases,
                                       .stop = stop_requested},
                                      threads);
  end_on_signals();
  check_head_path(*arguments.out, heads.layers.size());
  write_head_file(*arguments.out, heads);
  print(shown(table(heads)));
  std::cerr << "headlab: wrote " << *arguments.out << "\n";
  return ExitCode::done;
}

}  // namespace

Command import_heads_command() {
  return make_command("import-heads", "Take the heads of a trained model from its checkpoint",
                      import_from_checkpoint);
}

}  // namespace headlab::tools
