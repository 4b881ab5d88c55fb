// SPDX-License-Identifier: Apache-2.0
/// \file Memory at the alignment of vectors.
#pragma once

#include <cstddef>
#include <new>

#include <hwy/aligned_allocator.h>

namespace headlab {

/// Room for `count` numbers, not initialised. Throws std::bad_alloc, where Highway gives nothing.
template <class T>
hwy::AlignedFreeUniquePtr<T[]> allocate_aligned(std::size_t count) {
  hwy::AlignedFreeUniquePtr<T[]> memory = hwy::AllocateAligned<T>(count);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace headlab
