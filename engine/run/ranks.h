// SPDX-License-Identifier: Apache-2.0
/// \file One run on the processes of a job: rank 0 deals blocks and works too, the others return
/// moments.
///
/// Every rank reads the scenario and prepares the same plans. Then rank 0 runs the loop, and the
/// others compute the blocks that it sends. What they return enters the moment trees in the order
/// of the replicates, so that results have the bits of one process.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/provenance.h"
#include "engine/run/simulate.h"

namespace headlab {

struct Scenario;

struct Message {
  int from = 0;  ///< rank
  std::string bytes;
};

/// Point-to-point messages between ranks 0 .. size() - 1. Messages of one rank to another arrive in
/// the order in which they were sent. One thread at a time calls these functions.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Returns at once, whether or not the other rank receives.
  virtual void send(int to, std::string bytes) = 0;
  /// The next message, if one has arrived.
  virtual std::optional<Message> receive() = 0;
};

/// What all ranks have to have in common.
struct RankStudy {
  std::string program;  ///< version and commit
  std::string machine;  ///< backend, and what its bits depend on
  std::string plans;    ///< SHA-256 of the scenario and its plans
};

RankStudy rank_study(const Scenario& scenario, Plans plans, const Machine& machine);

/// Plans of conditions that are simulated together.
struct RankPlans {
  std::vector<const Plan*> plans;
  SetDraw set_draw = {};
};

/// Finds the plans of conditions by their numbers.
using FindPlans = std::function<RankPlans(const std::vector<std::size_t>& conditions)>;

/// This process as one rank of a job.
class Ranks {
 public:
  explicit Ranks(Channel& channel);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int size() const { return channel_.size(); }
  /// True for rank 0.
  bool leads() const { return channel_.rank() == 0; }

  /// Rank 0: waits until each of the others serves or has failed. Returns false where `stop` says
  /// so first. Throws InvalidInput where one failed, or has another study.
  bool gather(const RankStudy& study, const std::function<bool()>& stop);

  /// Rank 0: blocks that may be under way on the other ranks.
  int capacity() const;

  /// Rank 0: deals blocks of the queue, which are of these conditions, to the other ranks, until it
  /// has no more and all that were dealt have returned. Throws RunFailed where a rank fails.
  void deal(const std::vector<std::size_t>& conditions, BlockQueue& queue);

  /// The others: compute the blocks that rank 0 sends on `threads` threads, until it has no more.
  void serve(const RankStudy& study, const Backend& backend, int threads, const FindPlans& find);

  /// The others: tell rank 0 that this one does not serve, and why; nothing where it did.
  void decline(const std::string& why);

  /// Rank 0 ends the others; the others wait for it.
  void end();

 private:
  struct Peer;

  /// Takes what another rank has answered to the question of gather().
  void take_answer(const Message& message);
  /// Takes the moments of a block, or that it was given up.
  void take_result(const Message& message, BlockQueue& queue);
  /// Sends a block to each rank that has fewer under way than it may; false where none was sent.
  bool deal_round(const std::vector<std::size_t>& conditions, BlockQueue& queue, bool& ended);
  bool is_busy() const;

  Channel& channel_;
  std::vector<Peer> peers_;  ///< [size]; the first is this rank, and unused
  bool answered_ = false;    ///< this rank has served or declined
  bool ended_ = false;
};

/// The other ranks as helpers with conditions that are simulated together.
class RankHelpers : public BlockHelpers {
 public:
  RankHelpers(Ranks& ranks, const std::vector<std::size_t>& conditions)
      : ranks_(ranks), conditions_(conditions) {}
  int capacity() const override { return ranks_.capacity(); }
  void work(BlockQueue& queue) override { ranks_.deal(conditions_, queue); }

 private:
  Ranks& ranks_;
  const std::vector<std::size_t>& conditions_;
};

}  // namespace headlab
