// SPDX-License-Identifier: Apache-2.0
#include "kernels/learning/head_gradients.h"

#include "kernels/testing/learning_agreement.h"

namespace headlab {
namespace {

using test::answer;
using test::FitAnswer;
using test::FitCase;
using test::make_fit_case;

const GaussianKernel gaussian{.bandwidth = 0.7};
const SoftmaxKernel softmax{.temperature = 1.3};

/// sum_qh s_qh f_qh.
double objective(const FitCase& c, HeadGradients& gradients) {
  std::vector<double> f(c.s.size());
  gradients.estimate(c.heads, c.asked(), f);
  double sum = 0;
  for (std::size_t i = 0; i < f.size(); ++i) sum += c.s[i] * f[i];
  return sum;
}

/// Central differences of the objective in every number of `of`, which is part of c.heads.
std::vector<double> differences(FitCase& c, HeadGradients& gradients, std::vector<double>& of) {
  // Its own error is near step^2 and eps / step, both below 1e-9.
  const double step = 1e-5;
  std::vector<double> slopes;
  for (double& number : of) {
    const double at = number;
    number = at + step;
    const double above = objective(c, gradients);
    number = at - step;
    const double below = objective(c, gradients);
    number = at;
    slopes.push_back((above - below) / (2 * step));
  }
  return slopes;
}

double relative_error(const std::vector<double>& given, const std::vector<double>& exact) {
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    error += (given.at(i) - exact[i]) * (given.at(i) - exact[i]);
    size += exact[i] * exact[i];
  }
  return std::sqrt(error / size);
}

TEST(HeadGradients, ReferenceAgreesWithCentralDifferences) {
  for (const KernelLaw& kernel : std::vector<KernelLaw>{gaussian, softmax}) {
    for (const bool separate : {false, true}) {
      if (separate && norm_coefficient_of(kernel) != 0) continue;
      FitCase c = make_fit_case({.separate = separate}, kernel);
      const auto reference = make_reference_gradients(kernel);
      const FitAnswer exact = answer(c, *reference);

      const std::vector<double> of_keys = differences(c, *reference, c.heads.keys);
      EXPECT_LE(relative_error(exact.gradient.keys, of_keys), 1e-7);
      const std::vector<double> of_queries = differences(c, *reference, c.heads.queries);
      if (separate) {
        EXPECT_LE(relative_error(exact.gradient.queries, of_queries), 1e-7);
      }

      // Negative control: one number of the wrong sign.
      std::vector<double> wrong = exact.gradient.keys;
      wrong[3] *= -1;
      EXPECT_GT(relative_error(wrong, of_keys), 1e-7);
    }
  }
}

TEST(HeadGradients, LeavesThePointItselfOut) {
  FitCase c = make_fit_case({}, gaussian);
  const auto reference = make_reference_gradients(gaussian);
  const FitAnswer before = answer(c, *reference);
  const auto own = static_cast<std::size_t>(c.own[0]);
  c.points.y[own] += 1000;
  const FitAnswer after = answer(c, *reference);
  EXPECT_EQ(after.f[0], before.f[0]);
  EXPECT_NE(after.f[2 * 3], before.f[2 * 3]);  // the third query is no point of the set
}

}  // namespace
}  // namespace headlab
