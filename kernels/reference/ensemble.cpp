// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/ensemble.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "kernels/controls.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

/// Windows whose largest kernel value is below 2^-126 count as empty.
const double log_empty = -126 * std::log(2.0);

/// The mean point [d] of tokens first ... end - 1.
std::vector<double> mean_point(std::span<const double> points, std::size_t d, std::size_t first,
                               std::size_t end) {
  std::vector<double> mean(d);
  for (std::size_t i = first; i < end; ++i) {
    for (std::size_t c = 0; c < d; ++c) mean[c] += points[i * d + c];
  }
  for (double& x : mean) x /= static_cast<double>(end - first);
  return mean;
}

/// One scale of the keys.
struct Level {
  double weight = 1;
  std::span<const double> points;  ///< [N][d], means of blocks of tokens
  std::vector<double> means;       ///< where they are not the tokens themselves
};

std::vector<Level> levels_of(const Plan& plan, const TrainingSet& tokens) {
  std::vector<Level> levels;
  if (plan.mechanism.levels.off()) {
    levels.push_back({1, tokens.x, {}});
    return levels;
  }
  const auto d = static_cast<std::size_t>(plan.d);
  const std::size_t count = tokens.regression.size();
  std::size_t block = 1;
  for (const double weight : plan.mechanism.levels.weights) {
    if (weight > 0) {
      std::vector<double> means;
      for (std::size_t first = 0; first < count; first += block) {
        const std::size_t end = std::min(first + block, count);
        const std::vector<double> mean = mean_point(tokens.x, d, first, end);
        for (std::size_t i = first; i < end; ++i)
          means.insert(means.end(), mean.begin(), mean.end());
      }
      levels.push_back({weight, {}, std::move(means)});
      levels.back().points = levels.back().means;
    }
    block *= 2;
  }
  // A vector that grows moves its elements, and their numbers stay where they are.
  return levels;
}

/// log K of a head's key at the point `x` and a query, with the law's prior of the key; r2 gets
/// their squared distance.
double log_kernel(const Plan& plan, int head, int query, const double* x, double& r2) {
  const int d = plan.d;
  const double* w = &plan.projections[static_cast<std::size_t>(head) * d * plan.k];
  const double* w_query = plan.query_projection(head);
  const double* at = &plan.query_points[static_cast<std::size_t>(query) * d];
  double norm2 = 0;
  r2 = 0;
  for (int j = 0; j < plan.k; ++j) {
    double projected_difference = 0;
    double projected_key = 0;
    for (int c = 0; c < d; ++c) {
      projected_difference += w_query[c * plan.k + j] * at[c] - w[c * plan.k + j] * x[c];
      projected_key += w[c * plan.k + j] * x[c];
    }
    r2 += projected_difference * projected_difference;
    norm2 += projected_key * projected_key;
  }
  return std::visit(
      [&](const auto& law) {
        using Law = std::decay_t<decltype(law)>;
        const double unit = law.length_scale() * law.length_scale();
        double value = law.log_weight(r2 / unit);
        if constexpr (Law::has_key_prior) value += law.log_prior(norm2 / unit);
        return value;
      },
      *plan.kernel);
}

/// What a head makes of the tokens that it sees.
struct HeadView {
  SeenTokens seen;
  std::vector<double> log_weights;  ///< [N], -inf for tokens not seen
  std::size_t nearest = 0;          ///< of the tokens seen
  bool has_weight = false;          ///< some token has a kernel value above 0
};

HeadView view_of(const Plan& plan, std::span<const Level> levels, int head, int query,
                 std::size_t count) {
  const auto d = static_cast<std::size_t>(plan.d);
  HeadView view{.seen = plan.mechanism.seen_by(head, plan.n),
                .log_weights = std::vector<double>(count, never)};
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 1024 == 0) stop_point(static_cast<double>(i) / static_cast<double>(count));
    if (!view.seen.holds(i)) continue;
    double log_weight = 0;
    double r2 = 0;
    for (const Level& level : levels) {
      log_weight += level.weight * log_kernel(plan, head, query, &level.points[i * d], r2);
    }
    view.log_weights[i] = log_weight;
    view.has_weight = view.has_weight || log_weight > never;
    if (r2 < nearest) {
      nearest = r2;
      view.nearest = i;
    }
  }
  return view;
}

/// The k-th largest of `values`; -inf where there are fewer.
double kth_largest(std::vector<double> values, std::uint64_t k) {
  if (k > values.size()) return never;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::ranges::nth_element(values, at, std::greater<>());
  return *at;
}

/// Scores of the blocks of tokens that a head sees.
std::vector<double> block_scores(const Plan& plan, std::span<const Level> levels, int head,
                                 int query, const HeadView& view) {
  const Keep& keep = plan.mechanism.keep;
  const auto d = static_cast<std::size_t>(plan.d);
  const double largest = *std::ranges::max_element(view.log_weights);
  std::vector<double> scores;
  for (std::uint64_t first = 0; first < view.seen.count(); first += keep.block) {
    const std::uint64_t end = std::min(first + keep.block, view.seen.count());
    double score = 0;
    if (keep.pooled) {
      for (const Level& level : levels) {
        std::vector<double> points;
        for (std::uint64_t i = first; i < end; ++i) {
          const double* x = &level.points[view.seen.token(i) * d];
          points.insert(points.end(), x, x + d);
        }
        const std::vector<double> mean = mean_point(points, d, 0, end - first);
        double r2 = 0;
        score += level.weight * log_kernel(plan, head, query, mean.data(), r2);
      }
    } else {
      for (std::uint64_t i = first; i < end; ++i) {
        score += std::exp(view.log_weights[view.seen.token(i)] - largest);
      }
    }
    scores.push_back(score);
  }
  return scores;
}

/// Which tokens a head keeps [N], of those that it sees.
std::vector<bool> kept_by(const Plan& plan, std::span<const Level> levels, int head, int query,
                          const HeadView& view) {
  const Keep& keep = plan.mechanism.keep;
  std::vector<bool> kept(view.log_weights.size(), false);
  if (!view.has_weight) {
    kept[view.nearest] = true;
    return kept;
  }
  std::vector<double> seen;
  for (std::uint64_t i = 0; i < view.seen.count(); ++i) {
    seen.push_back(view.log_weights[view.seen.token(i)]);
  }
  const auto h = static_cast<std::size_t>(head);
  std::vector<bool> passes(seen.size(), true);
  switch (keep.rule) {
    case Keep::Rule::all:
      break;
    case Keep::Rule::top: {
      const double least = kth_largest(seen, keep.top[h]);
      for (std::size_t i = 0; i < seen.size(); ++i) passes[i] = seen[i] >= least;
      break;
    }
    case Keep::Rule::ratio: {
      const double least = *std::ranges::max_element(seen) + std::log(keep.ratio);
      for (std::size_t i = 0; i < seen.size(); ++i) passes[i] = seen[i] >= least;
      break;
    }
    case Keep::Rule::block: {
      const std::vector<double> scores = block_scores(plan, levels, head, query, view);
      const double least = kth_largest(scores, keep.top[h]);
      for (std::size_t i = 0; i < seen.size(); ++i) passes[i] = scores[i / keep.block] >= least;
      break;
    }
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    kept[view.seen.token(i)] = passes[i] && seen[i] > never;
  }
  return kept;
}

/// Weights of sum 1 [N] of the tokens kept, and the logarithm of their sum before. Counts the
/// window.
std::vector<double> normalised(const Plan& plan, const HeadView& view,
                               const std::vector<bool>& kept, WindowCounts& windows,
                               double& log_weight_sum) {
  const bool counts_empty =
      std::visit([](const auto& law) { return std::decay_t<decltype(law)>::counts_empty_windows; },
                 *plan.kernel);
  std::vector<double> weights(view.log_weights.size());
  double largest = never;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = kept[i] ? view.log_weights[i] : never;
    largest = std::max(largest, weights[i]);
  }
  if (counts_empty && largest < log_empty) ++windows.empty;
  log_weight_sum = largest;
  if (largest == never) {
    std::ranges::fill(weights, 0.0);
    weights[view.nearest] = 1;
  } else {
    double sum = 0;
    for (double& weight : weights) {
      weight = std::exp(weight - largest);
      sum += weight;
    }
    for (double& weight : weights) weight /= sum;
    log_weight_sum += std::log(sum);
  }
  if (effective_sample_size(weights) < 2) ++windows.narrow;
  return weights;
}

/// What log_kernel() leaves out: |q|^2 / 2 of a law with a prior on its keys, q the projected query
/// in units of the law, so that log K = q.k; else 0.
double log_query_factor(const Plan& plan, int head, int query) {
  const bool has_prior = std::visit(
      [](const auto& law) { return std::decay_t<decltype(law)>::has_key_prior; }, *plan.kernel);
  if (!has_prior) return 0;
  const double* w = plan.query_projection(head);
  const double* at = &plan.query_points[static_cast<std::size_t>(query) * plan.d];
  double norm2 = 0;
  for (int j = 0; j < plan.k; ++j) {
    double projected = 0;
    for (int c = 0; c < plan.d; ++c) projected += w[c * plan.k + j] * at[c];
    norm2 += projected * projected;
  }
  const double unit = length_scale(*plan.kernel);
  return norm2 / (2 * unit * unit);
}

}  // namespace

std::vector<double> nw_weights(const Plan& plan, const TrainingSet& tokens, int head, int query,
                               WindowCounts& windows, double* log_weight_sum) {
  const std::size_t count = tokens.regression.size();
  const std::vector<Level> levels = levels_of(plan, tokens);
  const HeadView view = view_of(plan, levels, head, query, count);
  std::vector<bool> kept = kept_by(plan, levels, head, query, view);
  const WorkPart of_others(1, 1);
  for (int other = 0; plan.mechanism.keep.shared && other < plan.heads; ++other) {
    if (other == head) continue;
    const HeadView of_other = view_of(plan, levels, other, query, count);
    const std::vector<bool> by_other = kept_by(plan, levels, other, query, of_other);
    for (std::size_t i = 0; i < count; ++i) kept[i] = kept[i] || by_other[i];
  }
  double log_sum = 0;
  std::vector<double> weights = normalised(plan, view, kept, windows, log_sum);
  if (log_weight_sum != nullptr) *log_weight_sum = log_sum + log_query_factor(plan, head, query);
  return weights;
}

double effective_sample_size(std::span<const double> weights) {
  double square = 0;
  for (const double weight : weights) square += weight * weight;
  return 1 / square;
}

void query_statistics(const Plan& plan, const TrainingSet& tokens,
                      std::span<const std::vector<double>> weights, double* out) {
  const MomentLayout layout = plan.layout();
  const auto heads = static_cast<std::size_t>(plan.heads);
  const std::size_t n = tokens.regression.size();
  for (std::size_t h = 0; h < heads; ++h) {
    double estimate = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double value = tokens.regression[i] + (layout.conditional ? 0.0 : tokens.noise[i]);
      estimate += weights[h][i] * value;
    }
    out[h] = estimate;
  }
  if (!layout.pairwise()) {
    out[heads] = 0;
    for (std::size_t h = 0; h < heads; ++h) out[heads] += plan.head_weights[h] * out[h];
  }
  if (!layout.conditional) return;

  double* noise = out + layout.noise_offset();
  auto noise_covariance = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += tokens.noise_sd[i] * tokens.noise_sd[i] * a[i] * b[i];
    }
    return sum;
  };
  if (layout.pairwise()) {
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        noise[layout.pair(h, l)] = noise_covariance(weights[h], weights[l]);
      }
    }
  } else {
    std::vector<double> ensemble(n, 0.0);
    for (std::size_t h = 0; h < heads; ++h) {
      noise[h] = noise_covariance(weights[h], weights[h]);
      for (std::size_t i = 0; i < n; ++i) ensemble[i] += plan.head_weights[h] * weights[h][i];
    }
    noise[heads] = noise_covariance(ensemble, ensemble);
  }
  if (layout.has_alignment()) {
    const double last_share = plan.mechanism.merge.last_share(plan.n);
    auto dot = [&](std::size_t h, std::size_t l) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        sum += weights[h][i] * weights[l][i] * (i + 1 == n ? last_share : 1.0);
      }
      return sum;
    };
    double sum = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h + 1; l < heads; ++l) {
        sum += dot(h, l) / std::sqrt(dot(h, h) * dot(l, l));
      }
    }
    out[layout.alignment_offset()] = sum / static_cast<double>(heads * (heads - 1) / 2);
  }
}

std::vector<double> reference_statistics(const Plan& plan, const TrainingSet& sample,
                                         WindowCounts& windows, double* min_sample_size) {
  const MomentLayout layout = plan.layout();
  std::vector<double> statistics(layout.statistics());
  double least = std::numeric_limits<double>::infinity();
  const TrainingSet tokens = tokens_of(plan, sample);
  std::vector<double> log_weight_sums(static_cast<std::size_t>(plan.heads));
  for (int q = 0; q < plan.queries; ++q) {
    const auto query = static_cast<std::size_t>(q);
    std::vector<std::vector<double>> weights;
    for (int h = 0; h < plan.heads; ++h) {
      const WorkPart part =
          WorkPart::number(query * log_weight_sums.size() + static_cast<std::size_t>(h),
                           static_cast<std::size_t>(plan.queries) * log_weight_sums.size());
      weights.push_back(
          nw_weights(plan, tokens, h, q, windows, &log_weight_sums[static_cast<std::size_t>(h)]));
      least = std::min(least, effective_sample_size(weights.back()));
    }
    double* of_query = &statistics[query * layout.per_query()];
    query_statistics(plan, tokens, weights, of_query);
    if (plan.controls) {
      set_controlled(*plan.controls, layout, query, log_weight_sums, plan.head_weights, of_query);
    }
  }
  if (min_sample_size != nullptr) *min_sample_size = least;
  return statistics;
}

}  // namespace headlab
