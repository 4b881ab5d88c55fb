// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/head_words.h"

#include <algorithm>
#include <utility>

#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

/// "layer 3", "layers 0 to 3", "layers 0, 2 and 5".
std::string layers_text(const std::vector<int>& layers) {
  if (layers.size() == 1) return "layer " + std::to_string(layers[0]);
  if (layers.back() - layers.front() + 1 == static_cast<int>(layers.size())) {
    return "layers " + std::to_string(layers.front()) + " to " + std::to_string(layers.back());
  }
  std::vector<std::string> words;
  for (const int layer : layers) words.push_back(std::to_string(layer));
  return "layers " + and_listed(words);
}

/// "heads 0 and 1; 2 and 3"
std::string groups_text(const std::vector<std::vector<int>>& groups) {
  std::string text;
  for (const std::vector<int>& group : groups) {
    std::vector<std::string> words;
    for (const int head : group) words.push_back(std::to_string(head));
    text += (text.empty() ? "heads " : "; ") + and_listed(words);
  }
  return text;
}

/// Layers whose heads with one subspace are the same, in one line.
std::string identical_text(const AlikeHeads& alike) {
  std::vector<std::pair<int, std::vector<std::vector<int>>>> of_layers;
  for (const IdenticalHeads& set : alike.identical) {
    if (of_layers.empty() || of_layers.back().first != set.layer)
      of_layers.push_back({set.layer, {}});
    of_layers.back().second.push_back(set.heads);
  }
  std::vector<std::pair<std::vector<std::vector<int>>, std::vector<int>>> lines;
  for (const auto& [layer, groups] : of_layers) {
    const auto same =
        std::ranges::find_if(lines, [&of = groups](const auto& line) { return line.first == of; });
    if (same == lines.end()) {
      lines.push_back({groups, {layer}});
    } else {
      same->second.push_back(layer);
    }
  }
  std::string text;
  for (const auto& [groups, layers] : lines) {
    text += "  " + layers_text(layers) + ": " + groups_text(groups) +
            ", mean squared cosine 1.00: one subspace\n";
  }
  return text;
}

}  // namespace

std::string and_listed(const std::vector<std::string>& words) {
  if (std::ranges::all_of(words, [&](const std::string& word) { return word == words[0]; })) {
    return words.empty() ? "" : words[0];
  }
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " and ") + words[i];
  }
  return text;
}

std::string redundancy_text(const HeadDiversity& diversity, const AlikeHeads& alike) {
  if (diversity.heads < 2) return "";
  std::string text;
  if (!alike.pairs.empty() || !alike.identical.empty()) {
    text += "\nmost alike heads (of random subspaces the mean squared cosine is k/d = " +
            short_number(static_cast<double>(diversity.k) / diversity.d) + ")\n" +
            identical_text(alike);
    for (const AlikePair& pair : alike.pairs) {
      text += "  layer " + std::to_string(pair.layer) + ": heads " + std::to_string(pair.first) +
              " and " + std::to_string(pair.second) + ", mean squared cosine " +
              fixed_number(pair.mean_squared_cosine, 2) + "\n";
    }
  }
  int all = 0, redundant = 0;
  std::string layers;
  for (const LayerDiversity& layer : diversity.layers) {
    all += static_cast<int>(layer.condition_numbers.size());
  }
  for (const RedundantHeads& layer : alike.redundant) {
    redundant += layer.count;
    if (layer.count > 0) {
      layers += (layers.empty() ? "layer " : ", layer ") + std::to_string(layer.layer) + ": " +
                std::to_string(layer.count);
    }
  }
  text += "\nredundant at mean squared cosine " + short_number(alike.threshold) + ": " +
          std::to_string(redundant) + " of " + std::to_string(all) +
          " heads, each that close to an earlier head of its layer that is kept";
  return text + (layers.empty() ? "" : " (" + layers + ")") + "\n";
}

}  // namespace headlab::tools
