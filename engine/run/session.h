// SPDX-License-Identifier: Apache-2.0
/// \file Session: where a computation runs, when it ends early and who hears of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "engine/files/provenance.h"
#include "engine/moments/jackknife.h"
#include "kernels/backend.h"

namespace headlab {

struct Condition;
struct ControlMeans;
struct Plan;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A backend by its name. It is made at its first use; copies share it.
class BackendChoice {
 public:
  BackendChoice(std::string name) : name_(std::move(name)) {}
  BackendChoice(const char* name) : name_(name) {}

  /// As asked for, so that it may be "auto".
  const std::string& name() const { return name_; }
  /// Throws InvalidInput where this build or machine does not have the backend.
  const Backend& operator*() const;
  const Backend* operator->() const { return &**this; }

 private:
  struct Made;
  std::string name_;
  std::shared_ptr<Made> made_ = none();

  static std::shared_ptr<Made> none();
};

/// How far a computation is.
struct Progress {
  std::string stage = {};          ///< work under way, where it has a name
  std::size_t condition = 0;       ///< index of the first condition simulated together
  std::size_t last_condition = 0;  ///< index of the last one
  std::size_t together = 1;        ///< number of these conditions
  std::size_t conditions = 1;
  std::uint64_t done = 0;  ///< number of `what`, for each condition
  std::uint64_t total = 0;
  const char* what = "replicates";
  double share = 0;  ///< of the work under way that is done, 0 to 1
  double seconds_left = std::numeric_limits<double>::quiet_NaN();  ///< NaN: unknown
  const char* figure = "MSE";
  Estimate estimate = {};  ///< of `figure` in `condition` so far
  std::string until = {};  ///< what the run ends with, where that is not a number of replicates
};

class Units;

/// Whatever runs for long takes one. The flag is the caller's: a session installs no signal
/// handler.
struct Session {
  BackendChoice backend = "auto";
  int threads = 0;  ///< 0: all of this machine
  /// The computation ends after the block under way; not an error.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const std::atomic<bool>* stop = nullptr;  ///< true: the same
  /// Exact means of the controls of a plan, where a scenario asks for controls
  /// (validation/theory/controls/control_means.h); without any where go_on(share done) said no.
  /// Empty: such a scenario is rejected.
  std::function<ControlMeans(const Condition&, const Plan&,
                             const std::function<bool(double)>& go_on)>
      control_means = {};
  /// Called about every tenth of a second, from one thread at a time.
  std::function<void(const Progress&)> report = {};
  /// True where a report would be shown now: figures on the way are computed for that alone. Empty:
  /// always.
  std::function<bool()> report_due = {};
  Units* units = nullptr;  ///< where results of parts of the work are kept; null: nowhere
  std::string unit = {};   ///< name of the part under way

  bool should_stop() const;
  /// Returns should_stop() of this session, which must outlive it.
  std::function<bool()> stop_hook() const;
  /// True where there is somebody to report to, now.
  bool reports() const { return report && (!report_due || report_due()); }
  /// Reports the share done of a stage; empty where nobody listens.
  std::function<void(double)> stage(const std::string& name) const;
  /// The session of a part of the work, whose reports are headed by its name.
  Session part(const std::string& name) const;
  /// Throws InvalidInput where the backend is missing.
  Machine machine() const;
  Outcome outcome(bool complete, const Stopwatch& watch) const;
};

/// The deadline `seconds` from now.
std::chrono::steady_clock::time_point deadline_in(double seconds);

}  // namespace headlab
