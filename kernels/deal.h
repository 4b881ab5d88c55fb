// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace headlab {

/// Calls work(0) .. work(count - 1), each once, on up to `threads` threads. Once a call throws no
/// more are begun, and the first exception is thrown again when all threads are done.
template <class Work>
void deal(std::size_t count, int threads, const Work& work) {
  if (threads <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  {
    const std::size_t most = std::min(count, static_cast<std::size_t>(threads));
    std::vector<std::jthread> workers;
    for (std::size_t worker = 0; worker < most; ++worker) {
      workers.emplace_back([&] {
        for (std::size_t i = next++; i < count; i = next++) {
          try {
            work(i);
          } catch (...) {
            const std::scoped_lock lock(mutex);
            if (!failure) failure = std::current_exception();
            next = count;
          }
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace headlab
