// SPDX-License-Identifier: Apache-2.0
/// \file Replicates of plans on a backend: blocks -> moments. Knows no scenario and no file, so
/// that a program on a bare machine can link it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/moments/moment_tree.h"
#include "kernels/backend.h"

namespace headlab {

/// Largest block that is handed to a worker.
inline constexpr std::uint64_t max_block_replicates = 1 << 16;

/// How far a running simulation is.
struct SimulationSoFar {
  /// Copies the moments of each plan.
  std::function<std::vector<MomentTree>()> moments;
  /// Replicates computed here beyond those of moments() before, with the shares done of others.
  std::function<double()> under_way;
};

/// Gives plan number p of those simulated together the heads and queries of a draw. Called by all
/// threads, each with a plan of its own.
using SetDraw = std::function<void(Plan& plan, std::size_t p, std::uint64_t draw)>;

/// Blocks of a running simulation, to be computed in any order.
class BlockQueue {
 public:
  virtual ~BlockQueue() = default;
  /// The next block; count 0 when there is none any more, nothing while others have to be
  /// collected first.
  virtual std::optional<Block> try_next() = 0;
  /// Takes the moments [plans][block.nodes()] of a block.
  virtual void collect(const Block& block, std::vector<Moments> moments) = 0;
  /// True: blocks under way are not needed any more.
  virtual bool stopping() = 0;
};

/// Whatever simulates blocks next to the threads of this process.
class BlockHelpers {
 public:
  virtual ~BlockHelpers() = default;
  /// Blocks that may be under way there at once.
  virtual int capacity() const = 0;
  /// Takes blocks until there are none any more, and returns once all of them are collected or the
  /// simulation stops.
  virtual void work(BlockQueue& queue) = 0;
};

/// Callbacks of a running simulation; any may be empty.
struct SimulationHooks {
  /// True: drop the blocks under way. Any thread may ask.
  std::function<bool()> stop = {};
  /// True: finish the blocks under way. One thread asks.
  std::function<bool()> enough = {};
  /// Called about every tenth of a second while threads simulate.
  std::function<void(const SimulationSoFar&)> watch = {};
  /// Required by plans that redraw.
  SetDraw set_draw = {};
  BlockHelpers* helpers = nullptr;
};

/// A worker on the plans that redraws where they do. `hooks` must outlive it.
std::unique_ptr<Worker> make_block_worker(Plans plans, const Backend& backend,
                                          const SimulationHooks& hooks);

/// Simulates replicates 0 .. replicates - 1 of plans that share their draws, together, so that a
/// backend can draw once for all; throws std::invalid_argument where they do not. All plans get the
/// same number of replicates, also where the run is stopped. The moments of a plan have the same
/// bits for any number of threads, and those that it has alone. Where plans redraw, which all or
/// none do, leaf i has the heads and queries of draw i, and replicates are a multiple of 8.
std::vector<MomentTree> simulate(Plans plans, const Backend& backend, int threads,
                                 std::uint64_t replicates, const SimulationHooks& hooks = {});

/// The same for one plan.
MomentTree simulate(const Plan& plan, const Backend& backend, int threads, std::uint64_t replicates,
                    const SimulationHooks& hooks = {});

/// Continues where `begun` ends, trees of the same plans and backend and all of one count: the
/// moments have the bits they would have in one go. The count must be below `first_leaf` or a
/// multiple of 8 (always where plans redraw). A tree of a range continues up to replicate
/// number `replicates` of its run.
std::vector<MomentTree> continue_simulation(std::vector<MomentTree> begun, Plans plans,
                                            const Backend& backend, int threads,
                                            std::uint64_t replicates,
                                            const SimulationHooks& hooks = {});

/// The same for one plan.
MomentTree continue_simulation(MomentTree begun, const Plan& plan, const Backend& backend,
                               int threads, std::uint64_t replicates,
                               const SimulationHooks& hooks = {});

/// Cost of one replicate in kernel weights: those it takes, and the coordinates drawn for it.
/// Stages of a mechanism count by the points drawn and the tokens seen.
double replicate_work(std::uint64_t n, int d, int heads, int queries);
double replicate_work(const Plan& plan);

/// Kernel weights of one replicate, whatever a mechanism leaves out.
double weights_of_replicate(const Plan& plan);

}  // namespace headlab
