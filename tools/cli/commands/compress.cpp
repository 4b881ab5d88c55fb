// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/files/table_file.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "validation/compression/compression.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_rank = 65535;
constexpr std::uint64_t max_keys = 65536, max_key_sets = 65536;

struct CompressArguments : CommonArguments {
  std::string file;
  std::optional<int> rank, layer;
  std::string by = "kq_svd";
  std::optional<std::string> data;
  CompressionSetting setting;

  void list(Options& options) {
    options.text("FILE", "", "Heads with their matrices: NetCDF of import-heads", file);
    options.number("--rank", "R", "Rank of the compressed heads", rank, 1, max_rank);
    options.word("--by", "METHOD",
                 "What --out is compressed by: kq_svd (the default), k_svd or joint", by,
                 low_rank_methods());
    options.text("--data", "FILE",
                 "Inputs of the heads, CSV or NPY with a row each; the default is N(0, I)", data);
    options.flag("--centre", "Fit to the covariance of the keys", setting.centre);
    list_layer(options, layer);
    options.number("--n", "N", "Keys that a query weighs; the default is 128", setting.keys, 2,
                   max_keys);
    options.number("--replicates", "R", "Sets of keys, each with 16 queries; the default is 256",
                   setting.replicates, 8, max_key_sets);
    take(options, {{"--seed", "Seed of keys and queries; the default is 0"},
                   {"--out", "Write the compressed heads: .nc, or .npy of a layer", "FILE"},
                   "--overwrite",
                   "--json",
                   "--threads"});
  }
};

/// The rows of the file of inputs.
Eigen::MatrixXd tokens_in(const std::string& path) {
  const DataTable table = read_table(path);
  Eigen::MatrixXd tokens(static_cast<Eigen::Index>(table.rows),
                         static_cast<Eigen::Index>(table.columns));
  for (std::size_t i = 0; i < table.rows; ++i) {
    for (std::size_t j = 0; j < table.columns; ++j) {
      tokens(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = table.at(i, j);
    }
  }
  return tokens;
}

/// A row a method, of each layer, or of each head where there is one layer.
std::string loss_table(const Compression& compression) {
  std::vector<std::string> keys, methods, scores;
  std::vector<Estimate> weights, outputs, noise;
  const auto add = [&](const std::string& key, const std::string& method,
                       const CompressionLoss& loss) {
    keys.push_back(key);
    methods.push_back(method);
    scores.push_back(short_number(loss.scores));
    weights.push_back(loss.weights);
    outputs.push_back(loss.outputs);
    noise.push_back(loss.noise);
  };
  const bool by_head = compression.layers.size() == 1;
  for (const LayerCompression& layer : compression.layers) {
    if (!by_head) {
      for (const MethodLoss& method : layer.methods) {
        add(std::to_string(layer.number), method.name, method.mean);
      }
      continue;
    }
    for (std::size_t h = 0; h < layer.methods[0].heads.size(); ++h) {
      const int head = layer.heads.empty() ? static_cast<int>(h) : layer.heads[h];
      for (const MethodLoss& method : layer.methods) {
        add(std::to_string(head), method.name, method.heads[h]);
      }
    }
  }
  Columns columns;
  columns.add_key(by_head ? "head" : "layer", keys, true);
  columns.add_key("method", methods);
  columns.add("scores", scores, true);
  columns.add_figures("weights", weights);
  columns.add_figures("outputs", outputs);
  columns.add_figures("noise", noise);
  return columns.text("  ");
}

bool any_undefined(const Compression& compression) {
  for (const LayerCompression& layer : compression.layers) {
    for (const MethodLoss& method : layer.methods) {
      for (const CompressionLoss& loss : method.heads) {
        if (std::isnan(loss.scores)) return true;
      }
    }
  }
  return false;
}

std::string compression_text(const Compression& compression, const CompressArguments& arguments) {
  std::string text =
      arguments.file + "\nrank " + std::to_string(compression.rank) + " of k " +
      std::to_string(compression.k) + ", " + std::to_string(compression.layers.size()) +
      (compression.layers.size() == 1 ? " layer" : " layers, averages over heads") + ", d " +
      std::to_string(compression.d) + ", temperature " + short_number(compression.temperature) +
      "\n\n" + loss_table(compression) + "\n";
  text +=
      "scores: squared error over their mean square; weights: total variation; outputs: "
      "squared error of outputs linear in the keys, over their mean square; noise: noise "
      "variance over that of the full head\n";
  text += (arguments.data ? "keys and queries are rows of " + *arguments.data + ", " +
                                std::to_string(compression.rows) + " of them"
                          : std::string("keys and queries are N(0, I), without --data")) +
          (compression.centre ? ", centred to be fitted to" : "") + "; " +
          std::to_string(compression.keys) + " keys a query, " +
          std::to_string(compression.replicates) + " x " + std::to_string(compression.queries) +
          " queries, seed " + std::to_string(compression.seed) +
          ", ± is one Monte Carlo standard error\n";
  if (compression.rotary) {
    text += "positions are rotary: scores are those of keys at the position of the query\n";
  }
  if (any_undefined(compression)) {
    text += "no figures: singular values agree, so that no subspace of the rank is the best\n";
  }
  return text;
}

ExitCode compress(const CompressArguments& arguments) {
  const int threads = thread_count(threads_of(arguments));
  if (arguments.file.empty()) {
    throw InvalidInput("compress: no file given - write headlab compress heads.nc --rank R");
  }
  if (!arguments.rank) {
    throw InvalidInput("compress: --rank is missing - name one below the dimension of the heads");
  }
  CompressionSetting setting = arguments.setting;
  setting.rank = *arguments.rank;
  setting.seed = arguments.seed.value_or(setting.seed);
  require_out(arguments.overwrite, arguments.out);
  Texts inputs = {arguments.file};
  if (arguments.data) inputs.push_back(*arguments.data);
  if (arguments.out) {
    check_head_path(*arguments.out, 1);
    require_no_input("--out", *arguments.out, inputs);
    if (!arguments.overwrite) require_nothing_at(*arguments.out, overwrite_only);
    require_writable("--out", *arguments.out);
  }
  require_documents(arguments, inputs);

  const HeadFile heads = read_head_file(arguments.file, arguments.layer);
  if (arguments.out) check_head_path(*arguments.out, heads.layers.size());
  if (arguments.data) setting.tokens = tokens_in(*arguments.data);
  std::optional<HeadFile> compressed;
  if (arguments.out) {
    compressed = compressed_heads(heads, arguments.file, *low_rank_method(arguments.by), setting,
                                  threads, stop_requested);
  }
  const Compression compression =
      compression_of(heads, arguments.file, setting, threads, stop_requested);
  end_on_signals();
  std::string json;
  if (arguments.json) json = compression_json(compression, arguments.file, provenance());
  if (compressed) {
    write_head_file(*arguments.out, *compressed);
    std::cerr << "headlab: wrote " << *arguments.out << "\n";
  }
  write_documents(arguments, json);
  print_document(arguments, json,
                 [&] { return sentences(compression_text(compression, arguments)); });
  return ExitCode::done;
}

}  // namespace

Command compress_command() {
  return make_command("compress", "Say what low-rank approximations of heads lose", compress);
}

}  // namespace headlab::tools
