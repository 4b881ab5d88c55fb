// SPDX-License-Identifier: Apache-2.0
/// \file What studies of allocations share: how they are asked, their clock and their laboratory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "validation/allocation/allocations.h"
#include "validation/allocation/block_runs.h"
#include "validation/allocation/selection.h"

namespace headlab {

/// How far a study is.
struct AllocationProgress {
  std::string stage;  ///< "pilot for the bandwidths", "look 1 of 4, 16 allocations"
  double share = 0;   ///< of the stage
  double seconds = 0;
};

struct AllocateOptions {
  std::string backend = "auto";
  int threads = 0;
  BandwidthRule rule = BandwidthRule::fixed;
  std::uint64_t replicates = 65536;  ///< most, of each allocation; at least least_selection_look
  SelectionGuarantee guarantee = {};
  std::optional<double> max_seconds = {};
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const AllocationProgress&)> progress = {};
};

/// The laboratory and the clock of one study.
class Session {
 public:
  /// `options` must outlive the session. Throws Refused for a backend that is not there and for too
  /// few replicates.
  explicit Session(const AllocateOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Laboratory& laboratory() const { return laboratory_; }
  double seconds() const;
  /// True where the study is to stop.
  bool stop() const;
  bool interrupted() const;
  /// Passes the share of a stage on to whoever follows the progress.
  ShareDone tell(const std::string& stage) const;

 private:
  const AllocateOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Laboratory laboratory_;
};

}  // namespace headlab
