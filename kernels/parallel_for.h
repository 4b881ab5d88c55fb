// SPDX-License-Identifier: Apache-2.0
/// \file The loop over independent work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace headlab {

/// Calls work(0) .. work(count - 1) once each, smaller indices first, on up to `threads` threads,
/// one of which is the caller's. Carries on with fewer threads where the system starts no more.
/// After a call has thrown, no further one starts, and the exception of the smallest index is
/// rethrown once the calls in progress have returned. In a StopScope (stopping.h) the calls are in
/// it too, and none starts after it says stop.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

/// Number of threads for a number asked for, 0 meaning all hardware threads of this machine.
int thread_count(int asked);

}  // namespace headlab
