// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/backend.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "kernels/cuda/head_gradients.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/stack/stack.h"
#include "kernels/cuda/stream_pool.h"
#include "kernels/cuda/worker.h"
#include "kernels/plan.h"
#include "kernels/replicate_worker.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Workers of a device, each with its own stream: while one of them draws, copies or synchronises,
/// the kernels of the other run.
constexpr int workers_of_device = 2;

/// True where the alignment is that of weights on responses: sums over tokens are, where groups of
/// points are complete, and those that the noise enters, where that has one scale for all points.
bool aligns_responses(const Plan& plan) {
  if (!plan.layout().has_alignment() || plan.mechanism.merge.last_share(plan.n) == 1) return true;
  return std::visit(
      [](const auto& noise) {
        if constexpr (requires { noise.sd; }) return noise.constant_scale && noise.sd > 0;
        return false;
      },
      *plan.noise);
}

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const Options& options) : options_(options), devices_(usable_devices()) {
    // The same limits for all, so that results do not depend on the device of a block.
    options_.limits.shared_bytes =
        std::min(options_.limits.shared_bytes, devices_.front().shared_memory);
  }

  std::string name() const override { return "cuda"; }
  std::string simd() const override { return cuda::sm_name(devices_.front().capability); }
  std::string device() const override {
    const std::string& model = devices_.front().name;
    return devices_.size() == 1 ? model : std::to_string(devices_.size()) + " x " + model;
  }
  int workers(int) const override { return workers_of_device * static_cast<int>(devices_.size()); }
  double block_work() const override { return 4e9; }

  std::vector<std::string> notes() const override {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

  std::uint64_t worker_bytes(Plans plans) const override {
    const Plan& plan = only_plan(plans);
    if (plan.stack) return cuda_stack_worker_bytes(plan);
    // On the host: the blocks in progress, each of up to 32 nodes, and the nodes that arrive.
    const MomentLayout layout = plan.layout();
    return 8 * (5 * 32 + 1) * static_cast<std::uint64_t>(layout.statistics() + layout.comoments());
  }

  std::unique_ptr<Worker> worker(Plans plans) const override {
    const Plan& plan = only_plan(plans);
    const int device = next_device();
    auto keep = [this](const std::string& note) {
      const std::lock_guard lock(mutex_);
      if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
    };
    if (!aligns_responses(plan)) {
      throw std::invalid_argument(
          "backend cuda computes no index of the weights where the last tokens of stage merge "
          "have fewer points and their noise varies - use --backend cpu, moments = \"aggregate\", "
          "or n that is a multiple of the stride");
    }
    if (plan.stack) return make_cuda_stack_worker(plan, device, options_, keep, streams_);
    return std::make_unique<CudaWorker>(plan, device, options_, keep, streams_);
  }

  std::unique_ptr<HeadGradients> head_gradients(const KernelLaw& kernel, int) const override {
    return make_cuda_gradients(kernel, next_device(), options_, streams_);
  }

 private:
  int next_device() const {
    return devices_[next_++ % static_cast<unsigned>(devices_.size())].number;
  }

  Options options_;
  std::vector<cuda::GpuStatus> devices_;
  std::shared_ptr<StreamPool> streams_ = std::make_shared<StreamPool>();
  mutable std::atomic<unsigned> next_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::string> notes_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const Options& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
