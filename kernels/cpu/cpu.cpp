// SPDX-License-Identifier: Apache-2.0
// Compiled once for each SIMD target that Highway knows here: the part between HWY_BEFORE_NAMESPACE
// and HWY_AFTER_NAMESPACE once each, the rest once.
#include "kernels/cpu/cpu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/chunk.h"
#include "kernels/cpu/head_gradients.h"
#include "kernels/cpu/subnormals.h"
#include "kernels/cpu/tile_dot.h"
#include "kernels/design_point.h"
#include "kernels/replicate_worker.h"
#include "kernels/safe_sums.h"

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
#include "kernels/cpu/draws-inl.h"
//
#include "kernels/cpu/products-inl.h"
//
#include "kernels/cpu/training_set-inl.h"
//
#include "kernels/cpu/sums-inl.h"
//
#include "kernels/cpu/condition-inl.h"
//
#include "kernels/cpu/head-inl.h"
//
#include "kernels/cpu/ensemble-inl.h"

template <std::size_t Index = 0>
std::unique_ptr<Ensembles> make_ensembles(Plans plans, const std::vector<std::size_t>& members,
                                          PackedSubspaces& subspaces) {
  if constexpr (Index < std::variant_size_v<KernelLaw>) {
    if (plans[members.front()]->kernel.index() != Index) {
      return make_ensembles<Index + 1>(plans, members, subspaces);
    }
    return std::make_unique<EnsembleLoop<Index>>(plans, members, subspaces);
  } else {
    return nullptr;
  }
}

class CpuWorker : public ReplicateWorker {
 public:
  explicit CpuWorker(Plans plans)
      : ReplicateWorker(plans), subspaces_(static_cast<std::size_t>(plans[0]->d)) {
    // Conditions that may have heads in common go together.
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const Plan& plan = *plans[p];
      const auto group = std::ranges::find_if(groups, [&](const auto& members) {
        const Plan& other = *plans[members.front()];
        return other.kernel.index() == plan.kernel.index() && other.k == plan.k &&
               other.query_points == plan.query_points;
      });
      if (group == groups.end()) {
        groups.push_back({p});
      } else {
        group->push_back(p);
      }
    }
    for (const auto& members : groups) {
      ensembles_.push_back(make_ensembles(plans, members, subspaces_));
    }
    set_.emplace(*plans[0], subspaces_);
  }

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows) override {
    for (const Pass pass : all_passes) {
      looking_.clear();
      for (const auto& ensembles : ensembles_) {
        if (ensembles->begin(pass)) looking_.push_back(ensembles.get());
      }
      if (looking_.empty()) continue;
      for (std::size_t chunk = 0; chunk < set_->chunks(); ++chunk) {
        set_->load(number, chunk);
        for (Ensembles* ensembles : looking_) ensembles->add(*set_);
      }
    }
    for (const auto& ensembles : ensembles_) {
      ensembles->finish(set_->centre(), statistics, windows);
    }
  }

 private:
  PackedSubspaces subspaces_;
  std::vector<std::unique_ptr<Ensembles>> ensembles_;
  std::optional<TrainingSet> set_;
  std::vector<Ensembles*> looking_;  ///< in the pass under way
};

std::unique_ptr<Worker> make_worker(Plans plans) {
  return std::make_unique<CpuWorker>(plans);
}

/// The whole training set at once, so that its parts can be timed.
class Parts : public CpuParts {
 public:
  explicit Parts(const Plan& plan) : plans_{&plan}, subspaces_(static_cast<std::size_t>(plan.d)) {
    ensembles_ = make_ensembles(plans_, {0}, subspaces_);
    set_.emplace(plan, subspaces_, false);
    set_->load(0, 0);
    const auto size = static_cast<std::size_t>(point_buffer(plan.d));
    x_ = hwy::AllocateAligned<Tile>(set_->tiles() * size);
  }
  void draw(std::uint64_t replicate) override {
    const auto size = static_cast<std::size_t>(point_buffer(plans_[0]->d));
    for (std::size_t tile = 0; tile < set_->tiles(); ++tile) {
      set_->draw_points(replicate, tile);
      set_->evaluate(replicate, tile);
      std::copy_n(set_->point(), size, &x_[tile * size]);
    }
  }
  void project() override {
    const auto size = static_cast<std::size_t>(point_buffer(plans_[0]->d));
    for (std::size_t tile = 0; tile < set_->tiles(); ++tile) {
      set_->project(&x_[tile * size], tile);
    }
  }
  void sum() override {
    ensembles_->begin(Pass::sums);
    ensembles_->add(*set_);
  }

 private:
  std::vector<const Plan*> plans_;
  PackedSubspaces subspaces_;
  std::unique_ptr<Ensembles> ensembles_;
  std::optional<TrainingSet> set_;
  hwy::AlignedFreeUniquePtr<Tile[]> x_;
};

std::unique_ptr<CpuParts> make_parts(const Plan& plan) {
  return std::make_unique<Parts>(plan);
}

std::vector<float> draw_design(const Plan& plan, std::uint64_t replicate) {
  const PackedSubspaces none(static_cast<std::size_t>(plan.d));
  TrainingSet set(plan, none);
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

void draw_base_tile(BaseDraw base, std::uint64_t seed, std::uint64_t subsequence,
                    std::uint64_t first, std::uint64_t quads, Tile* x) {
  draw_base(base, TileStream(seed, subsequence), first, quads, x);
}

Tile draw_noise_tile(const Plan& plan, std::uint64_t replicate, std::uint64_t first) {
  const TileStream stream(plan.seed, subsequence(plan.streams.noise, replicate));
  return std::visit([&](const auto& noise) { return draw_noise(noise, stream, first); },
                    plan.noise);
}

void normal_pair_tile(const std::uint32_t* a, const std::uint32_t* b, Tile& first, Tile& second) {
  normal_pairs<1>({a}, {b}, {first.v}, {second.v});
}

HWY_ATTR void exp2_array(const float* t, float whole, bool clamp, float* out, std::size_t count) {
  const Exp2<true> clamped(whole);
  const Exp2<false> plain(whole);
  float buffer[lane_count] = {};
  for (std::size_t i = 0; i < count; i += lane_count) {
    const std::size_t part = std::min(lane_count, count - i);
    std::copy_n(t + i, part, buffer);
    Float power[] = {hn::LoadU(float_tag, buffer)};
    clamp ? clamped(power) : plain(power);
    hn::StoreU(power[0], float_tag, buffer);
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
HWY_EXPORT(make_parts);
HWY_EXPORT(draw_design);
HWY_EXPORT(draw_base_tile);
HWY_EXPORT(draw_noise_tile);
HWY_EXPORT(normal_pair_tile);
HWY_EXPORT(exp2_array);

class CpuBackend : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::string simd() const override { return cpu_simd_name(cpu_targets().front()); }
  std::string device() const override { return processor_name(); }
  int workers(int threads) const override { return threads; }
  std::size_t plans_together() const override { return 16; }
  std::uint64_t worker_bytes(Plans plans) const override {
    // As if no two conditions had a head in common, with the widest vectors.
    const auto d = static_cast<std::uint64_t>(plans[0]->d);
    std::uint64_t point = 2;  // floats
    std::uint64_t bytes = 128 * (d + 3);
    for (const Plan* plan : plans) {
      const auto heads = static_cast<std::uint64_t>(plan->heads);
      const auto k = static_cast<std::uint64_t>(plan->k);
      const auto windows = heads * static_cast<std::uint64_t>(plan->queries);
      const bool conditional = plan->estimator == Estimator::conditional;
      point += heads * (k + 1);
      const std::uint64_t min_weights = 8 * 256 * (conditional ? heads : 1);
      bytes += 12 * heads * k * d + windows * (12 * k + 440) +
               4 * std::max<std::uint64_t>(max_weights, min_weights) +
               8 * leaf_replicates * plan->layout().statistics();
      if (!conditional) continue;
      const std::uint64_t pairs = heads * (heads + 1) / 2;
      const std::uint64_t batch = std::min(static_cast<std::uint64_t>(plan->queries),
                                           std::max<std::uint64_t>(max_running_pairs / pairs, 8));
      bytes += 8 * windows * (heads + 1) + 2 * 64 * batch * (pairs + 1);
    }
    // Where heads are shared a point takes less, and a chunk holds more of them.
    const std::uint64_t chunk = std::max(4 * point * chunk_unit, max_chunk_bytes);
    return bytes + std::min(chunk, 4 * point * (plans[0]->n + tile_points));
  }
  std::unique_ptr<Worker> worker(Plans plans) const override {
    return HWY_DYNAMIC_DISPATCH(make_worker)(plans);
  }
  std::unique_ptr<HeadGradients> head_gradients(const KernelLaw& kernel,
                                                int threads) const override {
    return make_cpu_gradients(kernel, threads);
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

std::unique_ptr<CpuParts> make_cpu_parts(const Plan& plan) {
  return HWY_DYNAMIC_DISPATCH(make_parts)(plan);
}

std::vector<float> draw_design_cpu(const Plan& plan, std::uint64_t replicate) {
  return HWY_DYNAMIC_DISPATCH(draw_design)(plan, replicate);
}

void draw_base_cpu(BaseDraw base, std::uint64_t seed, std::uint64_t subsequence,
                   std::uint64_t first, std::uint64_t quads, Tile* x) {
  HWY_DYNAMIC_DISPATCH(draw_base_tile)(base, seed, subsequence, first, quads, x);
}

Tile draw_noise_cpu(const Plan& plan, std::uint64_t replicate, std::uint64_t first) {
  return HWY_DYNAMIC_DISPATCH(draw_noise_tile)(plan, replicate, first);
}

void normal_pair_cpu(const std::uint32_t* a, const std::uint32_t* b, Tile& first, Tile& second) {
  HWY_DYNAMIC_DISPATCH(normal_pair_tile)(a, b, first, second);
}

void exp2_cpu(const float* t, float whole, bool clamp, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(exp2_array)(t, whole, clamp, out, count);
}

}  // namespace headlab
#endif  // HWY_ONCE
