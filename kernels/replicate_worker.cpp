// SPDX-License-Identifier: Apache-2.0
#include "kernels/replicate_worker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab {

namespace {

std::vector<MomentLayout> layouts_of(Plans plans) {
  std::vector<MomentLayout> layouts;
  for (const Plan* plan : plans) layouts.push_back(plan->layout());
  return layouts;
}

}  // namespace

const Plan& only_plan(Plans plans) {
  if (plans.size() != 1) throw std::logic_error("several plans for a worker that takes one");
  return *plans[0];
}

ReplicateWorker::ReplicateWorker(const std::vector<MomentLayout>& layouts)
    : statistics_(layouts.size()), windows_(layouts.size()), sample_sizes_(layouts.size()) {
  for (const MomentLayout& layout : layouts) {
    plans_.push_back({layout, std::vector<double>(leaf_replicates * layout.statistics()), {}});
  }
}

ReplicateWorker::ReplicateWorker(Plans plans) : ReplicateWorker(layouts_of(plans)) {
  for (std::size_t p = 0; p < plans.size(); ++p) {
    plans_[p].error.emplace(plans_[p].layout, plans[p]->head_weights, plans[p]->truth);
  }
}

void ReplicateWorker::run(const Block& block, std::span<Moments> out) {
  const auto node = static_cast<std::uint64_t>(block.node);
  const auto largest = static_cast<std::uint64_t>(leaf_replicates);
  const std::uint64_t nodes = block.nodes();
  for (std::uint64_t i = 0; i < nodes; ++i) {
    const std::uint64_t first = block.first + i * node;
    const std::uint64_t count = std::min(node, block.first + block.count - first);
    for (std::uint64_t done = 0; done < count; done += largest) {
      const auto replicates = static_cast<std::size_t>(std::min(largest, count - done));
      compute_leaf(block, first + done, replicates);
      for (std::size_t p = 0; p < plans_.size(); ++p) {
        merge_leaf(p, done / largest, replicates, out[p * nodes + i]);
      }
    }
    for (std::size_t p = 0; p < plans_.size(); ++p) hand_in_extremes(p, out[p * nodes + i]);
  }
}

void ReplicateWorker::compute_leaf(const Block& block, std::uint64_t first, std::size_t count) {
  std::ranges::fill(windows_, WindowCounts{});
  for (std::size_t r = 0; r < count; ++r) {
    const WorkPart part = WorkPart::number(first + r - block.first, block.count);
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      const std::size_t size = plans_[p].layout.statistics();
      statistics_[p] = std::span(plans_[p].leaf).subspan(r * size, size);
    }
    std::ranges::fill(sample_sizes_, std::numeric_limits<double>::quiet_NaN());
    replicate(first + r, statistics_, windows_);
    for (std::size_t p = 0; p < plans_.size(); ++p) add_extremes(p, first + r);
  }
}

void ReplicateWorker::add_extremes(std::size_t p, std::uint64_t number) {
  OfPlan& plan = plans_[p];
  if (!plan.error) return;
  plan.extremes.max_error.add({(*plan.error)(statistics_[p]), number});
  if (std::isnan(sample_sizes_[p])) {
    plan.knows_sample_sizes = false;
  } else {
    plan.extremes.min_sample_size->add({sample_sizes_[p], number});
  }
}

void ReplicateWorker::hand_in_extremes(std::size_t p, Moments& node) {
  OfPlan& plan = plans_[p];
  if (!plan.error) return;
  Extremes extremes = plan.extremes;
  if (!plan.knows_sample_sizes) extremes.min_sample_size.reset();
  node.extremes = std::make_shared<const Extremes>(std::move(extremes));
  plan.extremes.for_each([](ExtremeList& list) { list.clear(); });
  plan.knows_sample_sizes = true;
}

void ReplicateWorker::merge_leaf(std::size_t p, std::uint64_t number, std::size_t count,
                                 Moments& node) {
  // The previous leaves are merged into subtrees of 2^j leaves, one for each binary digit 1 of
  // `number`, the largest in `node`. The leaf becomes the last subtree; two subtrees of one size
  // are siblings and merge, as in merge_siblings but without all leaves in memory.
  std::vector<Moments>& subtrees = plans_[p].subtrees;
  auto last = static_cast<std::size_t>(std::popcount(number));
  if (subtrees.size() < last) subtrees.resize(last);
  auto subtree = [&](std::size_t j) -> Moments& { return j == 0 ? node : subtrees[j - 1]; };
  leaf_moments(plans_[p].layout, plans_[p].leaf, static_cast<int>(count), subtree(last));
  subtree(last).windows = windows_[p];
  for (std::uint64_t digits = number; (digits & 1) != 0; digits >>= 1, --last) {
    merge_moments(plans_[p].layout, subtree(last - 1), subtree(last));
  }
}

}  // namespace headlab
