// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "engine/moments/estimates.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

/// True where all heads of a plan are the same and see the same tokens.
bool all_heads_alike(const Plan& plan) {
  const auto same_as_first = [&](const std::vector<double>& of_heads) {
    const std::size_t size = of_heads.size() / static_cast<std::size_t>(plan.heads);
    for (std::size_t at = size; at < of_heads.size(); ++at) {
      if (of_heads[at] != of_heads[at % size]) return false;
    }
    return true;
  };
  const auto all_equal = [](const auto& list) {
    return std::ranges::adjacent_find(list, std::not_equal_to()) == list.end();
  };
  return plan.heads > 1 && !plan.learning && same_as_first(plan.projections) &&
         same_as_first(plan.query_projections) && all_equal(plan.mechanism.seen) &&
         all_equal(plan.mechanism.keep.top);
}

/// True where no two heads of a plan see a token in common, so that they share no noise.
bool no_common_tokens(const Plan& plan) {
  const std::vector<SeenTokens>& seen = plan.mechanism.seen;
  const auto apart = [](const SeenTokens& a, const SeenTokens& b) {
    return (a.sinks == 0 || b.sinks == 0) && (a.end <= b.begin || b.end <= a.begin) &&
           a.sinks <= b.begin && b.sinks <= a.begin;
  };
  for (std::size_t h = 0; h < seen.size(); ++h) {
    for (std::size_t l = 0; l < h; ++l) {
      if (!apart(seen[h], seen[l])) return false;
    }
  }
  return seen.size() > 1;
}

}  // namespace

UnseenEvents::UnseenEvents(const Plan& plan)
    : bounds_(plan.bounds),
      sum_of_weights_(0),
      per_draw_(plan.redraws),
      alike_(!plan.redraws && all_heads_alike(plan)),
      apart_(no_common_tokens(plan)) {
  for (const double a : plan.head_weights) sum_of_weights_ += std::abs(a);
}

UnseenEvents::Additions UnseenEvents::of(std::uint64_t replicates) const {
  if (bounds_.certain) return Additions(0);
  const auto drawn = static_cast<double>(per_draw_ ? replicates / leaf_replicates : replicates);
  const double share = -std::expm1(std::log(alpha) / std::max(1.0, drawn));
  const auto times = [](double a, double b) { return a == 0 || b == 0 ? 0 : a * b; };
  const double head = 2 * bounds_.estimate;
  const double ensemble = times(1 + sum_of_weights_, bounds_.estimate);
  const double noise_of_ensemble = times(sum_of_weights_ * sum_of_weights_, bounds_.noise_variance);
  const double of_bias = share * 3 * ensemble * ensemble;
  Additions added(0);
  added.bias = share * head;
  added.bias_squared = of_bias;
  added.variance = share * (head * head + bounds_.noise_variance);
  added.covariance = share * (head * head + (apart_ ? 0 : bounds_.noise_variance));
  added.covariance_term = of_bias + (apart_ ? 0 : share * noise_of_ensemble);
  added.mse = of_bias + share * noise_of_ensemble;
  added.cosine = apart_ ? 0 : share;
  return added;
}

}  // namespace headlab
