// SPDX-License-Identifier: Apache-2.0
/// \file A backend computes blocks of replicates of a plan and returns their moments.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/learning/head_gradients.h"
#include "kernels/moments.h"
#include "kernels/plan.h"

namespace headlab {

/// Consecutive replicates, computed together. `node` is 1 or leaf_replicates times a power of two;
/// `first` is a multiple of it, and so is `count` unless `node` is leaf_replicates.
struct Block {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  int node = leaf_replicates;

  std::uint64_t nodes() const {
    return (count + static_cast<unsigned>(node) - 1) / static_cast<unsigned>(node);
  }
};

/// Computes blocks of one plan, or of several that share their draws. A worker belongs to one
/// thread and owns its scratch memory; the moments it returns for a plan depend on that plan and
/// the replicate numbers alone, so not on the plans beside it.
class Worker {
 public:
  virtual ~Worker() = default;
  /// out[p * block.nodes() + i] becomes the moments of plan p in the i-th node of the block; the
  /// last node may be partial.
  virtual void run(const Block& block, std::span<Moments> out) = 0;
};

/// One way to compute.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;    ///< "reference", "cpu", "cuda"
  virtual std::string simd() const = 0;    ///< instruction set in use, "none" for reference
  virtual std::string device() const = 0;  ///< processor it runs on
  /// Workers that may run side by side, given the number of threads asked for.
  virtual int workers(int threads) const = 0;
  /// Kernel weights that are worth dealing to a worker at once.
  virtual double block_work() const { return 4e6; }
  /// What happened that the user should know, one line each.
  virtual std::vector<std::string> notes() const { return {}; }
  /// Plans that are worth giving to one worker, at most; more than 1 where it draws once for all.
  virtual std::size_t plans_together() const { return 1; }

  /// Scratch memory of one worker on the host [bytes].
  virtual std::uint64_t worker_bytes(Plans plans) const = 0;
  std::uint64_t worker_bytes(const Plan& plan) const {
    const Plan* const one = &plan;
    return worker_bytes(Plans(&one, 1));
  }

  /// A worker on plans that share their draws and outlive it.
  virtual std::unique_ptr<Worker> worker(Plans plans) const = 0;
  std::unique_ptr<Worker> worker(const Plan& plan) const {
    const Plan* const one = &plan;
    return worker(Plans(&one, 1));
  }

  /// Estimates and gradients for heads that are to be learned, on `threads` threads. Throws
  /// std::invalid_argument where the kernel has no norm_share, or the backend does not learn.
  virtual std::unique_ptr<HeadGradients> head_gradients(const KernelLaw& /*kernel*/,
                                                        int /*threads*/) const {
    // Defined here: whoever derives from this class does not bring every backend into his program.
    throw std::invalid_argument("backend " + name() + " learns no heads - use --backend cpu");
  }
};

}  // namespace headlab
