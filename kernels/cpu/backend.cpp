// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/backend.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <stdexcept>

#include "kernels/cpu/targets.h"
//
#include <hwy/targets.h>

#include "kernels/cpu/stack_arithmetic.h"
#include "kernels/cpu/tiling.h"
#include "kernels/cpu/worker.h"
#include "kernels/host.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#include "kernels/replicate_worker.h"
#include "kernels/stack/worker.h"

namespace headlab {
namespace {

/// What stage `keep` holds of every window.
std::uint64_t selection_bytes(const Plan& plan) {
  const Keep& keep = plan.mechanism.keep;
  std::uint64_t bytes = 0;
  for (int h = 0; !keep.off() && h < plan.heads; ++h) {
    const std::uint64_t kept = keep.of_head(h).top;
    if (keep.rule == Keep::Rule::top) bytes += kept > max_listed ? 16384 : 4 * (4 * kept + 256);
    // A list that doubles to make room.
    if (keep.rule == Keep::Rule::block) bytes += 40 * (2 * kept + 64);
    bytes += 256;
  }
  return bytes * static_cast<std::uint64_t>(plan.queries);
}

/// Those of the machine, the fastest first, which has the smallest code. Asked once: Highway
/// dispatches to the fastest of all whenever it is asked.
const std::vector<std::int64_t>& machine_targets() {
  static const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  return targets;
}

/// What use_cpu_target chose; 0: the fastest that there is.
std::atomic<std::int64_t> chosen_target = 0;

std::int64_t target_in_use() {
  const std::int64_t chosen = chosen_target;
  return chosen != 0 ? chosen : cpu_targets().front();
}

/// Has every later call of a function for several targets use this one.
void dispatch_to(std::int64_t target) {
  machine_targets();
  hwy::GetChosenTarget().Update(target);
}

class CpuBackend : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::string simd() const override { return cpu_simd_name(target_in_use()); }
  std::string device() const override { return processor_name(); }
  int workers(int threads) const override { return threads; }
  std::size_t plans_together() const override { return 16; }
  std::uint64_t worker_bytes(Plans plans) const override {
    if (plans[0]->stack) return stack_worker_bytes(plans);
    // As if no two conditions had a head in common, with the widest vectors.
    const auto d = static_cast<std::uint64_t>(plans[0]->d);
    std::uint64_t point = 2;  // floats
    std::uint64_t bytes = 128 * (d + 3);
    for (const Plan* plan : plans) {
      const auto heads = static_cast<std::uint64_t>(plan->heads);
      const auto k = static_cast<std::uint64_t>(plan->k);
      const auto windows = heads * static_cast<std::uint64_t>(plan->queries);
      const bool conditional = plan->estimator == Estimator::conditional;
      const auto levels = static_cast<std::uint64_t>(plan->mechanism.levels.weights.size());
      point += heads * ((plan->mechanism.keep.pooled ? 1 + levels : 1) * k + (levels > 0 ? 2 : 1));
      const std::uint64_t min_weights = 8 * 256 * (conditional ? heads : 1);
      bytes += 12 * heads * k * d + windows * (12 * k + 440) +
               4 * std::max<std::uint64_t>(l2_weights, min_weights) +
               8 * leaf_replicates * plan->layout().statistics();
      bytes += selection_bytes(*plan);
      if (!conditional) continue;
      const std::uint64_t pairs = heads * (heads + 1) / 2;
      const std::uint64_t batch = std::min(static_cast<std::uint64_t>(plan->queries),
                                           std::max<std::uint64_t>(max_running_pairs / pairs, 8));
      bytes += 8 * windows * (heads + 1) + 2 * 64 * batch * (pairs + 1);
    }
    // Where heads are shared a point takes less, and a slab holds more points.
    const std::uint64_t slab = std::max(4 * point * slab_step, max_slab_bytes);
    return bytes + std::min(slab, 4 * point * (plans[0]->n + tile_points));
  }
  std::unique_ptr<Worker> worker(Plans plans) const override {
    if (plans[0]->stack) {
      return make_stack_worker(plans, cpu_stack_arithmetic(), cpu_stack_tokens);
    }
    return make_cpu_worker(plans);
  }
  std::unique_ptr<HeadGradients> head_gradients(const KernelLaw& kernel,
                                                int threads) const override {
    return make_cpu_gradients(kernel, threads);
  }
};

}  // namespace

std::vector<std::int64_t> cpu_targets() {
  std::vector<std::int64_t> targets = machine_targets();
  const std::string widest = widest_simd();
  if (widest.empty()) return targets;
  const std::int64_t least = widest == "avx512" ? HWY_AVX3
                             : widest == "avx2" ? HWY_AVX2
                                                : targets.back();
  std::erase_if(targets, [&](std::int64_t target) { return target < least; });
  return targets;
}

std::string cpu_simd_name(std::int64_t target) {
  switch (target) {
    case HWY_AVX3:
      return "AVX-512";
    case HWY_AVX2:
      return "AVX2";
    case HWY_SCALAR:
    case HWY_EMU128:
      return "portable";
    default:
      return hwy::TargetName(target);
  }
}

void use_cpu_target(std::int64_t target) {
  chosen_target = target;
  dispatch_to(target_in_use());
}

void use_cpu_simd(const std::string& name) {
  const std::vector<std::int64_t> targets = cpu_targets();
  for (const std::int64_t target : targets) {
    if (cpu_simd_name(target) == name) return use_cpu_target(target);
  }
  throw std::invalid_argument("this machine has no " + name + ", " +
                              cpu_simd_name(targets.front()) + " at most");
}

std::unique_ptr<Backend> make_cpu_backend() {
  // Chosen here, once, rather than by whichever thread comes first.
  dispatch_to(target_in_use());
  return std::make_unique<CpuBackend>();
}

}  // namespace headlab
