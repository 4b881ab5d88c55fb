// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/scalar_finite_n.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "validation/theory/exact/scalar_tables.h"

namespace headlab {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::VectorXd;

namespace {

Nodes head_sigma_nodes(const ScalarHead& head, const SigmaRange& range, std::uint64_t n,
                       const Resolution& resolution) {
  double smoothing = head.laws[0].sd;
  for (const ScalarLaw& law : head.laws) smoothing = std::min(smoothing, law.sd);
  return sigma_nodes(head, range, n, smoothing, resolution);
}

}  // namespace

std::vector<DesignNodes> noise_nodes(const ScalarHead& head, const SigmaRange& range, double s2,
                                     const Resolution& resolution) {
  std::vector<DesignNodes> design;
  for (std::size_t c = 0; c < head.laws.size(); ++c) {
    const Nodes u = scalar_nodes(head.laws[c], {{head, range}},
                                 head.laws[c].sd * resolution.widest(), resolution);
    const ArrayXd probability =
        head.weights[c] *
        (head.dimension > 1 ? u.weights * radial_density(head, u.points) : masses(u, head.laws[c]));
    design.push_back({.level = head.minus_log_kernel(u.points),
                      .probability = probability,
                      .mean = ArrayXd::Zero(probability.size()),
                      .square = s2 * probability});
  }
  return design;
}

HeadMoments head_moments(std::uint64_t points, const Nodes& sigma,
                         const std::vector<DesignNodes>& design) {
  // Expectations over the design, [sigma]; "second" is (sK)^2 e^(-sK).
  const Index size = sigma.points.size();
  ArrayXd fall = ArrayXd::Zero(size);
  ArrayXd first = ArrayXd::Zero(size);
  ArrayXd mean_first = ArrayXd::Zero(size);
  ArrayXd square_second = ArrayXd::Zero(size);
  for (const DesignNodes& nodes : design) {
    const KernelTable table = kernel_table(nodes.level, sigma.points);
    fall += (table.fall.transpose() * nodes.probability).array();
    first += (table.first.transpose() * nodes.probability).array();
    mean_first += (table.first.transpose() * nodes.mean).array();
    for (Index j = 0; j < size; ++j) {
      const ArrayXd scaled = (sigma.points(j) - nodes.level).min(700.0).exp();
      square_second(j) += (nodes.square.array() * scaled * table.first.col(j).array()).sum();
    }
  }

  const double n = static_cast<double>(points);
  const ArrayXd others = n * sigma.weights * power_of_phi(fall, n - 1).col(0);
  HeadMoments moments;
  moments.mean = (others * mean_first).sum();
  moments.square = (others * square_second).sum();
  moments.normalisation_error = (others * first).sum() - 1;
  if (points > 1) {
    const ArrayXd rest = sigma.weights * power_of_phi(fall, n - 2).col(0);
    moments.square += n * (n - 1) * (rest * mean_first.square()).sum();
  }
  return moments;
}

HeadMoments noise_head_moments(std::uint64_t n, double s2, const ScalarHead& head,
                               const SigmaRange& range, const Resolution& resolution) {
  return head_moments(n, head_sigma_nodes(head, range, n, resolution),
                      noise_nodes(head, range, s2, resolution));
}

std::vector<DesignNodes> scalar_design(const TheoryModel& model, double truth,
                                       const ScalarHead& head, const SigmaRange& range,
                                       const Resolution& resolution, const LevelRange& levels) {
  std::vector<DesignNodes> design;
  for (std::size_t c = 0; c < head.laws.size(); ++c) {
    const ScalarLaw& law = head.laws[c];
    const double spread = law.sd > 0 ? 1 / law.sd : 0;
    const ResponseMoments response(model, truth, model.design.components[c],
                                   head.direction * spread);
    const Nodes u =
        scalar_nodes(law, {{head, range}}, law.sd * resolution.widest(), resolution, levels);
    DesignNodes nodes = {.level = head.minus_log_kernel(u.points),
                         .probability = head.weights[c] * masses(u, law),
                         .mean = VectorXd(u.points.size()),
                         .square = VectorXd(u.points.size()),
                         .coarsened = u.coarsened};
    for (Index i = 0; i < u.points.size(); ++i) {
      const FunctionMoments moments =
          response(VectorXd::Constant(1, (u.points(i) - law.mean) * spread));
      nodes.mean(i) = nodes.probability(i) * moments.mean;
      nodes.square(i) = nodes.probability(i) * moments.mean_square;
    }
    design.push_back(std::move(nodes));
  }
  return design;
}

HeadMoments scalar_head_moments(const TheoryModel& model, std::uint64_t n, double truth,
                                const ScalarHead& head, const SigmaRange& range,
                                const Resolution& resolution) {
  const Nodes sigma = head_sigma_nodes(head, range, n, resolution);
  const std::vector<DesignNodes> design = scalar_design(model, truth, head, range, resolution);
  bool coarsened = false;
  for (const DesignNodes& nodes : design) {
    require_table_memory(
        2 * static_cast<double>(nodes.level.size()) * static_cast<double>(sigma.points.size()),
        resolution.at_once);
    coarsened = coarsened || nodes.coarsened;
  }
  HeadMoments moments = head_moments(n, sigma, design);
  moments.coarsened = coarsened;
  return moments;
}

void require_normalisation(double normalisation_error, const std::string& what) {
  if (std::abs(normalisation_error) <= 1e-7) return;
  throw InvalidInput(
      "exact finite-n theory does not converge for " + what + ": weights sum to one within " +
      formatted("%.2g", normalisation_error) +
      " (allowed: 1e-7) - simulate with headlab run, or take a larger n or bandwidth");
}

}  // namespace headlab
