// SPDX-License-Identifier: Apache-2.0
#include "kernels/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/host.h"
#include "kernels/statistics/stopping.h"

namespace headlab {

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::size_t failed = count;
  std::exception_ptr failure;
  const std::function<bool()> stop = stop_of_scope();
  const auto run = [&] {
    std::size_t i = 0;
    try {
      const StopScope scope(stop);
      for (i = next++; i < count; i = next++) {
        stop_point();
        work(i);
      }
    } catch (...) {
      const std::scoped_lock lock(mutex);
      // Every smaller index has been started, so the smallest that fails is among those caught.
      if (i < failed) {
        failed = i;
        failure = std::current_exception();
      }
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t wanted = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
    try {
      while (others.size() + 1 < wanted) others.emplace_back(run);
    } catch (const std::exception&) {
      // Out of threads or memory: fewer threads give the same results.
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

int thread_count(int asked) {
  return asked > 0 ? asked : usable_processors();
}

}  // namespace headlab
