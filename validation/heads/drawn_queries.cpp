// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/drawn_queries.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kernels/draws.h"
#include "kernels/philox.h"

namespace headlab {
namespace {

/// Heads are exchanged at one in eight of the drawn queries, and at 16 or more.
constexpr std::size_t drawn_of_exchanged = 8, min_exchanged = 16;

/// Tokens with what puts them in an order that is drawn.
using Ordered = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Ordered drawn_order(const std::vector<std::uint32_t>& tokens, std::size_t b, std::uint64_t seed) {
  const std::uint64_t stream = subsequence(Purpose::queries_choice, b);
  Ordered all;
  for (const std::uint32_t t : tokens) all.emplace_back(philox(seed, stream, t).w[0], t);
  return all;
}

}  // namespace

TokenDraw::TokenDraw(const HeadSetting& setting, std::size_t tokens, std::size_t b)
    : exchanged_(setting.exchange_queries), b_(b), seed_(setting.seed) {
  if (setting.queries == 0 || setting.queries >= tokens) return;
  count_ = setting.queries;
  // An exchange costs as many products of values as there are groups: of drawn queries a part is
  // taken, whose error the standard error over documents has in it.
  exchanged_ = std::min(exchanged_, std::max(min_exchanged, count_ / drawn_of_exchanged));
}

std::vector<std::uint32_t> TokenDraw::of(std::vector<std::uint32_t> tokens) const {
  if (all() || count_ >= tokens.size()) return tokens;
  Ordered ordered = drawn_order(tokens, b_, seed_);
  std::ranges::sort(ordered);
  tokens.clear();
  for (std::size_t i = 0; i < count_; ++i) tokens.push_back(ordered[i].second);
  std::ranges::sort(tokens);
  return tokens;
}

WeightedTokens TokenDraw::for_exchange(const std::vector<std::uint32_t>& tokens) const {
  if (exchanged_ >= tokens.size()) return {tokens, std::vector<double>(tokens.size(), 1.0)};
  const Ordered ordered = drawn_order(tokens, b_, seed_);
  const std::size_t whole = exchanged_ / 2, rest = tokens.size() - whole,
                    parts = exchanged_ - whole;
  WeightedTokens out;
  for (std::size_t i = 0; i < whole; ++i) {
    out.tokens.push_back(tokens[i]);
    out.weights.push_back(1);
  }
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = whole + i * rest / parts, end = whole + (i + 1) * rest / parts;
    const auto part = std::span(ordered).subspan(begin, end - begin);
    out.tokens.push_back(std::ranges::min_element(part)->second);
    out.weights.push_back(static_cast<double>(part.size()));
  }
  return out;
}

}  // namespace headlab
