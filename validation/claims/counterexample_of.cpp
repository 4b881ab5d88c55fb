// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/counterexample_of.h"

namespace headlab {

Certificate certificate_of(Experiment& experiment, std::size_t first, std::size_t second) {
  const Sampled& a = experiment.observed(first).mse;
  const Sampled& b = experiment.observed(second).mse;
  const std::vector<double>& counts = experiment.node_counts();
  Certificate certificate{.scenario = experiment.study().text,
                          .seed = experiment.scenario().seed,
                          .replicates = experiment.replicates(),
                          .first_mse = a.figure(counts),
                          .second_mse = b.figure(counts),
                          .difference = (a - b).figure(counts)};
  certificate.z = certificate.difference.value / certificate.difference.mcse;
  return certificate;
}

}  // namespace headlab
