// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/backend.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/host.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"
#include "kernels/replicate_worker.h"
#include "kernels/stack/worker.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

class ReferenceWorker : public ReplicateWorker {
 public:
  explicit ReferenceWorker(Plans plans)
      : ReplicateWorker(plans), plans_(plans.begin(), plans.end()) {}

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows) override {
    const TrainingSet sample = draw_training_set(*plans_[0], number);
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      const WorkPart part = WorkPart::number(p, plans_.size());
      std::ranges::copy(reference_statistics(*plans_[p], sample, windows[p], &sample_sizes()[p]),
                        statistics[p].begin());
    }
  }

 private:
  std::vector<const Plan*> plans_;
};

class ReferenceBackend : public Backend {
 public:
  std::string name() const override { return "reference"; }
  std::string simd() const override { return "none"; }
  std::string device() const override { return processor_name(); }
  int workers(int) const override { return 1; }
  std::size_t plans_together() const override { return 16; }
  std::uint64_t worker_bytes(Plans plans) const override {
    if (plans[0]->stack) return stack_worker_bytes(plans);
    // The sample, and the weights of the plan under way.
    std::uint64_t columns = 0;
    std::uint64_t leaves = 0;
    for (const Plan* plan : plans) {
      const auto d = static_cast<std::uint64_t>(plan->d);
      const std::uint64_t levels = plan->mechanism.levels.weights.size();
      columns = std::max(columns, (1 + levels) * d + 8 + static_cast<std::uint64_t>(plan->heads));
      leaves += plan->layout().statistics() * 8 * leaf_replicates;
    }
    return plans[0]->n * 8 * columns + leaves;
  }
  std::unique_ptr<Worker> worker(Plans plans) const override {
    if (plans[0]->stack) return make_stack_worker(plans);
    return std::make_unique<ReferenceWorker>(plans);
  }
  std::unique_ptr<HeadGradients> head_gradients(const KernelLaw& kernel, int) const override {
    return make_reference_gradients(kernel);
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace headlab
