// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/targets.h"

#include <algorithm>

#include "engine/files/document.h"
#include "kernels/counted.h"

namespace headlab {

using Eigen::Index;

std::vector<std::vector<std::int64_t>> tokens_of(const LayerActivations& layer) {
  const std::string where = "layer " + std::to_string(layer.number());
  if (!layer.has("tokens")) {
    reject({layer.source()}, where, "has no tokens [B, T + 1] or [B, T], which are needed here");
  }
  const std::uint64_t length = layer.info("tokens").shape[1];
  if (length != layer.shape().queries && length != layer.shape().queries + 1) {
    reject({layer.source()}, where,
           "has " + counted(length, "token") + " of a sequence (allowed: its " +
               std::to_string(layer.shape().queries) + " queries, or one more)");
  }
  const std::vector<double> all = layer.all("tokens");
  std::vector<std::vector<std::int64_t>> out;
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(b * length);
    out.emplace_back(first, first + static_cast<std::ptrdiff_t>(length));
  }
  return out;
}

TokenTargets::TokenTargets(const LayerActivations& layer) : layer_(layer) {
  if (layer.has("target")) {
    width_ = layer.info("target").shape[2];
    return;
  }
  tokens_ = tokens_of(layer);
  for (std::size_t b = 0; b < tokens_.size(); ++b) {
    for (const std::uint32_t t : known(b, layer.tokens(b))) column_.emplace(tokens_[b][t + 1], 0);
  }
  for (auto& [token, column] : column_) column = static_cast<Index>(width_++);
}

std::vector<std::uint32_t> TokenTargets::known(std::size_t b,
                                               const std::vector<std::uint32_t>& tokens) const {
  if (tokens_.empty()) return tokens;
  const std::vector<std::uint32_t> real = layer_.tokens(b);
  std::vector<std::uint32_t> found;
  for (const std::uint32_t t : tokens) {
    // Behind the last query there may be one token more.
    const bool more = t + 1 == layer_.shape().queries && tokens_[b].size() > t + 1;
    if (more || std::ranges::binary_search(real, t + 1)) found.push_back(t);
  }
  return found;
}

TokenRows TokenTargets::rows(std::size_t b, const std::vector<std::uint32_t>& queries) const {
  TokenRows out = TokenRows::Zero(static_cast<Index>(queries.size()), static_cast<Index>(width_));
  const TokenRows given = tokens_.empty() ? layer_.rows("target", b) : TokenRows();
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const auto row = static_cast<Index>(i);
    if (tokens_.empty()) {
      out.row(row) = given.row(queries[i]);
    } else {
      out(row, column_.at(tokens_[b][queries[i] + 1])) = 1;
    }
  }
  return out;
}

}  // namespace headlab
