// SPDX-License-Identifier: Apache-2.0
/// \file What tools/bench/compare measures, as both builds understand it: only grow it at the end.
#pragma once

/// The functions that both builds show.
#define HEADLAB_COMPARED __attribute__((visibility("default")))

namespace headlab::bench {

struct CompareWork {
  long n, d, k, heads, queries, conditional, aggregate, cosines, replicates;
  double bandwidth;
};

}  // namespace headlab::bench
