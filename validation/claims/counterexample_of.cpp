// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/counterexample_of.h"

namespace headlab {

Counterexample counterexample_of(Experiment& experiment, std::size_t first, std::size_t second) {
  const Jackknifed& a = experiment.observed(first).mse;
  const Jackknifed& b = experiment.observed(second).mse;
  const std::vector<double>& counts = experiment.node_counts();
  Counterexample counterexample{.scenario = experiment.scenario().text,
                                .seed = experiment.condition().seed,
                                .replicates = experiment.replicates(),
                                .first_mse = a.figure(counts),
                                .second_mse = b.figure(counts),
                                .difference = (a - b).figure(counts)};
  counterexample.z = counterexample.difference.value / counterexample.difference.mcse;
  return counterexample;
}

}  // namespace headlab
