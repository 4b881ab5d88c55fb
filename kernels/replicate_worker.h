// SPDX-License-Identifier: Apache-2.0
/// \file Base of the workers that compute one replicate at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/statistics/replicate_error.h"

namespace headlab {

/// The plan of a worker that takes one, of a backend whose plans_together() is 1.
const Plan& only_plan(Plans plans);

/// Runs a block replicate by replicate, each for all plans, and takes the moments of each node.
/// Allocates only its results, once it has met a node as large.
class ReplicateWorker : public Worker {
 public:
  /// `layouts` are those of the plans, in their order. Extremes stay unknown.
  explicit ReplicateWorker(const std::vector<MomentLayout>& layouts);
  explicit ReplicateWorker(Plans plans);
  void run(const Block& block, std::span<Moments> out) override;

 protected:
  /// Computes one replicate: writes the statistics of plan p to statistics[p]
  /// [layout.statistics()] and adds its window counts to windows[p].
  virtual void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                         std::span<WindowCounts> windows) = 0;

  /// Where replicate() may put the least effective sample size 1 / sum_i w_i^2 of the heads and
  /// queries of each plan; NaN, as found there, is unknown.
  std::span<double> sample_sizes() { return sample_sizes_; }

 private:
  /// Results of one plan in progress.
  struct OfPlan {
    MomentLayout layout;
    std::vector<double> leaf;       ///< [leaf_replicates][statistics]
    std::vector<Moments> subtrees;  ///< of the node in progress, see merge_leaf
    std::optional<ReplicateError> error = {};
    Extremes extremes = {};  ///< of the node in progress
    bool knows_sample_sizes = true;
  };

  /// Computes replicates first .. first + count - 1 of a leaf of a block.
  void compute_leaf(const Block& block, std::uint64_t first, std::size_t count);
  /// Adds the replicate just computed to the extremes of plan p.
  void add_extremes(std::size_t p, std::uint64_t number);
  /// Gives a node the extremes of plan p, and begins those of the next one.
  void hand_in_extremes(std::size_t p, Moments& node);
  /// Adds the leaf just computed, leaf `number` of its node, to the moments of plan p.
  void merge_leaf(std::size_t p, std::uint64_t number, std::size_t count, Moments& node);

  std::vector<OfPlan> plans_;
  std::vector<std::span<double>> statistics_;  ///< [plans], of the replicate in progress
  std::vector<WindowCounts> windows_;          ///< [plans], of the leaf
  std::vector<double> sample_sizes_;           ///< [plans], of the replicate in progress
};

}  // namespace headlab
