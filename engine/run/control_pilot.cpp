// SPDX-License-Identifier: Apache-2.0
#include "engine/run/control_pilot.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "engine/moments/control_fit.h"
#include "engine/run/pilot.h"
#include "kernels/parallel_for.h"

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
template <std::size_t Count>
std::array<double, Count> kurtosis_limits(std::size_t unbounded) {
  std::array<double, Count> limits;
  limits.fill(max_bounded_kurtosis);
  std::fill_n(limits.begin(), unbounded, max_kurtosis);
  return limits;
}
const auto limits_of_estimate = kurtosis_limits<estimate_controls>(2);
const auto limits_of_noise = kurtosis_limits<noise_controls>(4);
static_assert(estimate_controls == 8 && noise_controls == 13);

/// Statistics of every replicate of a plan, [replicates][layout.statistics()]; empty where the
/// session stopped it.
std::vector<double> replicates_of(const Plan& plan, std::uint64_t replicates,
                                  const Session& session) {
  const std::size_t size = plan.layout().statistics();
  std::vector<double> all(replicates * size);
  const std::uint64_t blocks = (replicates + block_replicates - 1) / block_replicates;
  const int threads = session.backend->workers(thread_count(session.threads));
  const auto workers = static_cast<std::uint64_t>(
      std::max(1, std::min(threads, static_cast<int>(std::min<std::uint64_t>(blocks, 1024)))));
  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> stopped = false;
  parallel_for(workers, static_cast<int>(workers), [&](std::size_t) {
    const std::unique_ptr<Worker> worker = session.backend->worker(plan);
    for (std::uint64_t block = next++; block < blocks; block = next++) {
      if (stopped || session.should_stop()) {
        stopped = true;
        return;
      }
      const std::uint64_t first = block * block_replicates;
      const std::uint64_t count = std::min(block_replicates, replicates - first);
      std::vector<Moments> out(count);
      worker->run({.first = first, .count = count, .node = 1}, out);
      for (std::uint64_t r = 0; r < count; ++r) {
        std::ranges::copy(out[r].mean, &all[(first + r) * size]);
      }
    }
  });
  return stopped ? std::vector<double>() : all;
}

/// Fits the controls of one query.
class QueryFit {
 public:
  QueryFit(const Plan& plan, std::span<const double> statistics, std::size_t query)
      : layout_(plan.layout()),
        of_(*plan.controls, layout_, query),
        replicates_(statistics.size() / layout_.statistics()),
        heads_(static_cast<std::size_t>(layout_.heads)),
        rows_(replicates_) {
    for (std::size_t r = 0; r < replicates_; ++r) {
      rows_[r] = &statistics[r * layout_.statistics() + query * layout_.per_query()];
    }
    means_.resize(heads_);
    of_head_.resize(heads_ * replicates_);
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t r = 0; r < replicates_; ++r) {
        means_[h] += rows_[r][h] / static_cast<double>(replicates_);
        of_head_[h * replicates_ + r] =
            of_.numbers(h, rows_[r][h], rows_[r][layout_.control_offset() + h]);
      }
    }
  }

  void add_to(FoundControls& found) const {
    for (std::size_t h = 0; h < heads_; ++h) fit_estimate(h, found);
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t l = h; l < heads_; ++l) fit_noise(h, l, found);
    }
  }

 private:
  /// What coefficients subtract, in every replicate.
  template <std::size_t Count>
  static Spread adjustment(const std::vector<double>& coefficients,
                           const std::vector<std::array<double, Count>>& controls) {
    std::vector<double> all;
    all.reserve(controls.size());
    for (const auto& one : controls) all.push_back(-controlled(0, coefficients.data(), one));
    return spread_of(all);
  }
  template <std::size_t Count>
  static std::vector<std::vector<double>> columns(
      const std::vector<std::array<double, Count>>& controls) {
    std::vector<std::vector<double>> all(Count);
    for (std::size_t c = 0; c < Count; ++c) {
      for (const auto& one : controls) all[c].push_back(one[c]);
    }
    return all;
  }

  void fit_estimate(std::size_t h, FoundControls& found) const {
    std::vector<double> y(replicates_);
    std::vector<std::array<double, estimate_controls>> controls(replicates_);
    for (std::size_t r = 0; r < replicates_; ++r) {
      y[r] = rows_[r][h];
      controls[r] = of_.of_estimate(h, of_head_[h * replicates_ + r]);
    }
    const std::vector<double> fitted = fit_controls(y, columns(controls), limits_of_estimate,
                                                    max_rest_kurtosis, choices_of_estimate);
    found.controls.of_estimates.insert(found.controls.of_estimates.end(), fitted.begin(),
                                       fitted.end());
    const Spread spread = adjustment(fitted, controls);
    found.estimate_sd.push_back(spread.sd);
    found.estimate_skewness.push_back(spread.skewness);
  }

  void fit_noise(std::size_t h, std::size_t l, FoundControls& found) const {
    std::vector<double> y(replicates_);
    std::vector<std::array<double, noise_controls>> controls(replicates_);
    for (std::size_t r = 0; r < replicates_; ++r) {
      const double noise = rows_[r][layout_.noise_offset() + layout_.pair(h, l)];
      y[r] = noise + (rows_[r][h] - means_[h]) * (rows_[r][l] - means_[l]);
      controls[r] =
          of_.of_noise(h, l, noise, of_head_[h * replicates_ + r], of_head_[l * replicates_ + r]);
    }
    const std::vector<double> fitted =
        fit_controls(y, columns(controls), limits_of_noise, any_kurtosis,
                     h == l ? choices_of_variance : choices_of_covariance);
    found.controls.of_noise.insert(found.controls.of_noise.end(), fitted.begin(), fitted.end());
    const Spread spread = adjustment(fitted, controls);
    found.noise_sd.push_back(spread.sd);
    found.noise_skewness.push_back(spread.skewness);
  }

  const MomentLayout layout_;
  const QueryControls of_;
  std::size_t replicates_;
  std::size_t heads_;
  std::vector<const double*> rows_;   ///< statistics of the query in each replicate
  std::vector<double> means_;         ///< [H], of the estimates
  std::vector<HeadNumbers> of_head_;  ///< [H][replicates]
};

}  // namespace

Plan control_pilot_plan(const Condition& condition, const Preparation& found,
                        const ControlMeans& means) {
  const auto& law = std::get<ExactControls>(condition.controls);
  Condition pilot = condition;
  pilot.seed = law.seed;
  Plan plan = drawn_from(make_plan(pilot, found), control_streams);
  plan.controls = std::make_shared<const Controls>(Controls{.means = means});
  return plan;
}

bool find_controls(const Condition& condition, Preparation& found, const Session& session) {
  const auto* law = std::get_if<ExactControls>(&condition.controls);
  if (law == nullptr) return true;
  if (!session.control_means) {
    reject(condition, "run.controls", "is \"exact\", which this command does not compute");
  }
  const Stopwatch watch;
  const Plan without = make_plan(condition, found);
  auto controls = std::make_shared<FoundControls>();
  controls->controls.means = session.control_means(condition, without);
  const Plan plan = control_pilot_plan(condition, found, controls->controls.means);
  const std::vector<double> statistics = replicates_of(plan, law->pilot, session);
  if (statistics.empty()) return false;
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    QueryFit(plan, statistics, q).add_to(*controls);
  }
  controls->replicates = law->pilot;
  controls->seconds = watch.seconds();
  found.controls = std::move(controls);
  return true;
}

}  // namespace headlab
