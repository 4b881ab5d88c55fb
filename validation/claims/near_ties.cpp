// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/near_ties.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <utility>

#include <boost/math/interpolators/barycentric_rational.hpp>
#include <boost/math/tools/roots.hpp>

#include "engine/files/document.h"
#include "engine/scenario/world.h"
#include "validation/diversity/indices.h"
#include "validation/theory/finite_n.h"
#include "validation/theory/model/model.h"

namespace headlab {
namespace {

/// Heads in the plane, the first along the first axis and the others at these cosines to it.
TheoryModel plane_model(std::uint64_t n, double bandwidth, const std::vector<double>& cosines) {
  std::string matrices = "[[1], [0]]";
  for (double c : cosines) {
    const double sine = std::sqrt((1 - c) * (1 + c));
    matrices += ", [[" + number_text(c) + "], [" + number_text(sine) + "]]";
  }
  return theory_model(
      World{.n = std::to_string(n),
            .design = R"({ law = "normal", dim = 2 })",
            .noise = R"({ law = "normal", sd = 1.0 })",
            .heads = "count = " + std::to_string(cosines.size() + 1) +
                     "\ndim = 1\nsubspaces = { law = \"explicit\", matrices = [" + matrices + "] }",
            .kernel = "{ law = \"gaussian\", bandwidth = " + number_text(bandwidth) + " }",
            .points = "[[0, 0]]",
            .run = "replicates = 8"}
          .condition());
}

/// n C / s^2 to leading order, of two directions.
double leading_noise(double cosine, double bandwidth) {
  const double tilt = 1 / (bandwidth * bandwidth);
  return std::sqrt(std::pow(1 + tilt, 2) /
                   ((1 + tilt) * (1 + tilt) - tilt * tilt * cosine * cosine));
}

/// The cosine in [0, 1] at which a function that does not fall reaches `level`.
double cosine_at(const std::function<double(double)>& rising, double level) {
  const auto excess = [&](double cosine) { return rising(cosine) - level; };
  if (excess(0) >= 0) return 0;
  if (excess(1) <= 0) return 1;
  const auto [low, high] =
      boost::math::tools::bisect(excess, 0.0, 1.0, boost::math::tools::eps_tolerance<double>(50));
  return 0.5 * (low + high);
}

}  // namespace

std::function<double(double)> exact_noise(std::uint64_t n, double bandwidth, int nodes) {
  if (n < 2 || nodes < 2) throw std::invalid_argument("exact noise needs n >= 2 and nodes >= 2");
  std::vector<double> squares, cosines;
  for (int i = nodes - 1; i >= 0; --i) {
    squares.push_back(0.5 + 0.5 * std::cos(std::numbers::pi * i / (nodes - 1)));
    cosines.push_back(std::sqrt(squares.back()));
  }
  squares.front() = 0, cosines.front() = 0;
  squares.back() = 1, cosines.back() = 1;
  const TheoryModel model = plane_model(n, bandwidth, cosines);
  const double scale = static_cast<double>(n);
  const FiniteNHead head = finite_n_head(model, 0, 0);
  const auto leading = [=](double cosine) { return leading_noise(cosine, bandwidth); };
  // Over its leading order, which rises steeply where C is hard to interpolate.
  std::vector<double> values{1.0};  // independent directions: s^2/n exactly
  for (std::size_t j = 1; j + 1 < cosines.size(); ++j) {
    values.push_back(scale * finite_n_pair(model, 0, 0, j + 1, head, head).covariance /
                     leading(cosines[j]));
  }
  values.push_back(scale * head.variance / leading(1));
  // Of the highest order: the interpolating polynomial.
  const auto order = squares.size() - 1;
  const auto curve = std::make_shared<boost::math::barycentric_rational<double>>(
      std::move(squares), std::move(values), order);
  return [=](double cosine) { return (*curve)(cosine * cosine) * leading(cosine); };
}

NearTies overlap_near_ties(std::uint64_t n, double bandwidth,
                           const std::vector<Matrices>& head_sets) {
  const auto noise = exact_noise(n, bandwidth);
  const auto correlation = [&](double cosine) { return overlap({cosine}, bandwidth); };
  const double own = noise(1);
  NearTies ties;
  for (const Matrices& subspaces : head_sets) {
    double rho = 0, covariance = 0;  // means over the three pairs
    for (const auto& [h, l] : {std::pair(0U, 1U), std::pair(0U, 2U), std::pair(1U, 2U)}) {
      const double cosine = principal_cosines(subspaces[h], subspaces[l])[0];
      rho += correlation(cosine) / 3;
      covariance += noise(cosine) / 3;
    }
    const double same_index = noise(cosine_at(correlation, rho));
    const double same_error = correlation(cosine_at(noise, covariance));
    ties.error_gap = std::max(ties.error_gap, std::abs(covariance - same_index) /
                                                  (0.5 * own + std::min(covariance, same_index)));
    ties.index_gap = std::max(ties.index_gap, std::abs(rho - same_error));
  }
  return ties;
}

}  // namespace headlab
