// SPDX-License-Identifier: Apache-2.0
/// \file Which tokens of a sequence stand for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "validation/heads/head_setting.h"

namespace headlab {

/// Tokens that stand for others too.
struct WeightedTokens {
  std::vector<std::uint32_t> tokens;
  std::vector<double> weights;
};

/// The draw of one sequence. Where a setting asks for as many queries as there are, it is that of
/// all queries: nothing is drawn of keys either, and heads are exchanged at as many queries.
class TokenDraw {
 public:
  /// \param tokens how many the sequence has
  /// \param b its number
  TokenDraw(const HeadSetting& setting, std::size_t tokens, std::size_t b);

  bool all() const { return count_ == 0; }
  /// As many as the setting asks for, ascending, drawn without replacement.
  std::vector<std::uint32_t> of(std::vector<std::uint32_t> tokens) const;
  /// Heads differ most at the first tokens, which have few keys: those are taken, and one drawn of
  /// each part of equal length of the others.
  WeightedTokens for_exchange(const std::vector<std::uint32_t>& tokens) const;

 private:
  std::size_t count_ = 0;  ///< 0: all
  std::size_t exchanged_;  ///< the most that heads are exchanged at
  std::size_t b_;
  std::uint64_t seed_;
};

}  // namespace headlab
