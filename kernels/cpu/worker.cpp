// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/worker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/targets.h"
#include "kernels/design_point.h"
#include "kernels/replicate_worker.h"
#include "kernels/tile.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/worker.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/aligned_allocator.h>

#include "kernels/cpu/ensemble-inl.h"
#include "kernels/cpu/exp2-inl.h"
#include "kernels/cpu/training_set-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

/// The plans of a worker whose tokens are the same: their draws, and the sums of their heads.
class TokenGroup {
 public:
  TokenGroup(Plans plans, const std::vector<std::size_t>& members)
      : subspaces_(static_cast<std::size_t>(plans[0]->d)) {
    // Conditions that may have heads in common go together.
    std::vector<std::vector<std::size_t>> groups;
    for (const std::size_t p : members) {
      const Plan& plan = *plans[p];
      const auto group = std::ranges::find_if(groups, [&](const auto& some) {
        const Plan& other = *plans[some.front()];
        return other.kernel.index() == plan.kernel.index() && other.k == plan.k &&
               other.query_points == plan.query_points &&
               other.mechanism.keep.off() == plan.mechanism.keep.off() &&
               other.mechanism.keep.shared == plan.mechanism.keep.shared;
      });
      if (group == groups.end()) {
        groups.push_back({p});
      } else {
        group->push_back(p);
      }
    }
    for (const auto& group : groups) {
      ensembles_.push_back(std::make_unique<Ensembles>(plans, group, subspaces_));
    }
    const bool pooled = std::ranges::any_of(
        members, [&](std::size_t p) { return plans[p]->mechanism.keep.pooled; });
    set_.emplace(*plans[members.front()], subspaces_, seen_by_any(plans, members), pooled);
  }

  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows, std::span<double> sample_sizes) {
    for (const Pass pass : all_passes) {
      active_.clear();
      for (const auto& ensembles : ensembles_) {
        if (ensembles->begin(pass)) active_.push_back(ensembles.get());
      }
      if (active_.empty()) continue;
      for (std::size_t slab = set_->next_slab(0); slab < set_->slabs();
           slab = set_->next_slab(slab + 1)) {
        set_->load(number, slab);
        for (Ensembles* ensembles : active_) ensembles->add(*set_);
      }
    }
    for (const auto& ensembles : ensembles_) {
      ensembles->finish(set_->centre(), statistics, windows, sample_sizes);
    }
  }

 private:
  /// What the heads of the plans see, each once; empty where some head sees everything.
  static std::vector<SeenTokens> seen_by_any(Plans plans, const std::vector<std::size_t>& members) {
    std::vector<SeenTokens> all;
    for (const std::size_t p : members) {
      const std::vector<SeenTokens>& seen = plans[p]->mechanism.seen;
      if (seen.empty()) return {};
      for (const SeenTokens& one : seen) {
        if (std::ranges::find(all, one) == all.end()) all.push_back(one);
      }
    }
    return all;
  }

  PackedSubspaces subspaces_;
  std::vector<std::unique_ptr<Ensembles>> ensembles_;
  std::optional<TrainingSet> set_;
  std::vector<Ensembles*> active_;  ///< in the current pass
};

class CpuWorker : public ReplicateWorker {
 public:
  explicit CpuWorker(Plans plans) : ReplicateWorker(plans) {
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const auto group = std::ranges::find_if(groups, [&](const auto& members) {
        const Mechanism& other = plans[members.front()]->mechanism;
        const Mechanism& own = plans[p]->mechanism;
        return other.merge == own.merge && other.levels == own.levels;
      });
      if (group == groups.end()) {
        groups.push_back({p});
      } else {
        group->push_back(p);
      }
    }
    for (const auto& members : groups) {
      groups_.push_back(std::make_unique<TokenGroup>(plans, members));
    }
  }

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows) override {
    for (const auto& group : groups_) {
      group->replicate(number, statistics, windows, sample_sizes());
    }
  }

 private:
  std::vector<std::unique_ptr<TokenGroup>> groups_;
};

std::unique_ptr<Worker> make_worker(Plans plans) {
  return std::make_unique<CpuWorker>(plans);
}

class Parts : public CpuParts {
 public:
  explicit Parts(const Plan& plan) : plans_{&plan}, subspaces_(static_cast<std::size_t>(plan.d)) {
    ensembles_ = std::make_unique<Ensembles>(plans_, std::vector<std::size_t>{0}, subspaces_);
    set_.emplace(plan, subspaces_, std::vector<SeenTokens>{}, false, false);
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

HWY_ATTR void exp2_array(const float* t, float offset, bool clamp, float* out, std::size_t count) {
  const Exp2<true> clamped(offset);
  const Exp2<false> plain(offset);
  float buffer[lane_count] = {};
  for (std::size_t i = 0; i < count; i += lane_count) {
    const std::size_t lanes = std::min(lane_count, count - i);
    std::copy_n(t + i, lanes, buffer);
    Float power[] = {hn::LoadU(float_tag, buffer)};
    clamp ? clamped(power) : plain(power);
    hn::StoreU(power[0], float_tag, buffer);
    std::copy_n(buffer, lanes, out + i);
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
HWY_EXPORT(exp2_array);

}  // namespace

std::unique_ptr<Worker> make_cpu_worker(Plans plans) {
  return HWY_DYNAMIC_DISPATCH(make_worker)(plans);
}

std::unique_ptr<CpuParts> make_cpu_parts(const Plan& plan) {
  return HWY_DYNAMIC_DISPATCH(make_parts)(plan);
}

void exp2_cpu(const float* t, float offset, bool clamp, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(exp2_array)(t, offset, clamp, out, count);
}

}  // namespace headlab
#endif  // HWY_ONCE
