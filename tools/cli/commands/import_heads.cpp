// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/import_heads.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "engine/files/error.h"
#include "engine/files/import_heads.h"
#include "engine/run/simulate.h"
#include "engine/scenario/law_reader.h"
#include "kernels/parallel_for.h"
#include "tools/cli/characters.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/stop_signal.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_heads = 1024, max_layer = 4095;

Architecture architecture_of(const std::optional<std::string>& name) {
  std::vector<std::string> known;
  for (const auto& [word, architecture] : architectures()) {
    if (word == name) return architecture;
    known.push_back(word);
  }
  if (!name) {
    throw InvalidInput("import-heads: --arch is missing (allowed: " + listed(known) + ")");
  }
  throw InvalidInput("--arch: \"" + one_line(*name) + "\" is unknown" + suggestion(*name, known));
}

HeadCounts counts_of(const ImportHeadsArguments& arguments, Architecture architecture) {
  if (arguments.config) {
    if (arguments.heads || arguments.kv_heads) {
      throw InvalidInput("import-heads: --config has the number of heads - leave out " +
                         std::string(arguments.heads ? "--heads" : "--kv-heads"));
    }
    return read_head_counts(*arguments.config, architecture);
  }
  if (!arguments.heads) {
    throw InvalidInput("import-heads: the number of heads is missing - give --config or --heads");
  }
  const auto count = [](const char* option, const std::string& text) {
    return static_cast<int>(parse_whole_number(option, text, 1, max_heads));
  };
  const int heads = count("--heads", *arguments.heads);
  return {.heads = heads,
          .kv_heads = arguments.kv_heads ? count("--kv-heads", *arguments.kv_heads) : heads,
          .layers = {}};
}

std::optional<int> layer_of(const std::string& text) {
  if (text == "all") return {};
  return static_cast<int>(parse_whole_number("--layer", text, 0, max_layer));
}

/// One line a layer: what orthonormalising leaves out.
std::string table(const HeadFile& file) {
  Columns columns;
  std::vector<std::string> numbers, median, worst;
  for (const HeadLayer& layer : file.layers) {
    std::vector<double> sorted = layer.condition_numbers;
    std::sort(sorted.begin(), sorted.end());
    numbers.push_back(std::to_string(layer.number));
    median.push_back(short_number(sorted[sorted.size() / 2]));
    worst.push_back(short_number(sorted.back()));
  }
  columns.add("layer", numbers, true);
  columns.add("condition", median, true);
  columns.add("worst", worst, true);
  std::string text =
      file.origin + "\n" + file.architecture + ", " + std::to_string(file.layers.size()) +
      (file.layers.size() == 1 ? " layer" : " layers") + ", H " + std::to_string(file.heads()) +
      ", d " + std::to_string(file.d()) + ", k " + std::to_string(file.k());
  if (file.kv_heads != file.heads()) {
    text += ", " + std::to_string(file.kv_heads) + " of keys";
  }
  return text + "\n\n" + columns.text("  ") +
         "\ncondition: median over heads of largest over smallest singular value of the keys\n";
}

}  // namespace

ExitCode command_import_heads(const ImportHeadsArguments& arguments) {
  const int threads = thread_count(parse_threads(arguments.threads));
  if (arguments.checkpoint.empty()) {
    throw InvalidInput(
        "import-heads: no checkpoint given - write headlab import-heads FILE.safetensors --arch "
        "ARCH --config config.json --out heads.nc");
  }
  HeadImport import{.architecture = architecture_of(arguments.architecture)};
  import.layer = layer_of(arguments.layer);
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
  import.counts = counts_of(arguments, import.architecture);
  const HeadFile heads = import_heads(arguments.checkpoint, import, threads);
  check_head_path(*arguments.out, heads.layers.size());
  write_head_file(*arguments.out, heads);
  std::cout << shown(table(heads));
  finish_standard_output();
  std::cerr << "headlab: wrote " << *arguments.out << "\n";
  return ExitCode::done;
}

}  // namespace headlab::tools
