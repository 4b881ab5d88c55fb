// SPDX-License-Identifier: Apache-2.0
/// \file Runs a check on every SIMD target of the machine; for tests.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "kernels/cpu/backend.h"

namespace headlab::test {

/// Runs `check` once for every SIMD target of this machine.
template <class Check>
void on_every_target(const Check& check) {
  for (const std::int64_t target : cpu_targets()) {
    SCOPED_TRACE(cpu_simd_name(target));
    use_cpu_target(target);
    check();
  }
  use_cpu_target(0);
}

}  // namespace headlab::test
