// SPDX-License-Identifier: Apache-2.0
/// \file Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace headlab {

/// Calls work(i) once for every i < count, smaller i first, on `threads` >= 1 threads. Where calls
/// throw, work not yet begun is left out and the exception of the least i is thrown.
void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace headlab
