// SPDX-License-Identifier: Apache-2.0
/// \file What backends that compute one replicate at a time share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace headlab {

/// Runs a block replicate by replicate and takes the moments of each node.
class ReplicateWorker : public Worker {
 public:
  explicit ReplicateWorker(const MomentLayout& layout);
  void run(const Block& block, std::span<Moments> out) final;

 protected:
  /// Writes the statistics of one replicate [layout.statistics()] and adds its window counts.
  virtual void replicate(std::uint64_t number, std::span<double> statistics,
                         WindowCounts& windows) = 0;

 private:
  /// Moments of `count` replicates, a leaf's at most.
  Moments leaf(std::uint64_t first, std::uint64_t count);

  MomentLayout layout_;
  std::vector<double> statistics_;  ///< [leaf_replicates][statistics]
};

/// Name of the processor, as the system calls it.
std::string processor_name();

}  // namespace headlab
