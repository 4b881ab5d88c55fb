// SPDX-License-Identifier: Apache-2.0
/// \file Scenarios on common blocks of training sets and heads, some of which go on while others
/// stop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "validation/claims/experiment.h"

namespace headlab {

struct Condition;
struct Plan;

/// Replicates of one block.
inline constexpr std::uint64_t block_replicates = 32;

/// Hears the share done, in [0, 1], of what was asked for last.
using ShareDone = std::function<void(double)>;

/// Scenarios simulated in blocks. Each block has training sets of its own, common to all scenarios,
/// and heads of law `haar` are drawn again for it: the error is then the mean over the law of the
/// heads, and its standard error, over blocks, covers their draw. What is compared is k and not the
/// luck of one draw of heads. Blocks are independent and alike, so that figures need no node but
/// these. Plans are made for those that are simulated together and then given up: there may be
/// hundreds of scenarios, each with projections of its own.
class BlockRuns {
 public:
  /// The scenarios must share their draws. The blocks are number `first_block` and those that
  /// follow: other numbers, other draws. Throws InvalidInput where a scenario does not fit in
  /// memory.
  BlockRuns(std::vector<Condition> conditions, Session session, std::uint64_t first_block = 0);
  ~BlockRuns();

  /// Simulates `members` on to `blocks`, or takes what the session has kept of them. Throws
  /// TimeIsUp where the session stops it, RunFailed where an error is not finite.
  void advance(std::span<const std::size_t> members, std::uint64_t blocks,
               const ShareDone& share_done = {});

  std::uint64_t replicates(std::size_t member) const {
    return block_replicates * errors_.at(member).size();
  }
  /// Mean squared error over queries in each block.
  const std::vector<double>& errors(std::size_t member) const { return errors_.at(member); }
  /// The same over all blocks, and with each block left out.
  Jackknifed mse(std::size_t member) const;
  /// Replicates of each block.
  std::vector<double> node_counts(std::size_t member) const;

 private:
  /// Takes the errors of a member that are kept, up to `blocks`.
  void take_kept(std::size_t member, std::uint64_t blocks);
  void keep(std::size_t member);
  std::string unit_of(std::size_t member) const;

  /// Gives the plan of a member the seed of a block, and random heads of its own.
  void begin_block(std::uint64_t block, std::size_t member, Plan& plan);

  /// Plans of the first of `members`, as many as are simulated together. `next`, empty at first,
  /// keeps a plan that was made and did not fit in.
  std::vector<Plan> next_plans(std::span<const std::size_t> members,
                               std::optional<Plan>& next) const;

  void simulate_block(std::span<const std::size_t> group, std::span<const Plan> plans);

  std::vector<Condition> conditions_;
  Session session_;
  std::uint64_t first_block_;
  std::string unit_;                         ///< name of what is kept of them, where anything is
  std::vector<std::vector<double>> errors_;  ///< [scenarios][blocks]
};

}  // namespace headlab
