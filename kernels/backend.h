// SPDX-License-Identifier: Apache-2.0
/// \file Interface of the backends, which compute the moments of blocks of replicates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/learning/head_gradients.h"
#include "kernels/statistics/moments.h"

namespace headlab {

struct KernelLaw;
struct Plan;

/// Plans that share their draws, at least one.
using Plans = std::span<const Plan* const>;

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
/// thread and owns its scratch memory. The moments of a plan depend only on the plan and the
/// replicate numbers, not on the other plans.
class Worker {
 public:
  virtual ~Worker() = default;
  /// Computes the moments of plan p in the i-th node of the block, out[p * block.nodes() + i]; the
  /// last node may be partial.
  virtual void run(const Block& block, std::span<Moments> out) = 0;
};

/// An implementation of the simulation.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;    ///< "reference", "cpu", "cuda"
  virtual std::string simd() const = 0;    ///< instruction set in use, "none" for reference
  virtual std::string device() const = 0;  ///< processor it runs on
  /// Workers that may run concurrently, given the number of threads asked for.
  virtual int workers(int threads) const = 0;
  /// Kernel weights that make a block worth handing to a worker.
  virtual double block_work() const { return 4e6; }
  /// Events that the user should know of, one line each.
  virtual std::vector<std::string> notes() const { return {}; }
  /// Maximum plans worth giving to one worker: more than 1 where it draws once for all.
  virtual std::size_t plans_together() const { return 1; }

  /// Scratch memory of one worker on the host [bytes].
  virtual std::uint64_t worker_bytes(Plans plans) const = 0;
  std::uint64_t worker_bytes(const Plan& plan) const {
    const Plan* const one = &plan;
    return worker_bytes(Plans(&one, 1));
  }

  /// Creates a worker on plans that share their draws and outlive it. Throws std::invalid_argument
  /// with advice for a plan that this backend does not compute.
  virtual std::unique_ptr<Worker> worker(Plans plans) const = 0;
  std::unique_ptr<Worker> worker(const Plan& plan) const {
    const Plan* const one = &plan;
    return worker(Plans(&one, 1));
  }

  /// Creates what computes estimates and gradients of heads to be learned, on `threads` threads.
  /// Throws std::invalid_argument where the kernel has no norm_coefficient or the backend learns no
  /// heads.
  virtual std::unique_ptr<HeadGradients> head_gradients(const KernelLaw& /*kernel*/,
                                                        int /*threads*/) const {
    // Inline, so that a derived class does not link every backend.
    throw std::invalid_argument("backend " + name() + " learns no heads - use --backend cpu");
  }
};

}  // namespace headlab
