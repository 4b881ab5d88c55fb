// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/backend.h"
#include "kernels/testing/learning_agreement.h"

namespace headlab {
namespace {

using test::answer;
using test::FitAnswer;
using test::FitCase;
using test::make_fit_case;

TEST(CpuGradients, KeepTheirDigitsWherePointsAreFarOut) {
  for (const KernelLaw& kernel : test::learnable_kernels({})) {
    FitCase near = make_fit_case({.n = 500}, kernel);
    // Multiples of 2^-13, which stay what they are at 512.
    for (std::vector<float>* x : {&near.points.x, &near.queries}) {
      for (float& coordinate : *x) coordinate = std::round(coordinate * 8192) / 8192;
    }
    FitCase far = near;
    for (std::vector<float>* x : {&far.points.x, &far.queries}) {
      if (x == &far.queries && norm_coefficient_of(kernel) == 0) continue;
      for (float& coordinate : *x) coordinate += 512;
    }
    const FitAnswer of_near = answer(near, *make_cpu_gradients(kernel, 1));
    const FitAnswer of_far = answer(far, *make_cpu_gradients(kernel, 1));
    double size = 0;
    double error = 0;
    for (std::size_t i = 0; i < of_near.gradient.keys.size(); ++i) {
      size = std::max(size, std::abs(of_near.gradient.keys[i]));
      error = std::max(error, std::abs(of_near.gradient.keys[i] - of_far.gradient.keys[i]));
    }
    // Nothing is lost but what sums of 500 terms round; without centring it would be 512^2 times
    // that.
    EXPECT_LE(error, 1024 * test::eps32 * size);
    EXPECT_GT(size, 0);
  }
}

TEST(CpuGradients, HaveTheSameBitsOnAnyNumberOfThreads) {
  const FitCase c =
      make_fit_case({.n = 20000, .heads = 2, .queries = 130}, GaussianKernel{.bandwidth = 0.7});
  const FitAnswer one = answer(c, *make_cpu_gradients(c.kernel, 1));
  const FitAnswer three = answer(c, *make_cpu_gradients(c.kernel, 3));
  EXPECT_EQ(one.f, three.f);
  EXPECT_EQ(one.gradient.keys, three.gradient.keys);
}

}  // namespace
}  // namespace headlab
