// SPDX-License-Identifier: Apache-2.0
/// \file What stands between the training set and the weights of a head, in plain numbers. The
/// stages apply in this order, each to what the one before left: merge, levels, seen tokens, keep.
/// One that is off leaves every bit as it is.
///
/// Tokens are what a head weighs: the training points, or what `merge` makes of them, numbered from
/// the oldest on. The query stands behind the newest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/hd.h"

namespace headlab {

/// Groups of `stride` successive points, from the first, become tokens g: X_g = sum_i v_i X_i and
/// Y_g = sum_i v_i Y_i, with v_i = 1 / (points of the group), or the gate.
struct Merge {
  std::uint64_t stride = 1;
  std::optional<double> gate;

  bool off() const { return stride == 1 && !gate; }
  /// N = ceil(n / stride); the last token may have fewer points.
  std::uint64_t tokens(std::uint64_t n) const { return (n + stride - 1) / stride; }
  /// v_i in a group of this many points.
  double weight(std::uint64_t points) const {
    return gate.value_or(1 / static_cast<double>(points));
  }
  /// Sum of v_i over a complete group.
  double group_weight() const { return gate ? *gate * static_cast<double>(stride) : 1; }
  /// sum_i v_i^2 over the last of the groups of n points, relative to a complete one. A response
  /// has weight v_i w_g: a product of weights on responses is the sum over tokens of w_g w'_g
  /// sum_i v_i^2, of which only the last token has another factor.
  double last_share(std::uint64_t n) const {
    if (n % stride == 0) return 1;
    const double points = static_cast<double>(n % stride) / static_cast<double>(stride);
    return gate ? points : 1 / points;
  }
  bool operator==(const Merge&) const = default;
};

/// Keys at several scales: log w_i = sum_l lambda_l log K(query, mean key of the aligned block of
/// 2^l tokens that i is in). The last block has the tokens that there are.
struct Levels {
  std::vector<double> weights;  ///< lambda_l, empty: the token's own key alone

  bool off() const { return weights.empty(); }
  /// Tokens of the largest block.
  std::uint64_t block() const { return off() ? 1 : std::uint64_t{1} << (weights.size() - 1); }
  bool operator==(const Levels&) const = default;
};

/// The tokens that a head sees: [0, sinks) and [begin, end), sinks <= begin.
struct SeenTokens {
  std::uint64_t sinks = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  HEADLAB_HD std::uint64_t count() const { return sinks + (end - begin); }
  HEADLAB_HD bool holds(std::uint64_t token) const {
    return token < sinks || (token >= begin && token < end);
  }
  /// Place of a token that is seen among those seen.
  HEADLAB_HD std::uint64_t rank(std::uint64_t token) const {
    return token < sinks ? token : sinks + (token - begin);
  }
  /// Number of the i-th token seen.
  HEADLAB_HD std::uint64_t token(std::uint64_t i) const {
    return i < sinks ? i : begin + (i - sinks);
  }
  bool operator==(const SeenTokens&) const = default;
};

/// Of `tokens`, the newest `window` before the newest `skip`, and the first `sinks`.
inline SeenTokens seen_tokens(std::uint64_t tokens, std::uint64_t window, std::uint64_t skip,
                              std::uint64_t sinks) {
  const std::uint64_t end = tokens - std::min(skip, tokens);
  const std::uint64_t begin = end - std::min(window, end);
  if (sinks >= begin) return {.sinks = 0, .begin = 0, .end = end};
  return {.sinks = sinks, .begin = begin, .end = end};
}

struct HeadKeep;

/// Which of the tokens seen keep their weight, by log w; the others get weight 0 and the weights
/// are normalised again. A weight of 0 is never kept; all ties are.
struct Keep {
  enum class Rule {
    all,
    top,    ///< weights no smaller than the k-th largest
    ratio,  ///< weights of at least `ratio` times the largest
    block,  ///< blocks of successive tokens whose score is no smaller than the k-th largest
  };
  Rule rule = Rule::all;
  std::vector<std::uint64_t> top;  ///< [H], k of `top` and `block`
  double ratio = 0;
  std::uint64_t block = 0;  ///< tokens of a block, from the first token seen
  bool pooled = false;      ///< score of a block: log w of its mean keys, in place of its weight
  bool shared = false;      ///< each head keeps, of what it sees, what any head keeps

  bool off() const { return rule == Rule::all; }
  HeadKeep of_head(int head) const;
  bool operator==(const Keep&) const = default;
};

/// The rule of one head.
struct HeadKeep {
  Keep::Rule rule = Keep::Rule::all;
  std::uint64_t top = 0;
  double ratio = 0;
  std::uint64_t block = 0;
  bool pooled = false;
  bool operator==(const HeadKeep&) const = default;
};

inline HeadKeep Keep::of_head(int head) const {
  return {.rule = rule,
          .top = top.empty() ? 0 : top[static_cast<std::size_t>(head)],
          .ratio = ratio,
          .block = block,
          .pooled = pooled};
}

/// All stages of the heads of a plan.
struct Mechanism {
  Merge merge;
  Levels levels;
  std::vector<SeenTokens> seen;  ///< [H]; empty: every head sees every token
  Keep keep;

  bool off() const { return merge.off() && levels.off() && seen.empty() && keep.off(); }
  /// Tokens that a head sees.
  SeenTokens seen_by(int head, std::uint64_t n) const {
    return seen.empty() ? SeenTokens{.end = merge.tokens(n)} : seen[static_cast<std::size_t>(head)];
  }
  bool operator==(const Mechanism&) const = default;
};

}  // namespace headlab
