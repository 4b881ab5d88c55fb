// SPDX-License-Identifier: Apache-2.0
/// \file A head that keeps its largest weights, exactly at n independent points: one more
/// quadrature around that of a plain head.
#pragma once

#include <cstdint>

#include "validation/theory/exact/scalar_finite_n.h"

namespace headlab {

/// Given the (k+1)-th largest weight, the k largest are those of independent points beyond it, and
/// P(L <= its level) has the law Beta(k + 1, n - k).
/// \param kept k < n
HeadMoments top_moments(std::uint64_t n, std::uint64_t kept, const ScalarHead& head,
                        const DesignOf& design, const Resolution& resolution);

struct RatioMoments : HeadMoments {
  double mean_kept = 0;  ///< tokens
};

/// Given the largest weight w, the others are those of independent points with less, of which the
/// ones of at least `ratio` times w are kept.
RatioMoments ratio_moments(std::uint64_t n, double ratio, const ScalarHead& head,
                           const DesignOf& design, const Resolution& resolution);

}  // namespace headlab
