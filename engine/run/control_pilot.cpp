// SPDX-License-Identifier: Apache-2.0
#include "engine/run/control_pilot.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "engine/moments/control_fit.h"
#include "engine/run/pilot.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/backends.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

/// Replicates of the pilot that a worker computes between two questions whether to stop.
constexpr std::uint64_t block_replicates = 32;

using Choices = std::vector<std::vector<std::size_t>>;
// Controls by their number in kernels/controls.h: bounded ones, then linear ones. Fewer may do
// where all together do not.
const Choices choices_of_estimate = {{2, 3, 4, 5, 6, 7}, {3, 4, 6, 7}, {3, 6}, {0, 1}, {1}};
const Choices choices_of_variance = {
    {3, 4, 5, 6, 10, 11, 12}, {4, 5, 6, 10, 11, 12}, {0, 2, 3}, {3}};
const Choices choices_of_covariance = {
    {3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {4, 5, 6, 7, 8, 9, 10, 11, 12}, {0, 1, 2, 3}, {3}};
/// Largest kurtosis in the pilot of controls that are not bounded, and of those that are.
constexpr double max_kurtosis = 30, max_bounded_kurtosis = 300;
/// Of what controls leave of an estimate: beyond it standard errors of the squared bias come out
/// too small. Those of the noise terms do not (docs/measured/controls.md).
constexpr double max_rest_kurtosis = 60, any_kurtosis = std::numeric_limits<double>::infinity();
/// Numbers of the first controls of an estimate and of noise that are not bounded.
constexpr std::size_t unbounded_estimate_controls = 2, unbounded_noise_controls = 4;
static_assert(estimate_controls == 8 && noise_controls == 13);

/// Relative rounding of kernel sums that all replicates may share: of a backend in float32, and in
/// float64. It grows with the exponents of the kernel values, where they are larger than this.
constexpr double float32_rounding = 1e-6, float64_rounding = 1e-13, plain_exponent = 8;
/// Replicates of the pilot that show the rounding of a backend against `cpu`: what they share is
/// seen in each, of many keys.
constexpr std::uint64_t compared_replicates = 4;
/// Products of weights are accurate where they are more than this of those of a head with itself
/// (kernels/statistics/safe_sums.h).
constexpr double min_product = 0x1p-30;
/// A run tests the mean of an adjustment where the skewness of the mean is less
/// (engine/run/control_check.h).
constexpr double max_mean_skewness = 0.5;

/// Statistics of every replicate of a plan, [replicates][layout.statistics()].
std::vector<double> replicates_of(const Plan& plan, std::uint64_t replicates,
                                  const Session& session) {
  const std::size_t size = plan.layout().statistics();
  std::vector<double> all(replicates * size);
  const std::uint64_t blocks = (replicates + block_replicates - 1) / block_replicates;
  const int threads = session.backend->workers(thread_count(session.threads));
  const auto workers = static_cast<std::uint64_t>(
      std::max(1, std::min(threads, static_cast<int>(std::min<std::uint64_t>(blocks, 1024)))));
  std::atomic<std::uint64_t> next = 0;
  parallel_for(workers, static_cast<int>(workers), [&](std::size_t) {
    const std::unique_ptr<Worker> worker = session.backend->worker(plan);
    for (std::uint64_t block = next++; block < blocks; block = next++) {
      stop_point();
      const std::uint64_t first = block * block_replicates;
      const std::uint64_t count = std::min(block_replicates, replicates - first);
      std::vector<Moments> out(count);
      worker->run({.first = first, .count = count, .node = 1}, out);
      for (std::uint64_t r = 0; r < count; ++r) {
        std::ranges::copy(out[r].mean, &all[(first + r) * size]);
      }
    }
  });
  return all;
}

/// Statistics of the pilot at one query.
class QueryPilot {
 public:
  QueryPilot(const MomentLayout& layout, std::span<const double> statistics, std::size_t query)
      : layout_(layout), replicates_(statistics.size() / layout.statistics()) {
    for (std::size_t r = 0; r < replicates_; ++r) {
      rows_.push_back(&statistics[r * layout.statistics() + query * layout.per_query()]);
    }
  }

  std::size_t replicates() const { return replicates_; }
  std::size_t heads() const { return static_cast<std::size_t>(layout_.heads); }
  double estimate(std::size_t r, std::size_t h) const { return rows_[r][h]; }
  double sum(std::size_t r, std::size_t h) const { return rows_[r][layout_.control_offset() + h]; }
  double noise(std::size_t r, std::size_t h, std::size_t l) const {
    return rows_[r][layout_.noise_offset() + layout_.pair(h, l)];
  }

  /// Mean of the squared estimates.
  double mean_square() const {
    double sum = 0;
    for (std::size_t r = 0; r < replicates_; ++r) {
      for (std::size_t h = 0; h < heads(); ++h) sum += estimate(r, h) * estimate(r, h);
    }
    return sum / static_cast<double>(replicates_ * heads());
  }

  /// True where two heads have the same numbers in every replicate.
  bool alike(std::size_t h, std::size_t l) const {
    for (std::size_t r = 0; r < replicates_; ++r) {
      if (estimate(r, h) != estimate(r, l) || sum(r, h) != sum(r, l) ||
          noise(r, h, h) != noise(r, l, l) ||
          noise(r, h, h) != noise(r, std::min(h, l), std::max(h, l))) {
        return false;
      }
    }
    return true;
  }

 private:
  const MomentLayout& layout_;
  std::size_t replicates_;
  std::vector<const double*> rows_;
};

/// The numbers of the first head that is like each.
std::vector<std::uint32_t> like_heads(const QueryPilot& pilot) {
  std::vector<std::uint32_t> like(pilot.heads());
  for (std::size_t h = 0; h < like.size(); ++h) {
    like[h] = static_cast<std::uint32_t>(h);
    for (std::uint32_t l = 0; l < h && like[h] == h; ++l) {
      if (like[l] == l && pilot.alike(l, h)) like[h] = l;
    }
  }
  return like;
}

/// What a pilot says of one adjustment: of what it is and of what it leaves.
struct FittedAdjustment {
  std::vector<double> coefficients;
  std::vector<double> adjustments;  ///< [replicates]
  Spread adjustment;
  double variance_before = 0, variance_after = 0;
  double rounding = 0;  ///< bound of the error that all replicates may share

  bool adjusts() const { return adjustment.sd > 0; }

  /// Least and most replicates of a run that uses it.
  std::pair<double, double> range() const {
    if (!adjusts()) return {0, std::numeric_limits<double>::infinity()};
    const double skewness = adjustment.skewness / max_mean_skewness;
    // A standard error of as many roundings as are printed with it, and those without controls.
    const double rounding_error = rounding_errors * rounding;
    const double most =
        (variance_before / min_control_gain - variance_after) / (rounding_error * rounding_error);
    return {skewness * skewness, std::isnan(most) ? 0 : std::max(most, 0.0)};
  }
};

/// Fits the controls of one query.
class QueryFit {
 public:
  /// \param controls with means, and which heads are alike \param rounding of kernel sums [H]
  /// \param regression_size of values that estimates are means of
  QueryFit(const Controls& controls, const QueryPilot& pilot, const MomentLayout& layout,
           std::size_t query, std::span<const SumRounding> rounding, double regression_size)
      : layout_(layout),
        means_of_(controls.means),
        pilot_(pilot),
        of_(controls, layout_, query),
        query_(query),
        rounding_(rounding),
        regression_size_(regression_size) {
    estimate_means_.resize(pilot.heads());
    for (std::size_t h = 0; h < pilot.heads(); ++h) {
      for (std::size_t r = 0; r < pilot.replicates(); ++r) {
        estimate_means_[h] += pilot.estimate(r, h) / static_cast<double>(pilot.replicates());
      }
    }
  }

  FittedAdjustment of_estimate(std::size_t h) const {
    const std::size_t at = (query_ * pilot_.heads() + h) * estimate_controls;
    std::vector<ControlSample> samples =
        samples_of<estimate_controls>(unbounded_estimate_controls, means_of_.estimate_errors, at);
    std::vector<double> y(pilot_.replicates());
    for (std::size_t r = 0; r < y.size(); ++r) {
      const HeadNumbers of = numbers(r, h, 1, 0);
      y[r] = pilot_.estimate(r, h);
      add(of_.of_estimate(h, of), samples);
      const double size = estimate_size(r, h) * of.sum;
      const std::array<double, estimate_controls> scales = {
          of.sum, size, 1, 1, 1, size * of.falls[0], size * of.falls[1], size * of.falls[2]};
      add_scales(scales, rounding_[h].coarseness, samples);
    }
    FittedAdjustment fit =
        fitted<estimate_controls>(y, samples, max_rest_kurtosis, choices_of_estimate);
    if (!fit.adjusts()) return fit;
    const auto adjustment = [&](std::size_t r, double sum_factor, double shift) {
      return -controlled(0, fit.coefficients.data(),
                         of_.of_estimate(h, numbers(r, h, sum_factor, shift)));
    };
    add_rounding(fit, [&](std::size_t r, double step) {
      const double at_r = adjustment(r, 1, 0);
      const double step_h = step * rounding_[h].bound;
      return std::abs(adjustment(r, 1 + step_h, 0) - at_r) +
             std::abs(adjustment(r, 1, step_h * estimate_size(r, h)) - at_r);
    });
    return fit;
  }

  /// Of heads h <= l, neither of them like one before.
  FittedAdjustment of_noise(std::size_t h, std::size_t l) const {
    const std::size_t at = of_.pair(h, l) * noise_controls;
    std::vector<ControlSample> samples =
        samples_of<noise_controls>(unbounded_noise_controls, means_of_.noise_errors, at);
    std::vector<double> y(pilot_.replicates());
    for (std::size_t r = 0; r < y.size(); ++r) {
      const HeadNumbers of_h = numbers(r, h, 1, 0), of_l = numbers(r, l, 1, 0);
      const double noise = pilot_.noise(r, h, l);
      y[r] = noise + (pilot_.estimate(r, h) - estimate_means_[h]) *
                         (pilot_.estimate(r, l) - estimate_means_[l]);
      add(of_.of_noise(h, l, noise, of_h, of_l), samples);
      const double p = noise * of_h.sum * of_l.sum;
      std::array<double, noise_controls> scales = {
          of_h.sum, of_l.sum, p, estimate_size(r, h) * of_h.sum * estimate_size(r, l) * of_l.sum,
          1,        1,        1, 1,
          1,        1};
      for (std::size_t j = 0; j < control_tilts.size(); ++j) {
        scales[10 + j] = p * of_h.falls[j] * (h == l ? 1 : of_l.falls[j]);
      }
      add_scales(scales, std::max(rounding_[h].coarseness, rounding_[l].coarseness), samples);
    }
    FittedAdjustment fit = fitted<noise_controls>(
        y, samples, any_kurtosis, h == l ? choices_of_variance : choices_of_covariance);
    if (!fit.adjusts()) return fit;
    const auto adjustment = [&](std::size_t r, double factor, const HeadNumbers& of_h,
                                const HeadNumbers& of_l) {
      return -controlled(0, fit.coefficients.data(),
                         of_.of_noise(h, l, factor * pilot_.noise(r, h, l), of_h, of_l));
    };
    add_rounding(fit, [&](std::size_t r, double step) {
      const HeadNumbers of_h = numbers(r, h, 1, 0), of_l = numbers(r, l, 1, 0);
      const double at_r = adjustment(r, 1, of_h, of_l);
      const double step_h = step * rounding_[h].bound, step_l = step * rounding_[l].bound;
      const double shift_h = step_h * estimate_size(r, h), shift_l = step_l * estimate_size(r, l);
      // One head is off in both places.
      const auto moved = [&](const HeadNumbers& new_h, const HeadNumbers& new_l) {
        return std::abs(adjustment(r, 1, new_h, new_l) - at_r);
      };
      double sum = std::abs(adjustment(r, 1 + step_h + step_l, of_h, of_l) - at_r);
      if (h == l) {
        const HeadNumbers sums = numbers(r, h, 1 + step_h, 0), shifted = numbers(r, h, 1, shift_h);
        return sum + moved(sums, sums) + moved(shifted, shifted);
      }
      sum += moved(numbers(r, h, 1 + step_h, 0), of_l) + moved(numbers(r, h, 1, shift_h), of_l);
      return sum + moved(of_h, numbers(r, l, 1 + step_l, 0)) +
             moved(of_h, numbers(r, l, 1, shift_l));
    });
    return fit;
  }

  /// Cov(mu_h, mu_l) less the covariance of what is subtracted from them.
  double covariance_left(std::size_t h, std::size_t l, std::span<const double> of_h,
                         std::span<const double> of_l) const {
    const auto count = static_cast<double>(pilot_.replicates());
    const double mean_h = std::accumulate(of_h.begin(), of_h.end(), 0.0) / count;
    const double mean_l = std::accumulate(of_l.begin(), of_l.end(), 0.0) / count;
    double sum = 0;
    for (std::size_t r = 0; r < pilot_.replicates(); ++r) {
      sum += (pilot_.estimate(r, h) - estimate_means_[h]) *
                 (pilot_.estimate(r, l) - estimate_means_[l]) -
             (of_h[r] - mean_h) * (of_l[r] - mean_l);
    }
    return sum / (count - 1);
  }

 private:
  /// Of a head in a replicate, with another sum and estimate.
  HeadNumbers numbers(std::size_t r, std::size_t h, double sum_factor, double shift) const {
    return of_.numbers(h, pilot_.estimate(r, h) + shift, pilot_.sum(r, h) * sum_factor);
  }
  /// What the rounding of mu_h - r_h is relative to: a quarter of the values that it is a mean of,
  /// whose roundings differ.
  double estimate_size(std::size_t r, std::size_t h) const {
    // Below the least normal number nothing is left, so that it is as if that were rounded.
    constexpr double least =
        std::numeric_limits<float>::min() / std::numeric_limits<float>::epsilon();
    return estimate_rounding_share *
           (regression_size_ + std::abs(pilot_.estimate(r, h)) +
            std::abs(means_of_.estimate[query_ * pilot_.heads() + h]) + least);
  }

  template <std::size_t Count>
  std::vector<ControlSample> samples_of(std::size_t unbounded, const std::vector<double>& errors,
                                        std::size_t at) const {
    std::vector<ControlSample> samples(Count);
    for (std::size_t c = 0; c < Count; ++c) {
      samples[c].numbers.reserve(pilot_.replicates());
      samples[c].error = errors.empty() ? 0 : errors[at + c];
      samples[c].max_kurtosis = c < unbounded ? max_kurtosis : max_bounded_kurtosis;
    }
    return samples;
  }
  template <std::size_t Count>
  static void add(const ControlValues<Count>& controls, std::vector<ControlSample>& samples) {
    for (std::size_t c = 0; c < Count; ++c) samples[c].numbers.push_back(controls[c]);
  }
  template <std::size_t Count>
  void add_scales(const std::array<double, Count>& sizes, double coarseness,
                  std::vector<ControlSample>& samples) const {
    for (std::size_t c = 0; c < Count; ++c) {
      samples[c].scale +=
          coarseness * std::abs(sizes[c]) / static_cast<double>(pilot_.replicates());
    }
  }

  template <std::size_t Count>
  FittedAdjustment fitted(const std::vector<double>& y, const std::vector<ControlSample>& samples,
                          double rest_kurtosis, const Choices& choices) const {
    FittedAdjustment fit{.coefficients = fit_controls(y, samples, rest_kurtosis, choices)};
    std::vector<double> rests;
    for (std::size_t r = 0; r < y.size(); ++r) {
      ControlValues<Count> controls;
      for (std::size_t c = 0; c < Count; ++c) controls[c] = samples[c].numbers[r];
      fit.adjustments.push_back(-controlled(0, fit.coefficients.data(), controls));
      rests.push_back(y[r] - fit.adjustments.back());
    }
    fit.adjustment = spread_of(fit.adjustments);
    const auto variance = [](const Spread& spread) { return spread.sd * spread.sd; };
    fit.variance_before = variance(spread_of(y));
    fit.variance_after = variance(spread_of(rests));
    for (std::size_t c = 0; c < Count; ++c) {
      if (fit.coefficients[c] != 0) {
        fit.rounding += std::abs(fit.coefficients[c]) * samples[c].error;
      }
    }
    return fit;
  }

  /// \param moved |change| of the adjustment in a replicate, if sums are off by `step` roundings
  template <class Moved>
  void add_rounding(FittedAdjustment& fit, const Moved& moved) const {
    // Far above the rounding of the adjustment itself, and small.
    constexpr double step = 1e2;
    for (std::size_t r = 0; r < pilot_.replicates(); ++r) {
      fit.rounding += moved(r, step) / step / static_cast<double>(pilot_.replicates());
    }
  }

  const MomentLayout& layout_;
  const ControlMeans& means_of_;
  const QueryPilot& pilot_;
  const QueryControls of_;
  std::size_t query_;
  std::span<const SumRounding> rounding_;  ///< [H]
  double regression_size_;
  std::vector<double> estimate_means_;  ///< [H]
};

void append(std::vector<double>& all, const std::vector<double>& numbers) {
  all.insert(all.end(), numbers.begin(), numbers.end());
}

/// Root mean square of the estimates of all heads and queries.
double regression_size(const MomentLayout& layout, std::span<const double> statistics) {
  const auto queries = static_cast<std::size_t>(layout.queries);
  double mean_square = 0;
  for (std::size_t q = 0; q < queries; ++q) {
    mean_square += QueryPilot(layout, statistics, q).mean_square() / static_cast<double>(queries);
  }
  return std::sqrt(mean_square);
}

/// Adds what a query has.
/// \param roundings [H]
void fit_query(const Plan& plan, std::span<const double> statistics, std::size_t q,
               std::span<const SumRounding> roundings, double regression_size,
               FoundControls& found) {
  const MomentLayout layout = plan.layout();
  const QueryPilot pilot(layout, statistics, q);
  const std::size_t heads = pilot.heads();
  Controls& controls = found.controls;
  const std::vector<std::uint32_t> like = like_heads(pilot);
  controls.alike.insert(controls.alike.end(), like.begin(), like.end());
  const QueryFit fit(controls, pilot, layout, q, roundings, regression_size);

  double least = 0, most = std::numeric_limits<double>::infinity();
  bool adjusts = false;
  std::vector<FittedAdjustment> of_heads;
  for (std::size_t h = 0; h < heads; ++h) {
    of_heads.push_back(fit.of_estimate(h));
    const FittedAdjustment& one = of_heads.back();
    adjusts = adjusts || one.adjusts();
    append(controls.of_estimates, one.coefficients);
    controls.use.estimate_rounding.push_back(one.rounding);
    found.estimate_sd.push_back(one.adjustment.sd);
    found.estimate_skewness.push_back(one.adjustment.skewness);
    const auto [from, to] = one.range();
    least = std::max(least, from);
    most = std::min(most, to);
  }
  if (!adjusts) most = -1;
  append(controls.use.estimates, {least, most});

  std::vector<FittedAdjustment> of_pairs;
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t l = h; l < heads; ++l) {
      controls.use.covariance_left.push_back(
          fit.covariance_left(h, l, of_heads[h].adjustments, of_heads[l].adjustments));
      const std::size_t a = std::min(like[h], like[l]), b = std::max(like[h], like[l]);
      // Pairs like it come first.
      of_pairs.push_back(a == h && b == l ? fit.of_noise(h, l) : of_pairs[layout.pair(a, b)]);
      const FittedAdjustment& one = of_pairs.back();
      append(controls.of_noise, one.coefficients);
      controls.use.noise_rounding.push_back(one.rounding);
      found.noise_sd.push_back(one.adjustment.sd);
      found.noise_skewness.push_back(one.adjustment.skewness);
      const auto [from, to] = one.range();
      append(controls.use.noise, {from, to});
    }
  }
}

}  // namespace

double kernel_sum_rounding(const Backend& backend, double log_scale, std::uint64_t n) {
  const double exponent = log_scale - std::log(static_cast<double>(n));
  return (backend.name() == "reference" ? float64_rounding : float32_rounding) *
         std::max(1.0, std::abs(exponent) / plain_exponent);
}

bool pilot_needs_cpu(const Backend& backend) {
  return backend.name() != "reference" && backend.name() != "cpu";
}

std::vector<SumRounding> sum_roundings(const Backend& backend, const Plan& plan,
                                       std::span<const double> statistics) {
  const ControlMeans& means = plan.controls->means;
  const auto heads = static_cast<std::size_t>(plan.heads);
  std::vector<SumRounding> roundings;
  for (const double log_scale : means.log_scale) {
    roundings.push_back({.bound = kernel_sum_rounding(backend, log_scale, plan.n)});
  }
  if (!pilot_needs_cpu(backend)) return roundings;
  const MomentLayout layout = plan.layout();
  const std::size_t count =
      std::min<std::size_t>(compared_replicates, statistics.size() / layout.statistics());
  std::vector<Moments> of_cpu(count);
  make_backend("cpu")->worker(plan)->run({.first = 0, .count = count, .node = 1}, of_cpu);
  std::vector<double> compared;
  for (const Moments& one : of_cpu) append(compared, one.mean);
  const double size = regression_size(layout, statistics);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    const QueryPilot pilot(layout, statistics, q), exact(layout, compared, q);
    for (std::size_t h = 0; h < heads; ++h) {
      // Means of |difference|, in roundings of kernel sums: what replicates share is in them.
      double of_sum = 0, of_estimate = 0;
      std::vector<double> of_noise(heads);
      for (std::size_t r = 0; r < count; ++r) {
        const auto share = [&](double difference, double scale) {
          if (difference == 0) return 0.0;
          const double of_mean = std::abs(difference) / scale / static_cast<double>(count);
          return of_mean >= 0 ? of_mean : std::numeric_limits<double>::infinity();
        };
        const auto noise = [&](const QueryPilot& of, std::size_t g, std::size_t l) {
          return of.noise(r, std::min(g, l), std::max(g, l));
        };
        of_sum += share(pilot.sum(r, h) - exact.sum(r, h), exact.sum(r, h));
        of_estimate += share(pilot.estimate(r, h) - exact.estimate(r, h),
                             estimate_rounding_share * (size + std::abs(exact.estimate(r, h))));
        for (std::size_t l = 0; l < heads; ++l) {
          // Either head has its share.
          of_noise[l] +=
              share(noise(pilot, h, l) - noise(exact, h, l),
                    2 * (noise(exact, h, l) +
                         min_product * std::sqrt(noise(exact, h, h) * noise(exact, l, l))));
        }
      }
      SumRounding& rounding = roundings[q * heads + h];
      const double more = std::max({of_sum, of_estimate, *std::ranges::max_element(of_noise)});
      rounding.coarseness += more / rounding.bound;
      rounding.bound += more;
    }
  }
  return roundings;
}

ControlCost control_cost(const Condition& condition) {
  if (!std::holds_alternative<ExactControls>(*condition.controls)) return {};
  // Of a query with eight heads, 36 pairs; most of it grows with the pairs.
  constexpr double seconds = 0.1, bytes = 4e6, pairs = 36;
  const MomentLayout layout = layout_of(condition);
  const double size = static_cast<double>(layout.queries) *
                      std::max(1.0, static_cast<double>(layout.pairs()) / pairs);
  return {seconds * size, bytes * size};
}

Plan control_pilot_plan(const Condition& condition, const Preparation& found,
                        const ControlMeans& means) {
  const auto& law = std::get<ExactControls>(*condition.controls);
  Condition pilot = condition;
  pilot.seed = law.seed;
  Plan plan = drawn_from(make_plan(pilot, found), control_streams);
  plan.controls = std::make_shared<const Controls>(Controls{.means = means});
  return plan;
}

bool find_controls(const Condition& condition, Preparation& found, const Session& session) try {
  const auto* law = std::get_if<ExactControls>(&*condition.controls);
  if (law == nullptr) return true;
  if (!session.control_means) {
    reject(condition, "run.controls", "is \"exact\", which this command does not compute");
  }
  const Stopwatch watch;
  const StopScope scope(session.stop_hook());
  const Plan without = make_plan(condition, found);
  auto controls = std::make_shared<FoundControls>();
  const std::function<void(double)> tell = session.stage("means of controls");
  controls->controls.means = session.control_means(condition, without, [&](double share) {
    if (tell) tell(share);
    return !session.should_stop();
  });
  if (controls->controls.means.log_scale.empty()) return false;
  const Plan plan = control_pilot_plan(condition, found, controls->controls.means);
  const std::vector<double> statistics = replicates_of(plan, law->pilot, session);
  const MomentLayout layout = plan.layout();
  const std::vector<SumRounding> roundings = sum_roundings(*session.backend, plan, statistics);
  const auto heads = static_cast<std::size_t>(plan.heads);
  const double size = regression_size(layout, statistics);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    fit_query(plan, statistics, q, std::span(roundings).subspan(q * heads, heads), size, *controls);
  }
  controls->replicates = law->pilot;
  controls->seconds = watch.seconds();
  found.controls = std::move(controls);
  return true;
} catch (const WorkStopped&) {
  return false;
}

}  // namespace headlab
