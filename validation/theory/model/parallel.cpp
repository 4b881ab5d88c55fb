// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/model/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace headlab {

void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::size_t failed = count;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < threads; ++worker) {
      workers.emplace_back([&] {
        for (std::size_t i = next++; i < count; i = next++) {
          try {
            work(i);
          } catch (...) {
            const std::scoped_lock lock(mutex);
            // All smaller i have begun by now, so that the least to fail is always among them.
            if (i < failed) {
              failed = i;
              failure = std::current_exception();
            }
            next = count;
          }
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace headlab
