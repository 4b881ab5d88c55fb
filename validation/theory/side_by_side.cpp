// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/side_by_side.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace headlab {
namespace {

ComparedFigure compared(std::string name, const Estimate& simulated, const Remainder& computed) {
  ComparedFigure figure{std::move(name), simulated, computed};
  if (simulated.mcse > 0) figure.z = (simulated.value - computed.value) / simulated.mcse;
  return figure;
}

/// Takes `candidate` where its |z| is larger; the first one stands until there is a z.
void keep_larger(ComparedFigure& largest, ComparedFigure candidate) {
  const bool first = largest.name.empty();
  const bool larger = !std::isnan(candidate.z) &&
                      (std::isnan(largest.z) || std::abs(candidate.z) > std::abs(largest.z));
  if (first || larger) largest = std::move(candidate);
}

}  // namespace

SideBySide side_by_side(const ConditionEstimates& simulated,
                        const ErrorTerms<Remainder>& computed) {
  SideBySide both;
  const auto estimates = numbers_of<Estimate>(simulated);
  const auto closed = numbers_of<Remainder>(computed);
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    if (estimates[i].text.role == TableRole::file_only) continue;
    const std::string name = estimates[i].name;
    both.figures.push_back(compared(name, *estimates[i].number, *closed[i].number));
    if (name == "bias_squared") both.figures.back().z = std::numeric_limits<double>::quiet_NaN();
  }

  ComparedFigure bias, variance, covariance;
  for (std::size_t q = 0; q < simulated.queries.size(); ++q) {
    const QueryEstimates& left = simulated.queries[q];
    const QueryErrorTerms<Remainder>& right = computed.queries[q];
    const std::string at = " at query " + std::to_string(q + 1);
    const std::size_t heads = left.head_bias.size();
    for (std::size_t h = 0; h < heads; ++h) {
      const std::string head = " of head " + std::to_string(h + 1) + at;
      keep_larger(bias, compared("bias" + head, left.head_bias[h], right.head_bias[h]));
      if (left.head_covariance.empty()) continue;  // aggregate moments
      for (std::size_t l = 0; l <= h; ++l) {
        const Estimate& one = left.head_covariance[h * heads + l];
        const Remainder& other = right.head_covariance[h * heads + l];
        if (l == h) {
          keep_larger(variance, compared("variance" + head, one, other));
        } else {
          keep_larger(covariance, compared("covariance of heads " + std::to_string(l + 1) +
                                               " and " + std::to_string(h + 1) + at,
                                           one, other));
        }
      }
    }
  }
  for (const ComparedFigure& largest : {bias, variance, covariance}) {
    if (!largest.name.empty()) both.largest.push_back(largest);
  }
  return both;
}

}  // namespace headlab
