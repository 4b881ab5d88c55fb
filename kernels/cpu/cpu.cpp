// SPDX-License-Identifier: Apache-2.0
// Compiled once for each SIMD target that Highway knows here: the part between HWY_BEFORE_NAMESPACE
// and HWY_AFTER_NAMESPACE once each, the rest once.
#include "kernels/cpu/cpu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "kernels/design_point.h"
#include "kernels/replicate_worker.h"

// AVX-512 and AVX2, and a portable fallback; what lies between gains little.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cpu.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/aligned_allocator.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

#include "kernels/cpu/lanes-inl.h"
//
#include "kernels/kernel_laws.inc"
//
#include "kernels/cpu/training_set-inl.h"
//
#include "kernels/cpu/ensemble-inl.h"

template <class Law>
class CpuWorker : public ReplicateWorker {
 public:
  CpuWorker(const Plan& plan, const Law& law)
      : ReplicateWorker(plan.layout()), plan_(plan), set_(plan), loop_(plan, law) {}

 protected:
  void replicate(std::uint64_t number, std::span<double> statistics,
                 WindowCounts& windows) override {
    set_.draw(number);
    loop_.replicate(set_, statistics, windows);
  }

 private:
  const Plan& plan_;
  TrainingSet set_;
  EnsembleLoop<Law> loop_;
};

/// The worker for the plan's kernel law. This target's own law has the members of the plan's.
template <std::size_t Index = 0>
std::unique_ptr<Worker> make_worker_for(const Plan& plan) {
  if constexpr (Index < std::variant_size_v<KernelLaw>) {
    if (plan.kernel.index() != Index) return make_worker_for<Index + 1>(plan);
    using Law = std::variant_alternative_t<Index, KernelLaw>;
    return std::make_unique<CpuWorker<Law>>(
        plan, __builtin_bit_cast(Law, *std::get_if<Index>(&plan.kernel)));
  } else {
    return nullptr;
  }
}

std::unique_ptr<Worker> make_worker(const Plan& plan) {
  return make_worker_for<>(plan);
}

std::vector<float> draw_design(const Plan& plan, std::uint64_t replicate) {
  TrainingSet set(plan);
  const auto d = static_cast<std::size_t>(plan.d);
  std::vector<float> x;
  for (std::size_t i = 0; i < static_cast<std::size_t>(plan.n); ++i) {
    if (i % tile_points == 0) set.draw_points(replicate, i / tile_points);
    for (std::size_t c = 0; c < d; ++c) {
      x.push_back(set.point()[c].v[i % tile_points]);
    }
  }
  return x;
}

HWY_ATTR void exp2_array(const float* t, float* out, std::size_t count) {
  float buffer[lane_count];
  for (std::size_t i = 0; i < count; i += lane_count) {
    const std::size_t part = std::min(lane_count, count - i);
    std::copy_n(t + i, part, buffer);
    hn::StoreU(exp2(hn::LoadU(float_tag, buffer)), float_tag, buffer);
    std::copy_n(buffer, part, out + i);
  }
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab {
namespace {

HWY_EXPORT(make_worker);
HWY_EXPORT(draw_design);
HWY_EXPORT(exp2_array);

class CpuBackend : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::string simd() const override { return cpu_simd_name(cpu_targets().front()); }
  std::string device() const override { return processor_name(); }
  int workers(int threads) const override { return threads; }
  std::uint64_t worker_bytes(const Plan& plan) const override {
    const std::uint64_t points = (plan.n + tile_points - 1) / tile_points * tile_points;
    const auto heads = static_cast<std::uint64_t>(plan.heads);
    const auto k = static_cast<std::uint64_t>(plan.k);
    const std::uint64_t set = 4 * points * (heads * k + heads + 2);
    const std::uint64_t loop = 4 * 4 * heads * 256 + 4 * 16 * plan.layout().pairs();
    return set + loop + 8 * leaf_replicates * plan.layout().statistics();
  }
  std::unique_ptr<Worker> worker(const Plan& plan) const override {
    return HWY_DYNAMIC_DISPATCH(make_worker)(plan);
  }
};

}  // namespace

std::vector<std::int64_t> cpu_targets() {
  return hwy::SupportedAndGeneratedTargets();
}

std::string cpu_simd_name(std::int64_t target) {
  switch (target) {
    case HWY_AVX3:
      return "AVX-512";
    case HWY_AVX2:
      return "AVX2";
    default:
      return hwy::TargetName(target);
  }
}

std::unique_ptr<Backend> make_cpu_backend() {
  // Chosen here, once, rather than by whichever thread comes first.
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return std::make_unique<CpuBackend>();
}

std::vector<float> draw_design_cpu(const Plan& plan, std::uint64_t replicate) {
  return HWY_DYNAMIC_DISPATCH(draw_design)(plan, replicate);
}

void exp2_cpu(const float* t, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(exp2_array)(t, out, count);
}

}  // namespace headlab
#endif  // HWY_ONCE
