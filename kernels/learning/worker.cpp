// SPDX-License-Identifier: Apache-2.0
#include "kernels/learning/worker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/learning/fit.h"
#include "kernels/plan.h"
#include "kernels/reference/training_set.h"
#include "kernels/replicate_worker.h"

namespace headlab {
namespace {

bool learns(const Plan* plan) {
  return plan->learning.has_value();
}

void take_heads(Plan& plan, HeadParameters heads) {
  plan.projections = std::move(heads.keys);
  plan.query_projections = std::move(heads.queries);
  plan.head_weights = std::move(heads.weights);
}

class LearningWorker : public ReplicateWorker {
 public:
  LearningWorker(const Backend& backend, Plans plans, const std::function<bool()>& stop)
      : ReplicateWorker(plans), backend_(backend), hooks_{.stop = stop} {
    for (const Plan* plan : plans) {
      Ensemble& ensemble = ensembles_.emplace_back(Ensemble{*plan, plan->learning, nullptr});
      ensemble.plan.learning.reset();
      if (ensemble.learning) ensemble.gradients = backend.head_gradients(*plan->kernel, 1);
    }
  }

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows) override {
    const FitPoints points = fit_points(ensembles_[0].plan, number);
    for (std::size_t p = 0; p < ensembles_.size(); ++p) {
      Ensemble& ensemble = ensembles_[p];
      if (ensemble.learning) fit(ensemble, number, points);
      backend_.worker(ensemble.plan)->run({.first = number, .count = 1, .node = 1}, {&node_, 1});
      std::ranges::copy(node_.mean, statistics[p].begin());
      windows[p].add(node_.windows);
      take_sample_size(p);
      if (ensemble.learning && ensemble.learning->learns_weights) weigh(ensemble, statistics[p]);
    }
  }

 private:
  struct Ensemble {
    Plan plan;  ///< with the heads of the replicate in progress
    std::optional<Learning> learning;
    std::unique_ptr<HeadGradients> gradients;
  };

  void fit(Ensemble& ensemble, std::uint64_t number, const FitPoints& points) {
    std::optional<Fit> found =
        fit_heads(*ensemble.learning, number, points, *ensemble.gradients, hooks_);
    if (!found) throw WorkStopped();
    take_heads(ensemble.plan, std::move(found->heads));
  }

  void take_sample_size(std::size_t p) {
    if (!node_.extremes || !node_.extremes->min_sample_size) return;
    const std::vector<Extreme>& sizes = node_.extremes->min_sample_size->all();
    if (!sizes.empty()) sample_sizes()[p] = sizes.front().key;
  }

  static void weigh(const Ensemble& ensemble, std::span<double> statistics) {
    const MomentLayout layout = ensemble.plan.layout();
    for (int q = 0; q < layout.queries; ++q) {
      double* f = &statistics[static_cast<std::size_t>(q) * layout.per_query()];
      for (int h = 0; h < layout.heads; ++h) {
        f[h] *= layout.heads * ensemble.plan.head_weights[static_cast<std::size_t>(h)];
      }
    }
  }

  const Backend& backend_;
  FitHooks hooks_;
  std::vector<Ensemble> ensembles_;
  Moments node_;
};

}  // namespace

FitPoints fit_points(const Plan& plan, std::uint64_t replicate) {
  const TrainingSet sample = draw_training_set(plan, replicate);
  FitPoints points{.d = plan.d, .x = {}, .y = sample.regression};
  points.x.reserve(sample.x.size());
  for (const double x : sample.x) points.x.push_back(static_cast<float>(x));
  for (std::size_t i = 0; i < points.y.size(); ++i) points.y[i] += sample.noise[i];
  return points;
}

Plan learned_plan(const Backend& backend, const Plan& plan, std::uint64_t replicate,
                  const std::function<bool()>& stop) {
  Plan learned = plan;
  if (!plan.learning) return learned;
  learned.learning.reset();
  const auto gradients = backend.head_gradients(*plan.kernel, 1);
  std::optional<Fit> found =
      fit_heads(*plan.learning, replicate, fit_points(plan, replicate), *gradients, {.stop = stop});
  if (!found) throw WorkStopped();
  take_heads(learned, std::move(found->heads));
  return learned;
}

std::unique_ptr<Worker> make_worker(const Backend& backend, Plans plans,
                                    const std::function<bool()>& stop) {
  if (std::ranges::none_of(plans, learns)) return backend.worker(plans);
  return std::make_unique<LearningWorker>(backend, plans, stop);
}

std::uint64_t worker_bytes(const Backend& backend, Plans plans) {
  std::uint64_t bytes = backend.worker_bytes(plans);
  if (std::ranges::none_of(plans, learns)) return bytes;
  for (const Plan* plan : plans) {
    const auto heads = static_cast<std::uint64_t>(plan->heads);
    const auto d = static_cast<std::uint64_t>(plan->d);
    const auto k = static_cast<std::uint64_t>(plan->k);
    // The training set in float64 and as points, then the keys of all heads.
    bytes += plan->n * (20 * d + 40);
    if (plan->learning) {
      bytes += plan->n * 4 * heads * (k + 1) + static_cast<std::uint64_t>(plan->learning->batch) *
                                                   (4 * d + fit_sums_bytes(plan->heads, plan->k));
    }
  }
  return bytes;
}

double learning_work(const Plan& plan) {
  if (!plan.learning) return 0;
  // Every weight of a batch is needed for the estimates and once more for the gradient.
  return 2.0 * static_cast<double>(plan.learning->steps) * plan.learning->batch *
         static_cast<double>(plan.n) * plan.heads;
}

}  // namespace headlab
