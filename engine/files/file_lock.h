// SPDX-License-Identifier: Apache-2.0
/// \file Waiting for other processes that have a file.
#pragma once

#include <functional>

namespace headlab {

/// Waits for the lock of an open file, which is released where it is closed. False once `stop`,
/// which may be empty, returns true before that: a lock that is free is taken all the same. A file
/// system without locks keeps nobody out.
bool wait_for_lock(int descriptor, const std::function<bool()>& stop);

}  // namespace headlab
