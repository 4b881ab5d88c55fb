// SPDX-License-Identifier: Apache-2.0
// Attention alone makes tokens equal. With D the largest distance of two tokens, |.| spectral norms
// and c = |b| sum_h |V_h| |M_h|/(4t),
//   D_L <= c^(-1/2) (c^(1/2) D_0)^(3^L),
// which is doubly exponential where c D_0^2 < 1. The other forms are in the scenarios.
#include "validation/claims/claim.h"
#include "validation/claims/diameter_bounds.h"

namespace headlab {

Claim collapse_claim() {
  return {
      .name = "collapse",
      .forms = {{.name = "bound",
                 .statement = "Where c D_0^2 < 1 pure attention collapses doubly exponentially: "
                              "D_L <= c^(-1/2) (c^(1/2) D_0)^(3^L), in every replicate.",
                 .assumptions = "Softmax, two heads, the same Gaussian maps in three layers, no "
                                "skip, norm, mask or MLP. The bound is headlab's; of Dong et "
                                "al. abstract and code were read.",
                 .refuted_by = "A replicate with a larger diameter in some layer.",
                 .origin = "Dong et al. 2021 (arXiv:2103.03404); Cirrincione "
                           "(arXiv:2604.23681), abstract",
                 .examine = within_diameter_bounds}}};
}

}  // namespace headlab
