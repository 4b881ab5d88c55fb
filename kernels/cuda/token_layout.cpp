// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/token_layout.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

struct Interval {
  std::uint64_t begin, end;
};

/// Whole blocks of tokens that some head sees, as few intervals in order.
std::vector<Interval> stored_intervals(const Mechanism& mechanism, std::uint64_t tokens) {
  if (mechanism.seen.empty()) return {{0, tokens}};
  const std::uint64_t block = mechanism.levels.block();
  std::vector<Interval> all;
  const auto add = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    all.push_back({begin / block * block, std::min((end + block - 1) / block * block, tokens)});
  };
  for (const SeenTokens& seen : mechanism.seen) {
    add(0, seen.sinks);
    add(seen.begin, seen.end);
  }
  std::ranges::sort(all, {}, &Interval::begin);
  std::vector<Interval> merged;
  for (const Interval& next : all) {
    if (!merged.empty() && next.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, next.end);
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

}  // namespace

TokenLayout::TokenLayout(const Plan& plan) {
  const Mechanism& mechanism = plan.mechanism;
  const Merge& merge = mechanism.merge;
  const std::uint64_t all = merge.tokens(plan.n);
  const std::vector<Interval> intervals = stored_intervals(mechanism, all);
  tokens = 0;
  for (const Interval& interval : intervals) {
    ranges.push_back({interval.begin, tokens});
    tokens += interval.end - interval.begin;
  }
  const auto position = [&](std::uint64_t token) {
    const auto next = std::ranges::upper_bound(ranges, token, {}, &TokenRange::token);
    const TokenRange& range = *std::prev(next);
    return range.position + (token - range.token);
  };
  for (const SeenTokens& one : mechanism.seen) {
    const std::uint64_t begin = position(one.begin);
    seen.push_back({.sinks = one.sinks, .begin = begin, .end = begin + (one.end - one.begin)});
  }
  if (std::ranges::all_of(seen, [&](const SeenTokens& one) { return one.count() == tokens; })) {
    seen.clear();
  }
  const std::uint64_t end = intervals.back().end;
  if (ranges.size() == 1 && ranges[0].token == 0) ranges.clear();
  separate = !merge.off() || (plan.ar1 && !ranges.empty());
  // A sequence is drawn from its first point on.
  const std::uint64_t drawn = (plan.ar1 ? end : tokens) * merge.stride;
  const std::uint64_t missing = end == all ? all * merge.stride - plan.n : 0;
  points = drawn - missing;
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
