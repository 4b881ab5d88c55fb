// SPDX-License-Identifier: Apache-2.0
/// \file Runs a check on every SIMD target of the machine; for tests.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "kernels/cpu/backend.h"

namespace headlab::test {

/// Runs `check` once for every SIMD target of this machine.
template <class Check>
void on_every_target(const Check& check) {
  for (const std::int64_t target : cpu_targets()) {
    SCOPED_TRACE(cpu_simd_name(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace headlab::test
