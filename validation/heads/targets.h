// SPDX-License-Identifier: Apache-2.0
/// \file What tokens are to tell: the next token, or numbers of the user's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/activations/activations.h"

namespace headlab {

/// Unit of figures of targets.
inline constexpr const char* target_squared = "target^2";

class TokenTargets {
 public:
  /// The array `target` where the layer has one, else tokens. Throws InvalidInput where it has
  /// neither, or where tokens are not those of its queries.
  explicit TokenTargets(const LayerActivations& layer);

  std::size_t width() const { return width_; }
  /// Queries of a sequence, of those in `tokens`, whose target is known.
  std::vector<std::uint32_t> known(std::size_t b, const std::vector<std::uint32_t>& tokens) const;
  /// Targets of these queries [queries][width]; a next token is 1 in the column of its number.
  TokenRows rows(std::size_t b, const std::vector<std::uint32_t>& queries) const;

 private:
  const LayerActivations& layer_;
  std::vector<std::vector<std::int64_t>> tokens_;  ///< [B], or none
  std::map<std::int64_t, Eigen::Index> column_;    ///< of a next token
  std::size_t width_ = 0;
};

/// Tokens of each sequence [B][T] or [B][T + 1]. Throws InvalidInput where there are none.
std::vector<std::vector<std::int64_t>> tokens_of(const LayerActivations& layer);

}  // namespace headlab
