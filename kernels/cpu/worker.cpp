// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/worker.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/targets.h"
#include "kernels/design_point.h"
#include "kernels/parallel_for.h"
#include "kernels/replicate_worker.h"
#include "kernels/statistics/stopping.h"
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
        return other.kernel->index() == plan.kernel->index() && other.k == plan.k &&
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
    for (const Pass pass : all_passes) passes_ += always_needed(pass) ? 1 : 0;
    for_slabs([&](std::size_t) { ++slabs_; });
  }

  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows, std::span<double> sample_sizes) {
    for (const auto& ensembles : ensembles_) ensembles->begin_replicate(number);
    double begin = 0;
    for (const Pass pass : all_passes) {
      active_.clear();
      for (const auto& ensembles : ensembles_) {
        if (ensembles->begin(pass)) active_.push_back(ensembles.get());
      }
      if (active_.empty()) continue;
      // A pass that few replicates need is short: few of their windows need it.
      const double end = begin + (always_needed(pass) ? 1.0 / passes_ : 0.0);
      const WorkPart part(begin, end);
      begin = end;
      std::size_t done = 0;
      for_slabs([&](std::size_t slab) {
        stop_point(static_cast<double>(done++) / static_cast<double>(slabs_));
        set_->load(number, slab);
        for (Ensembles* ensembles : active_) ensembles->add(*set_);
      });
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

  bool always_needed(Pass pass) const {
    return std::ranges::any_of(ensembles_,
                               [&](const auto& some) { return some->always_needs(pass); });
  }
  /// Calls `visit` with each slab that some head sees.
  template <class Visit>
  void for_slabs(const Visit& visit) const {
    for (std::size_t slab = set_->next_slab(0); slab < set_->slabs();
         slab = set_->next_slab(slab + 1)) {
      visit(slab);
    }
  }

  PackedSubspaces subspaces_;
  std::vector<std::unique_ptr<Ensembles>> ensembles_;
  std::optional<TrainingSet> set_;
  int passes_ = 0;                  ///< that every replicate needs
  std::size_t slabs_ = 0;           ///< that some head sees
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
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const WorkPart part = WorkPart::number(i, groups_.size());
      groups_[i]->replicate(number, statistics, windows, sample_sizes());
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
    x_ = allocate_aligned<Tile>(set_->tiles() * size);
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

/// Estimates of all heads and queries of a plan, to [H][Q] with `stride` from head to head.
std::uint64_t estimate(const Plan& plan, const GivenPoints& points, float* to, std::size_t stride) {
  const Plan* const plans[] = {&plan};
  PackedSubspaces subspaces(static_cast<std::size_t>(plan.d));
  Ensembles ensembles(plans, {0}, subspaces);
  TrainingSet set(plan, subspaces, {}, false, true, points);
  ensembles.begin_replicate(0);
  for (const Pass pass : all_passes) {
    if (!ensembles.begin(pass)) continue;
    for (std::size_t slab = 0; slab < set.slabs(); ++slab) {
      set.load(0, slab);
      ensembles.add(set);
    }
  }
  const MomentLayout layout = plan.layout();
  std::vector<double> statistics(layout.statistics());
  const std::span<double> written[] = {statistics};
  WindowCounts windows[1];
  double sample_size[1] = {};
  ensembles.finish(set.centre(), written, windows, sample_size);
  const auto heads = static_cast<std::size_t>(plan.heads);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    for (std::size_t h = 0; h < heads; ++h) {
      to[h * stride + q] = static_cast<float>(statistics[q * layout.per_query() + h]);
    }
  }
  return windows[0].empty;
}

HWY_ATTR std::size_t immoderate(std::span<const float> numbers) {
  const auto is_moderate = [](float number) { return std::abs(number) <= max_given; };
  const Float limit = hn::Set(float_tag, max_given);
  std::size_t i = 0;
  for (; i + lane_count <= numbers.size(); i += lane_count) {
    // False for NaN.
    const Float size = hn::Abs(hn::LoadU(float_tag, &numbers[i]));
    if (!hn::AllTrue(float_tag, hn::Le(size, limit))) break;
  }
  while (i < numbers.size() && is_moderate(numbers[i])) ++i;
  return i;
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
HWY_EXPORT(estimate);
HWY_EXPORT(immoderate);
HWY_EXPORT(exp2_array);

constexpr int queries_of_part = 512;

/// The heads and queries of a plan from some on.
Plan part_of(const Plan& plan, int head, int heads, int query, int queries) {
  const auto numbers = [](const std::vector<double>& all, int first, int count, int size) {
    if (all.empty()) return all;
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(first) * size;
    return std::vector<double>(from, from + static_cast<std::ptrdiff_t>(count) * size);
  };
  Plan part = plan;
  part.heads = heads;
  part.queries = queries;
  part.projections = numbers(plan.projections, head, heads, plan.d * plan.k);
  part.query_projections = numbers(plan.query_projections, head, heads, plan.d * plan.k);
  part.head_weights = numbers(plan.head_weights, head, heads, 1);
  part.query_points = numbers(plan.query_points, query, queries, plan.d);
  return part;
}

}  // namespace

std::unique_ptr<Worker> make_cpu_worker(Plans plans) {
  return HWY_DYNAMIC_DISPATCH(make_worker)(plans);
}

std::unique_ptr<CpuParts> make_cpu_parts(const Plan& plan) {
  return HWY_DYNAMIC_DISPATCH(make_parts)(plan);
}

std::uint64_t estimate_heads_cpu(const Plan& plan, const GivenPoints& points, int threads,
                                 std::span<float> estimates, const std::atomic<bool>* stop) {
  // Parts of queries do not depend on the threads: the queries of a part decide together how their
  // exponents are rounded. Each projects the keys again, which many queries make a small share.
  const int head_parts = std::min(plan.heads, threads);
  const int query_parts = (plan.queries + queries_of_part - 1) / queries_of_part;
  const auto begin = [](int part, int parts, int all) {
    return static_cast<int>(std::int64_t{all} * part / parts);
  };
  std::vector<std::uint64_t> empty(static_cast<std::size_t>(head_parts * query_parts));
  parallel_for(empty.size(), threads, [&](std::size_t i) {
    if (stop != nullptr && *stop) return;
    const int at = static_cast<int>(i);
    const int head = begin(at / query_parts, head_parts, plan.heads);
    const int query = begin(at % query_parts, query_parts, plan.queries);
    const int heads = begin(at / query_parts + 1, head_parts, plan.heads) - head;
    const int queries = begin(at % query_parts + 1, query_parts, plan.queries) - query;
    const auto stride = static_cast<std::size_t>(plan.queries);
    float* to =
        &estimates[static_cast<std::size_t>(head) * stride + static_cast<std::size_t>(query)];
    empty[i] = HWY_DYNAMIC_DISPATCH(estimate)(part_of(plan, head, heads, query, queries), points,
                                              to, stride);
  });
  return std::accumulate(empty.begin(), empty.end(), std::uint64_t{0});
}

std::size_t first_immoderate(std::span<const float> numbers) {
  return HWY_DYNAMIC_DISPATCH(immoderate)(numbers);
}

void exp2_cpu(const float* t, float offset, bool clamp, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(exp2_array)(t, offset, clamp, out, count);
}

}  // namespace headlab
#endif  // HWY_ONCE
