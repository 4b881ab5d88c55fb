// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace headlab::fuzz {

/// While there is one, what this thread allocates and frees is not of the reader: the trees in the
/// place of the NetCDF library keep whole files, and texts that the library would pack.
class Uncounted {
 public:
  Uncounted() { ++now; }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
  ~Uncounted() { --now; }

  static inline thread_local int now = 0;
};

}  // namespace headlab::fuzz
