// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/scalar_finite_n.h"

#include <cmath>
#include <vector>

#include "validation/theory/scalar_tables.h"

namespace headlab {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

HeadMoments scalar_head_moments(const TheoryModel& model, double truth, const ScalarHead& head,
                                const SigmaRange& range, const Resolution& resolution) {
  double smoothing = head.laws[0].sd;
  for (const ScalarLaw& law : head.laws) smoothing = std::min(smoothing, law.sd);
  const Nodes sigma = sigma_nodes(head, range, model.n, smoothing, resolution);

  // Expectations over the design, [sigma]; "second" is (sK)^2 e^(-sK).
  const Index size = sigma.points.size();
  ArrayXd fall = ArrayXd::Zero(size);
  ArrayXd first = ArrayXd::Zero(size);
  ArrayXd mean_first = ArrayXd::Zero(size);
  ArrayXd square_second = ArrayXd::Zero(size);
  for (std::size_t c = 0; c < head.laws.size(); ++c) {
    const ScalarLaw& law = head.laws[c];
    const double spread = law.sd > 0 ? 1 / law.sd : 0;
    const ResponseMoments response(model, truth, model.design.components[c],
                                   head.direction * spread);
    const Nodes u = scalar_nodes(law, {{head, range}}, law.sd * resolution.widest(), resolution);
    const ArrayXd level = head.minus_log_kernel(u.points);
    const VectorXd probability = head.weights[c] * u.weights;
    VectorXd mean(u.points.size());
    VectorXd square(u.points.size());
    for (Index i = 0; i < u.points.size(); ++i) {
      const FunctionMoments moments =
          response(VectorXd::Constant(1, (u.points(i) - law.mean) * spread));
      mean(i) = probability(i) * moments.mean;
      square(i) = probability(i) * moments.mean_square;
    }
    const KernelTable table = kernel_table(level, sigma.points);
    fall += (table.fall.transpose() * probability).array();
    first += (table.first.transpose() * probability).array();
    mean_first += (table.first.transpose() * mean).array();
    for (Index j = 0; j < size; ++j) {
      square_second(j) +=
          (square.array() * (sigma.points(j) - level).min(700.0).exp() * table.first.col(j).array())
              .sum();
    }
  }

  const double n = static_cast<double>(model.n);
  const ArrayXd others = n * sigma.weights * power_of_phi(fall, n - 1).col(0);
  HeadMoments moments;
  moments.mean = (others * mean_first).sum();
  moments.square = (others * square_second).sum();
  moments.certificate = (others * first).sum() - 1;
  if (model.n > 1) {
    moments.square += n * (n - 1) *
                      (sigma.weights * mean_first.square() * power_of_phi(fall, n - 2).col(0)).sum();
  }
  return moments;
}

}  // namespace headlab
