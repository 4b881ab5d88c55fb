// SPDX-License-Identifier: Apache-2.0
/// \file Ending long work from within, and telling how much of it is done.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace headlab {

/// Thrown where work is to stop; what it has in progress is dropped.
class WorkStopped {};

/// While the scope lives, stop_point() of its thread, and of the threads that parallel_for starts
/// for it, throws WorkStopped once `stop`, which any of them may call, returns true. An inner scope
/// hides an outer one; that of an empty function lets work end.
class StopScope {
 public:
  explicit StopScope(std::function<bool()> stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  std::function<bool()> stop_;
  const std::function<bool()>* outer_;
};

/// While the scope lives, `done` is how much of `work` its thread has done, as far as the work
/// tells; before and after it is 0.
class WorkScope {
 public:
  WorkScope(std::atomic<double>& done, double work);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

 private:
  friend class WorkPart;
  friend void stop_point(double share);

  std::atomic<double>& done_;
  double begin_ = 0;  ///< of the part under way
  double width_;
  WorkScope* outer_;
};

/// While it lives, the thread works on a part of the part under way, between two shares of that.
class WorkPart {
 public:
  WorkPart(double begin, double end);
  /// Part i of `count` equal ones.
  static WorkPart number(std::size_t i, std::size_t count) {
    const auto all = static_cast<double>(count);
    return {static_cast<double>(i) / all, static_cast<double>(i + 1) / all};
  }
  ~WorkPart();
  WorkPart(const WorkPart&) = delete;
  WorkPart& operator=(const WorkPart&) = delete;

 private:
  double begin_ = 0;  ///< of the part around it
  double width_ = 0;
};

/// Called in loops about every millisecond of work.
void stop_point();
/// The same where a share of the part under way is done.
void stop_point(double share);

/// The function of the scope that this thread is in, empty where it is in none.
std::function<bool()> stop_of_scope();

}  // namespace headlab
