// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/cpu/draws.h"

namespace headlab {

/// Where parts of sequences ended, for threads that draw parts in turn. A thread takes the place
/// nearest before its part and puts back where the part ended, so that each place walks a sequence
/// once, however many parts it has.
class SequenceStates {
 public:
  /// The place from which the fewest points are drawn to reach `first`; point 0 where none is
  /// known.
  SequenceState take(std::uint64_t replicate, std::uint64_t first) {
    const std::lock_guard lock(mutex_);
    auto nearest = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (it->replicate != replicate || it->state.next > first) continue;
      if (nearest == idle_.end() || it->state.next > nearest->state.next) nearest = it;
    }
    if (nearest == idle_.end()) return {};
    SequenceState taken = std::move(nearest->state);
    idle_.erase(nearest);
    return taken;
  }

  /// Forgets places in earlier replicates: parts come replicate by replicate.
  void put(std::uint64_t replicate, SequenceState state) {
    const std::lock_guard lock(mutex_);
    std::erase_if(idle_, [&](const Idle& other) { return other.replicate < replicate; });
    idle_.push_back({replicate, std::move(state)});
  }

 private:
  struct Idle {
    std::uint64_t replicate;  ///< that of the state is 0 for a fixed design
    SequenceState state;
  };

  std::mutex mutex_;
  std::vector<Idle> idle_;
};

}  // namespace headlab
