// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/commands/commands.h"

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

/// Layers whose heads with one subspace are the same, in one line; those that share keys apart.
std::string identical_text(const AlikeHeads& alike) {
  struct Sets {
    int layer;
    bool share_keys;
    std::vector<std::vector<int>> of_heads;
  };
  std::vector<Sets> all;
  for (const bool share_keys : {true, false}) {
    for (const IdenticalHeads& set : alike.identical) {
      if (set.share_keys != share_keys) continue;
      if (all.empty() || all.back().layer != set.layer || all.back().share_keys != share_keys) {
        all.push_back(Sets{set.layer, share_keys, std::vector<std::vector<int>>()});
      }
      all.back().of_heads.push_back(set.heads);
    }
  }
  std::vector<std::pair<const Sets*, std::vector<int>>> lines;
  for (const Sets& sets : all) {
    const auto same = std::ranges::find_if(lines, [&](const auto& line) {
      return line.first->of_heads == sets.of_heads && line.first->share_keys == sets.share_keys;
    });
    if (same == lines.end()) {
      lines.push_back({&sets, {sets.layer}});
    } else {
      same->second.push_back(sets.layer);
    }
  }
  std::string text;
  for (const auto& [sets, layers] : lines) {
    text += "  " + layers_text(layers) + ": " + groups_text(sets->of_heads) +
            ", mean squared cosine 1.00: " +
            (sets->share_keys ? "share keys by construction" : "one subspace") + "\n";
  }
  return text;
}

}  // namespace

std::string alike_text(const HeadDiversity& diversity, const AlikeHeads& alike) {
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
  return text +
         "\ncompared are weights, not what heads do on text: a head that is like another may be "
         "needed there\n";
}

}  // namespace headlab::tools
