// SPDX-License-Identifier: Apache-2.0
/// \file What a core can do at most: vector multiply-adds that wait for nothing.
#pragma once

#include <cstdint>

namespace headlab::bench {

/// Runs `rounds` rounds of independent float32 multiply-adds in registers and returns a sum of the
/// results, with the vectors that the `cpu` backend uses here.
float run_fmas(std::uint64_t rounds);

/// Multiply-adds of one lane in one round.
std::uint64_t fmas_per_round();

}  // namespace headlab::bench
