// SPDX-License-Identifier: Apache-2.0
#include "engine/files/table_file.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/table.h"
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
  std::string header;
  CompressionSetting setting;

  void list(Options& options) {
    options.text("FILE", "", "Heads with their matrices: NetCDF of import-heads", file);
    options.number("--rank", "R", "Rank of the compressed heads", rank, 1, max_rank);
    options.word("--by", "METHOD",
                 "What --out is compressed by: kq_svd (the default), k_svd or joint", by,
                 low_rank_methods());
    options.text("--data", "FILE",
                 "Inputs of the heads, CSV or NPY with a row each; the default is N(0, I)", data);
    options.word("--header", "WHETHER", "Whether the first line of a CSV has names: true or false",
                 header, {"true", "false"});
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
Eigen::MatrixXd tokens_in(const std::string& path, const std::string& header) {
  const DataTable table =
      read_table(path, header.empty() ? std::nullopt : std::optional(header == "true"));
  Eigen::MatrixXd tokens(static_cast<Eigen::Index>(table.rows),
                         static_cast<Eigen::Index>(table.columns));
  for (std::size_t i = 0; i < table.rows; ++i) {
    for (std::size_t j = 0; j < table.columns; ++j) {
      tokens(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = table.at(i, j);
    }
  }
  return tokens;
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
  if (arguments.data) setting.tokens = tokens_in(*arguments.data, arguments.header);
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
  print_document(arguments, json, [&] {
    return sentences(
        compression_text(compression, arguments.file, arguments.data.value_or("--data")));
  });
  return ExitCode::done;
}

}  // namespace

Command compress_command() {
  return make_command("compress", "Say what low-rank approximations of heads lose", compress);
}

}  // namespace headlab::tools
