// SPDX-License-Identifier: Apache-2.0
/// \file What computed a result, and how the computation ended.
#pragma once

#include <string>

namespace headlab {

struct Machine {
  std::string backend;  ///< "reference", "cpu", "cuda"
  std::string simd;     ///< instruction set in use, "none" without one
  std::string device;   ///< processor or GPU
  int threads = 1;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("backend", backend, "backend");
    visit("simd", simd, "SIMD target");
    visit("device", device, "processor or GPU");
    visit("threads", threads, "threads");
  }
};

struct Outcome {
  bool complete = true;      ///< everything asked for was computed
  bool interrupted = false;  ///< the caller's flag stopped it, and not its deadline
  double seconds = 0;        ///< wall time
};

}  // namespace headlab
