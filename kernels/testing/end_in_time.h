// SPDX-License-Identifier: Apache-2.0
/// \file An end for processes of death tests that may hang.
#pragma once

#include <unistd.h>

namespace headlab::test {

/// Has this process killed after so many seconds. gpu-check gives a test alone 20.
inline void end_in_time(unsigned seconds = 15) {
  ::alarm(seconds);
}

}  // namespace headlab::test
