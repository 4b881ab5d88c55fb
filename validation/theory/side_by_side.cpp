// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/side_by_side.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "engine/moments/figure_rounding.h"

namespace headlab {
namespace {

/// \param rounding of the simulated figure
ComparedFigure compared(std::string name, const Estimate& simulated, const Remainder& computed,
                        double rounding) {
  ComparedFigure figure{std::move(name), simulated, computed};
  if (!(simulated.mcse > 0) || simulated.allowance > 0) return figure;
  const double remainder = std::isnan(computed.remainder) ? 0 : computed.remainder;
  figure.z_scale = std::hypot(simulated.mcse, remainder, rounding);
  figure.z = (simulated.value - computed.value) / figure.z_scale;
  return figure;
}

constexpr double eps = std::numeric_limits<float>::epsilon();

/// The MSE with the remainder that is known of it.
Remainder mse_of(const ErrorTerms<Remainder>& computed) {
  Remainder mse = computed.mse;
  if (std::isnan(mse.remainder)) {
    mse.remainder = computed.variance_term.remainder + computed.covariance_term.remainder;
  }
  return mse;
}

/// Takes `candidate` where its |z| is larger; the first one stands until there is a z.
void keep_larger(ComparedFigure& largest, ComparedFigure candidate) {
  const bool first = largest.name.empty();
  const bool larger = !std::isnan(candidate.z) &&
                      (std::isnan(largest.z) || std::abs(candidate.z) > std::abs(largest.z));
  if (first || larger) largest = std::move(candidate);
}

}  // namespace

SideBySide side_by_side(const LayerEstimates& simulated, const TheoryResult& computed) {
  SideBySide both;
  ComparedFigure largest;
  for (std::size_t l = 0; l < simulated.rows.size(); ++l) {
    for (const std::size_t i : computed.listed) {
      const Remainder& closed = computed.layers.rows.at(l).metrics[i];
      const Estimate& estimate = simulated.rows[l].metrics[i];
      if (std::isnan(closed.value) && std::isnan(estimate.value)) continue;
      ComparedFigure figure =
          compared("layers[" + std::to_string(l) + "]." + layer_metric_descriptions()[i].name,
                   estimate, closed, 0);
      if (computed.source == "bound") {
        figure.z_scale = std::numeric_limits<double>::quiet_NaN();
        figure.z = std::numeric_limits<double>::quiet_NaN();
      }
      keep_larger(largest, figure);
      both.figures.push_back(std::move(figure));
    }
  }
  if (!std::isnan(largest.z)) both.largest.push_back(largest);
  return both;
}

SideBySide side_by_side(const ConditionEstimates& simulated, const ErrorTerms<Remainder>& computed,
                        const std::vector<double>& truth) {
  SideBySide both;
  const ErrorTerms<double> rounded = figure_roundings(computed, truth, eps);
  const auto roundings = numbers_of<double>(rounded);
  const auto estimates = numbers_of<Estimate>(simulated);
  const auto closed = numbers_of<Remainder>(computed);
  const std::size_t built_in = estimates.size() - simulated.measures.size();
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    // Measures have no bound of the rounding.
    if (estimates[i].text.role == TableRole::file_only || i >= built_in) continue;
    const std::string name = estimates[i].name;
    both.figures.push_back(compared(name, *estimates[i].number,
                                    name == "mse" ? mse_of(computed) : *closed[i].number,
                                    *roundings[i].number));
    if (name == "mse") both.figures.back().computed = computed.mse;
    const bool is_unknown = name != "mse" && std::isnan(closed[i].number->remainder);
    if (name == "bias_squared" || is_unknown || divides_by_noise(simulated, *estimates[i].number)) {
      both.figures.back().z_scale = std::numeric_limits<double>::quiet_NaN();
      both.figures.back().z = std::numeric_limits<double>::quiet_NaN();
    }
  }

  ComparedFigure bias, variance, covariance;
  for (std::size_t q = 0; q < simulated.queries.size(); ++q) {
    const QueryEstimates& left = simulated.queries[q];
    const QueryErrorTerms<Remainder>& right = computed.queries[q];
    const std::string at = " at query " + std::to_string(q);
    const std::size_t heads = left.head_bias.size();
    for (std::size_t h = 0; h < heads; ++h) {
      const std::string head = " of head " + std::to_string(h) + at;
      const double u = head_rounding(right, h, truth[q], eps);
      keep_larger(bias, compared("bias" + head, left.head_bias[h], right.head_bias[h], u));
      if (left.head_covariance.empty()) continue;  // aggregate moments
      for (std::size_t l = 0; l <= h; ++l) {
        const Estimate& one = left.head_covariance[h * heads + l];
        const Remainder& other = right.head_covariance[h * heads + l];
        const double rounding = covariance_rounding(right, h, l, truth[q], eps);
        if (l == h) {
          keep_larger(variance, compared("variance" + head, one, other, rounding));
        } else {
          keep_larger(covariance, compared("covariance of heads " + std::to_string(l) + " and " +
                                               std::to_string(h) + at,
                                           one, other, rounding));
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
