// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <vector>

#include "engine/files/table_file.h"
#include "kernels/counted.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/table.h"
#include "validation/compression/compression.h"

namespace headlab::tools {
namespace {

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

}  // namespace

std::string compression_text(const Compression& compression, const std::string& file,
                             const std::string& inputs) {
  std::string text = file + "\nrank " + std::to_string(compression.rank) + " of k " +
                     std::to_string(compression.k) + ", " +
                     counted(compression.layers.size(), "layer", "layers, averages over heads") +
                     ", d " + std::to_string(compression.d) + ", temperature " +
                     short_number(compression.temperature) + "\n\n" + loss_table(compression) +
                     "\n";
  text +=
      "scores: squared error over their mean square; weights: total variation; outputs: "
      "squared error of outputs linear in the keys, over their mean square; noise: noise "
      "variance over that of the full head\n";
  const std::optional<TableRead> read = table_read(inputs);
  text += (compression.rows > 0
               ? "keys and queries are rows of " + inputs +
                     (read ? ": " + read->text : ", " + grouped(compression.rows) + " of them")
               : "keys and queries are N(0, I), without " + inputs) +
          (compression.centre ? ", centred to be fitted to" : "") + "; " +
          counted(compression.keys, "key") + " a query, " + grouped(compression.replicates) +
          " x " + counted(compression.queries, "query", "queries") + ", seed " +
          std::to_string(compression.seed) + ", ± is one Monte Carlo standard error\n";
  if (compression.rotary) {
    text += "positions are rotary: scores are those of keys at the position of the query\n";
  }
  if (any_undefined(compression)) {
    text += "no figures: singular values agree, so that no subspace of the rank is the best\n";
  }
  return text;
}

}  // namespace headlab::tools
