// SPDX-License-Identifier: Apache-2.0
/// \file Arithmetic without subnormal numbers.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headlab {

/// While one lives, operations of its thread take floats below 2^-126 for 0, whether they go in or
/// come out. Processors may take a hundred times as long for such numbers, and in narrow windows
/// they are what most weights and products of weights would be. Does nothing where the processor is
/// not an x86-64, which costs no more than time.
class WithoutSubnormals {
 public:
#if defined(__x86_64__)
  WithoutSubnormals() : before_(_mm_getcsr()) {
    constexpr unsigned flush_results = 0x8000, flush_operands = 0x0040;
    _mm_setcsr(before_ | flush_results | flush_operands);
  }
  ~WithoutSubnormals() {
    _mm_setcsr(before_);
  }
#else
  WithoutSubnormals() {}
#endif
  WithoutSubnormals(const WithoutSubnormals&) = delete;
  WithoutSubnormals& operator=(const WithoutSubnormals&) = delete;

 private:
#if defined(__x86_64__)
  unsigned before_;
#endif
};

}  // namespace headlab
