// SPDX-License-Identifier: Apache-2.0
/// \file Simulations that no scenario describes: backends whose replicates a claim makes itself.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "kernels/plan.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"
#include "kernels/replicate_worker.h"

namespace headlab {

/// A backend that is `inner` but for its workers.
class ReplicateBackend : public Backend {
 public:
  using MakeWorker = std::function<std::unique_ptr<Worker>(const Plan&)>;
  /// \param inner outlives it
  ReplicateBackend(const Backend& inner, MakeWorker make) : inner_(inner), make_(std::move(make)) {}

  std::string name() const override { return inner_.name(); }
  std::string simd() const override { return inner_.simd(); }
  std::string device() const override { return inner_.device(); }
  int workers(int threads) const override { return inner_.workers(threads); }
  std::uint64_t worker_bytes(Plans plans) const override { return inner_.worker_bytes(plans); }
  std::unique_ptr<Worker> worker(Plans plans) const override { return make_(only_plan(plans)); }

 private:
  const Backend& inner_;
  MakeWorker make_;
};

/// Alters the plan and the training set of one replicate before the weights are taken, as a
/// function of the replicate's number and the plan's seed alone. Heads, weights, mode and estimator
/// must stay as many and as they are.
using Alteration = std::function<void(std::uint64_t replicate, Plan& plan, TrainingSet& sample)>;

class AlteredWorker : public ReplicateWorker {
 public:
  AlteredWorker(const Plan& plan, const Alteration& alteration)
      : ReplicateWorker({plan.layout()}), plan_(plan), alteration_(alteration) {}

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows) override {
    Plan altered = plan_;
    TrainingSet sample = draw_training_set(plan_, number);
    alteration_(number, altered, sample);
    std::ranges::copy(reference_statistics(altered, sample, windows[0]), statistics[0].begin());
  }

 private:
  const Plan& plan_;
  const Alteration alteration_;
};

/// The reference backend with every training set and its heads altered.
inline ReplicateBackend altered_backend(const Alteration& alteration) {
  static const std::unique_ptr<const Backend> reference = make_reference_backend();
  return {*reference, [alteration](const Plan& plan) {
            return std::make_unique<AlteredWorker>(plan, alteration);
          }};
}

}  // namespace headlab
