// SPDX-License-Identifier: Apache-2.0
/// \file Ending long work from within.
#pragma once

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

/// Called in loops about every millisecond of work.
void stop_point();

/// The function of the scope that this thread is in, empty where it is in none.
std::function<bool()> stop_of_scope();

}  // namespace headlab
