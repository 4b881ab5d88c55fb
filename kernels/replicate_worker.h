// SPDX-License-Identifier: Apache-2.0
/// \file What backends that compute one replicate at a time share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace headlab {

/// Runs a block replicate by replicate, each for all plans at once, and takes the moments of each
/// node. Allocates what it returns and nothing else, once it has met a node as large.
class ReplicateWorker : public Worker {
 public:
  /// `layouts` are those of the plans, in their order.
  explicit ReplicateWorker(const std::vector<MomentLayout>& layouts);
  explicit ReplicateWorker(Plans plans);
  void run(const Block& block, std::span<Moments> out) final;

 protected:
  /// Computes one replicate: writes the statistics of plan p to statistics[p]
  /// [layout.statistics()] and adds its window counts to windows[p].
  virtual void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                         std::span<WindowCounts> windows) = 0;

 private:
  /// What is kept for each plan.
  struct OfPlan {
    MomentLayout layout;
    std::vector<double> leaf;    ///< [leaf_replicates][statistics]
    std::vector<Moments> parts;  ///< of the node under way, see merge_leaf
  };

  /// Computes replicates first .. first + count - 1, a leaf's at most.
  void compute_leaf(std::uint64_t first, std::size_t count);
  /// Adds the leaf just computed, the `number`-th of its node from 0, to the moments of plan p.
  void merge_leaf(std::size_t p, std::uint64_t number, std::size_t count, Moments& node);

  std::vector<OfPlan> plans_;
  std::vector<std::span<double>> statistics_;  ///< [plans], where the next replicate goes
  std::vector<WindowCounts> windows_;          ///< [plans], of the leaf
};

/// Name of the processor, as the system calls it.
std::string processor_name();

}  // namespace headlab
