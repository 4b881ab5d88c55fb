// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "engine/activations/activations.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "validation/heads/identity.h"

namespace headlab::tools {
namespace {

struct ImportActivationsArguments : CommonArguments {
  Texts files;
  std::string layout = "bhtk";

  void list(Options& options) {
    options.texts("FILE", "", "Arrays of attention layers: NPZ, safetensors or NetCDF", files);
    list_layout(options, layout);
    take(options, {{"--out", "activations.nc", "FILE"}, "--overwrite", "--threads"});
  }
};

/// Shapes of a layer, and whether it is what the model did.
std::string layer_text(const LayerActivations& layer, int threads) {
  const AttentionShape& shape = layer.shape();
  std::string text = "layer " + std::to_string(layer.number()) + ": " +
                     counted(layer.sequences(), "sequence") + " of " +
                     counted(layer.documents(), "document") + ", H " + std::to_string(shape.heads);
  if (shape.groups != shape.heads) text += " in " + counted(shape.groups, "group");
  text += ", T " + std::to_string(shape.queries);
  if (shape.keys != shape.queries) text += ", S " + std::to_string(shape.keys);
  if (layer.has_attention()) text += ", k " + std::to_string(shape.k);
  text += ", values of " + std::to_string(shape.e) + ", d " + std::to_string(layer.d()) + "\n  ";
  Texts names;
  for (const ActivationArray& array : activation_arrays()) {
    if (layer.has(array.name)) names.emplace_back(array.name);
  }
  return text + listed(names) + "\n  " + identity_text(identity_of(layer, false, threads)) + "\n";
}

ExitCode import_activations(const ImportActivationsArguments& arguments) {
  const int threads = thread_count(threads_of(arguments));
  if (arguments.files.empty()) {
    throw InvalidInput(
        "import-activations: no file given - write headlab import-activations FILE --out acts.nc");
  }
  if (!arguments.out) {
    throw InvalidInput("import-activations: --out is missing - name a file that ends in .nc");
  }
  require_netcdf_out(*arguments.out, arguments.files, arguments.overwrite);
  const std::shared_ptr<ArrayFile> file =
      heads_second(open_activation_files(arguments.files), arguments.layout);
  std::string text;
  for (const int number : layers_of(*file)) {
    text += layer_text(LayerActivations(file, number), threads);
    if (stop_requested()) throw Stopped();
  }
  end_on_signals();
  write_activations(*arguments.out, file);
  print(shown(text));
  std::cerr << "headlab: wrote " << *arguments.out << "\n";
  return ExitCode::done;
}

}  // namespace

void list_layout(Options& options, std::string& layout) {
  options.word("--layout", "LAYOUT",
               "Axes of q, k, v, z and grad_z: bhtk (the default), or bthk where heads are third",
               layout, activation_layouts());
}

void require_netcdf_out(const std::string& path, const Texts& inputs, bool overwrite) {
  if (!path.ends_with(".nc")) throw InvalidInput("--out: " + one_line(path) + ": must end in .nc");
  require_no_input("--out", path, inputs);
  if (!overwrite) require_nothing_at(path, overwrite_only);
  require_writable("--out", path);
}

Command import_activations_command() {
  return make_command("import-activations", "Take what attention layers did on text from files",
                      import_activations);
}

}  // namespace headlab::tools
