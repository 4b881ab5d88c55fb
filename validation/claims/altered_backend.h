// SPDX-License-Identifier: Apache-2.0
/// \file A world that no scenario describes: the reference backend, with every training set and its
/// heads altered before the weights are taken.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "kernels/host.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"
#include "kernels/replicate_worker.h"
#include "kernels/sequential_worker.h"

namespace headlab {

/// Alters the plan and the training set of one replicate, as a function of the replicate's number
/// and the plan's seed alone. Heads, weights, mode and estimator must stay as many and as they are.
using Alteration = std::function<void(std::uint64_t replicate, Plan& plan, TrainingSet& sample)>;

class AlteredBackend : public Backend {
 public:
  explicit AlteredBackend(Alteration alteration) : alteration_(std::move(alteration)) {}

  std::string name() const override { return "reference"; }
  std::string simd() const override { return "none"; }
  std::string device() const override { return processor_name(); }
  int workers(int threads) const override { return threads; }
  std::uint64_t worker_bytes(Plans plans) const override {
    return make_reference_backend()->worker_bytes(plans);
  }
  std::unique_ptr<Worker> worker(Plans plans) const override {
    return make_sequential_worker(plans, [&](const Plan& plan) {
      return std::make_unique<AlteredWorker>(plan, alteration_);
    });
  }

 private:
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
    const Alteration& alteration_;
  };

  Alteration alteration_;
};

}  // namespace headlab
