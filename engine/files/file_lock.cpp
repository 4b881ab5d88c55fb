// SPDX-License-Identifier: Apache-2.0
#include "engine/files/file_lock.h"

#include <cerrno>
#include <chrono>
#include <sys/file.h>
#include <thread>

namespace headlab {

bool wait_for_lock(int descriptor, const std::function<bool()>& stop) {
  // Asked again and again: a signal is taken by another thread, so that it ends no call in this
  // one.
  constexpr std::chrono::milliseconds again{20};
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    if (stop && stop()) return false;
    std::this_thread::sleep_for(again);
  }
  return true;
}

}  // namespace headlab
