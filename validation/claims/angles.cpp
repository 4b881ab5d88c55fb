// SPDX-License-Identifier: Apache-2.0
// How the angles between two heads' subspaces govern what their noise has in common.
//
// Theorem (X ~ N(0, I), one rotation-invariant kernel and bandwidth, constant s2, noise alone): at
// x = 0, and averaged over queries x ~ N(0, I),
//   C_hl = s2 n sum_alpha prod_j (cos t_j)^|alpha_j| G_alpha^2
// at every n and k. So C increases in every cos^2 t_j, and is s2/n at right angles. At a fixed
// query off the centre this is false, and the floor s2/n needs independent projected keys.
#include "validation/claims/claim.h"
#include "validation/claims/counterexample_of.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

/// The conditions turn one angle after the other towards 0, the first has right angles alone.
std::vector<Finding> increases(Experiment& experiment) {
  Finding finding;
  for (std::size_t i = 1; i < experiment.conditions(); ++i) {
    finding.comparisons.push_back(at_least_zero(
        "n C/s2 of angles " + experiment.condition(i).swept.at(0) + " less that of " +
            experiment.condition(i - 1).swept.at(0),
        experiment.observed(i).head_covariance_mean -
            experiment.observed(i - 1).head_covariance_mean,
        noise_floor(experiment.condition(i)), experiment.margin(), experiment.node_counts()));
  }
  return {std::move(finding)};
}

/// n C/s2 = 1 for every condition, all of right angles.
std::vector<Finding> floor_holds(Experiment& experiment) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const std::vector<std::string>& swept = experiment.condition(i).swept;
    const double floor = noise_floor(experiment.condition(i));
    finding.comparisons.push_back(
        equal_to("n C/s2 at right angles, less 1" + (swept.empty() ? "" : ", " + swept.front()),
                 experiment.observed(i).head_covariance_mean, floor, floor, experiment.margin(),
                 experiment.node_counts()));
  }
  return {std::move(finding)};
}

std::vector<Finding> increases_to_floor(Experiment& experiment) {
  std::vector<Finding> findings = increases(experiment);
  const double floor = noise_floor(experiment.condition());
  findings[0].comparisons.push_back(equal_to("n C/s2 at right angles, less 1",
                                             experiment.observed(0).head_covariance_mean, floor,
                                             floor, experiment.margin(), experiment.node_counts()));
  return findings;
}

/// Condition 0 has heads at right angles, condition 1 at a smaller angle; both heads see the query
/// at the same distances, so that V is the same and the MSE tells C.
std::vector<Finding> orthogonal_is_best(Experiment& experiment) {
  Finding finding;
  finding.comparisons.push_back(at_least_zero(
      "n C/s2 of the smaller angle less that at right angles",
      experiment.observed(1).head_covariance_mean - experiment.observed(0).head_covariance_mean,
      noise_floor(experiment.condition()), experiment.margin(), experiment.node_counts()));
  finding.counterexample = counterexample_of(experiment, 0, 1);
  return {std::move(finding)};
}

}  // namespace

Claim angles_claim() {
  const std::string theorem =
      "The noise covariance of two heads grows as any principal angle between them shrinks";
  const std::string setting =
      "X ~ N(0, I), Gaussian kernel of one bandwidth, constant noise variance, noise alone";
  return {.name = "angles",
          .forms = {{.name = "centre",
                     .statement = theorem + ", and is s2/n at right angles: at the query x = 0.",
                     .assumptions = setting + ", x = 0.",
                     .refuted_by = "A covariance that falls beyond the zone as one angle shrinks, "
                                   "or another floor.",
                     .examine = increases_to_floor},
                    {.name = "query average",
                     .statement = theorem + ", averaged over queries x ~ N(0, I).",
                     .assumptions = setting + "; the average over 128 queries drawn once.",
                     .refuted_by = "A mean covariance that falls beyond the zone as one angle "
                                   "shrinks.",
                     .examine = increases},
                    {.name = "off centre",
                     .statement = theorem + ", at every single query.",
                     .assumptions = setting + ", x anywhere.",
                     .refuted_by = "A query at which heads at a smaller angle have less in common.",
                     .examine = orthogonal_is_best},
                    {.name = "floor",
                     .statement = "Heads at right angles have noise covariance s2/n at any query.",
                     .assumptions = "Projected keys of the two heads are independent (normal "
                                    "design), constant noise variance, weights that sum to 1.",
                     .refuted_by = "Another value, beyond the margin.",
                     .examine = floor_holds},
                    {.name = "floor, any design",
                     .statement =
                         "Heads at right angles have noise covariance s2/n, whatever the design.",
                     .assumptions = "None on the design: uncorrelated coordinates are enough.",
                     .refuted_by = "A design with another value, beyond the margin.",
                     .examine = floor_holds}}};
}

}  // namespace headlab
