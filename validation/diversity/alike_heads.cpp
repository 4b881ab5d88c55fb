// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/alike_heads.h"

#include <algorithm>
#include <utility>

#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"

namespace headlab {
namespace {

/// The mean squared cosines of a layer, [H][H].
class Likeness {
 public:
  explicit Likeness(const LayerDiversity& layer) : heads_(layer.condition_numbers.size()) {
    for (const std::vector<double>& cosines : layer.cosines) {
      double sum = 0;
      for (const double cosine : cosines) sum += cosine * cosine;
      pairs_.push_back(sum / static_cast<double>(cosines.size()));
    }
  }

  std::size_t heads() const { return heads_; }

  /// l < h; pairs are in the order (0, 1), (0, 2), ..
  double at(std::size_t l, std::size_t h) const {
    return pairs_[l * (2 * heads_ - l - 1) / 2 + h - l - 1];
  }

  /// For each head the first that has its subspace: itself, or one kept before it.
  std::vector<std::size_t> representatives() const {
    std::vector<std::size_t> kept, own;
    for (std::size_t h = 0; h < heads_; ++h) {
      const auto close =
          std::ranges::find_if(kept, [&](std::size_t l) { return at(l, h) >= identical_from; });
      own.push_back(close == kept.end() ? h : *close);
      if (close == kept.end()) kept.push_back(h);
    }
    return own;
  }

 private:
  std::size_t heads_;
  std::vector<double> pairs_;
};

int number_of(const LayerDiversity& layer, std::size_t head) {
  return layer.heads.empty() ? static_cast<int>(head) : layer.heads[head];
}

}  // namespace

std::vector<AlikePair> alike_pairs(const HeadDiversity& diversity, std::size_t top) {
  std::vector<AlikePair> pairs;
  for (const LayerDiversity& layer : diversity.layers) {
    const Likeness likeness(layer);
    const std::vector<std::size_t> own = likeness.representatives();
    for (std::size_t l = 0; l < own.size(); ++l) {
      for (std::size_t h = l + 1; h < own.size(); ++h) {
        if (own[l] != l || own[h] != h) continue;
        pairs.push_back(
            {layer.number, number_of(layer, l), number_of(layer, h), likeness.at(l, h)});
      }
    }
  }
  std::ranges::stable_sort(pairs, [](const AlikePair& a, const AlikePair& b) {
    return a.mean_squared_cosine > b.mean_squared_cosine;
  });
  pairs.resize(std::min(pairs.size(), top));
  return pairs;
}

std::vector<std::vector<int>> identical_heads(const LayerDiversity& layer) {
  const std::vector<std::size_t> own = Likeness(layer).representatives();
  std::vector<std::vector<int>> groups;
  for (std::size_t first = 0; first < own.size(); ++first) {
    std::vector<int> group;
    for (std::size_t h = first; h < own.size(); ++h) {
      if (own[h] == first) group.push_back(number_of(layer, h));
    }
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

AlikeHeads alike_heads(const HeadDiversity& diversity, std::size_t top) {
  AlikeHeads alike{.pairs = alike_pairs(diversity, top)};
  const int of_group = diversity.heads / diversity.groups;
  for (const LayerDiversity& layer : diversity.layers) {
    if (top == 0) break;
    for (std::vector<int>& heads : identical_heads(layer)) {
      const bool share_keys = std::ranges::all_of(
          heads, [&](int head) { return head / of_group == heads.front() / of_group; });
      alike.identical.push_back({layer.number, std::move(heads), share_keys});
    }
  }
  return alike;
}

std::string head_diversity_json(const HeadDiversity& diversity, const AlikeHeads& alike,
                                const std::string& file, const Provenance& program) {
  return json_text(MadeDocument{MadeBy{program, {}, diversity.seed},
                                [&](auto& visit) {
                                  visit("file", file, "file of the heads");
                                  diversity.fields(visit);
                                  visit("alike", alike, "how alike the heads of a layer are");
                                }},
                   0);
}

}  // namespace headlab
