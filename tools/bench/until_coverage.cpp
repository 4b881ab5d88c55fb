// SPDX-License-Identifier: Apache-2.0
// Measures runs that end by their standard error (docs/measured/precision.md).
//
//     headlab_until_coverage [STUDIES [SEED]]
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "kernels/parallel_for.h"
#include "validation/statistics/testing/until_study.h"

int main(int argc, char** argv) {
  using namespace headlab;
  const std::uint64_t studies = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::printf("%llu studies a row, seed %llu\n", static_cast<unsigned long long>(studies),
              static_cast<unsigned long long>(seed));
  std::printf(
      "| figure is a mean of | least replicates | coverage at the stop | at fixed R | looks "
      "| excess |\n|---|---|---|---|---|---|\n");
  for (const double least : {3000.0, 10000.0, 100000.0}) {
    for (const UntilSetting& setting : until_settings(least)) {
      const UntilRates rates = until_rates(setting, studies, seed, thread_count(0));
      const auto share = [&](std::uint64_t count) {
        return static_cast<double>(count) / static_cast<double>(rates.studies);
      };
      std::printf("| %s | %.0f | %.3f | %.3f | %.2f | %.1f %% |\n", setting.name.c_str(), least,
                  share(rates.covered), share(rates.covered_fixed), rates.looks,
                  100 * rates.excess);
    }
  }
}
