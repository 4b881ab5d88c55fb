// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_laws.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

/// Log weight at a squared distance in units of the design.
template <class Law, class T>
T at(const Law& kernel, T r2) {
  const double unit = kernel.length_scale() * kernel.length_scale();
  return kernel.log_weight(r2 / static_cast<T>(unit));
}
template <class T>
T prior_at(const SoftmaxKernel& kernel, T norm2) {
  return kernel.log_prior(norm2 / static_cast<T>(kernel.temperature));
}

/// What the backends take for granted: see kernels/law/kernel/kernel_law.h.
template <std::size_t Index = 0>
void expect_one_at_the_query_and_falling() {
  if constexpr (Index < std::variant_size_v<KernelLaws>) {
    using Law = std::variant_alternative_t<Index, KernelLaws>;
    SCOPED_TRACE(Law::name);
    const Law kernel;
    EXPECT_EQ(kernel.log_weight(0.0), 0.0);
    EXPECT_EQ(kernel.log_weight(0.0f), 0.0f);
    double before = 0;
    for (double u = 1e-12; u < 1e12; u *= 1.1) {
      EXPECT_TRUE(kernel.log_weight(u) <= before) << u;
      before = kernel.log_weight(u);
    }
    EXPECT_LT(before, -1e3);
    expect_one_at_the_query_and_falling<Index + 1>();
  }
}

TEST(KernelLaws, AreOneAtTheQueryAndFallFromThere) {
  expect_one_at_the_query_and_falling();
}

struct OtherWidth {
  double scale = 1;
};
struct TwoWidths {
  double bandwidth = 1;
  double temperature = 1;
};
struct FloatWidth {
  float bandwidth = 1;
};
struct NoFormula : GaussianKernel {
  double log_weight(double) const = delete;
};

TEST(KernelLaws, HaveOneWidthUnderANameThatIsKnown) {
  EXPECT_TRUE(HasKernelWidth<GaussianKernel>);
  EXPECT_TRUE(HasKernelWidth<SoftmaxKernel>);
  EXPECT_FALSE(HasKernelWidth<OtherWidth>);
  EXPECT_FALSE(HasKernelWidth<TwoWidths>);
  EXPECT_FALSE(HasKernelWidth<FloatWidth>);
  EXPECT_TRUE(HasKernelFormula<GaussianKernel>);
  EXPECT_FALSE(HasKernelFormula<NoFormula>);
}

TEST(KernelLaws, GaussianAtHandValues) {
  const GaussianKernel kernel{.bandwidth = 0.5};
  EXPECT_EQ(at(kernel, 0.0), 0.0);
  EXPECT_EQ(at(kernel, 0.25), -0.5);  // r = b
  EXPECT_EQ(at(kernel, 4.0), -8.0);
  EXPECT_EQ(at(kernel, 0.25f), -0.5f);
  EXPECT_EQ(at(kernel, 4.0f), -8.0f);
  EXPECT_NE(at(GaussianKernel{.bandwidth = 0.51}, 0.25), -0.5);
}

TEST(KernelLaws, LaplaceAtHandValues) {
  const LaplaceKernel kernel{.bandwidth = 0.5};
  EXPECT_EQ(at(kernel, 0.0), 0.0);
  EXPECT_EQ(at(kernel, 0.25), -1.0);
  EXPECT_EQ(at(kernel, 4.0f), -4.0f);
}

TEST(KernelLaws, EpanechnikovAtHandValues) {
  const EpanechnikovKernel kernel{.bandwidth = 2};
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(at(kernel, 0.0), 0.0);
  EXPECT_EQ(at(kernel, 2.0), std::log(0.5));
  EXPECT_NEAR(at(kernel, 3.0f), std::log(0.25), std::abs(std::log(0.25)) * 2 * u32);
  EXPECT_EQ(at(kernel, 4.0), -inf);  // r = b
  EXPECT_EQ(at(kernel, 5.0), -inf);
  EXPECT_EQ(at(kernel, 4.0f), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(at(kernel, 5.0f), -std::numeric_limits<float>::infinity());
}

TEST(KernelLaws, TriangularAtHandValues) {
  const TriangularKernel kernel{.bandwidth = 2};
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(at(kernel, 0.0), 0.0);
  EXPECT_EQ(at(kernel, 1.0), std::log(0.5));
  EXPECT_NEAR(at(kernel, 2.25f), std::log(0.25), std::abs(std::log(0.25)) * 2 * u32);
  EXPECT_EQ(at(kernel, 4.0f), -inf);  // r = b
  EXPECT_EQ(at(kernel, 5.0f), -inf);
  EXPECT_NE(at(TriangularKernel{.bandwidth = 2.1}, 1.0), std::log(0.5));
}

TEST(KernelLaws, SoftmaxIsTheScaledProductUpToTheQuery) {
  // q = (1, 2), k = (-0.5, 3): q.k = 5.5, |q - k|^2 = 3.25, |k|^2 = 9.25, |q|^2 = 5.
  const SoftmaxKernel kernel{.temperature = 2};
  EXPECT_EQ(at(kernel, 3.25) + prior_at(kernel, 9.25) + 5.0 / 4, 5.5 / 2);
  EXPECT_EQ(at(kernel, 3.25f) + prior_at(kernel, 9.25f) + 1.25f, 2.75f);
  EXPECT_NE(at(kernel, 3.25) + 5.0 / 4, 5.5 / 2);
}

TEST(KernelLaws, SoftmaxStaysFinite) {
  const SoftmaxKernel kernel{.temperature = 1e-6};
  EXPECT_TRUE(std::isfinite(at(kernel, 1e35f) + prior_at(kernel, 1e35f)));
}

TEST(KernelLaws, AgreeBetweenPrecisions) {
  auto worst = [](const auto& kernel, const auto& exact) {
    double ratio = 0;
    for (double r2 = 0.01; r2 < 1; r2 *= 1.07) {
      const auto rounded = static_cast<float>(r2);
      const double wanted = at(exact, static_cast<double>(rounded));
      const auto got = static_cast<double>(at(kernel, rounded));
      // One rounding each for the unit, the quotient and, in Laplace, the root.
      ratio = std::max(ratio, std::abs(got - wanted) / (3 * u32 * std::abs(wanted)));
    }
    return ratio;
  };
  EXPECT_LE(worst(GaussianKernel{.bandwidth = 0.3}, GaussianKernel{.bandwidth = 0.3}), 1);
  EXPECT_LE(worst(LaplaceKernel{.bandwidth = 0.3}, LaplaceKernel{.bandwidth = 0.3}), 1);
  EXPECT_LE(worst(SoftmaxKernel{.temperature = 0.3}, SoftmaxKernel{.temperature = 0.3}), 1);
  EXPECT_GT(worst(GaussianKernel{.bandwidth = 0.3}, GaussianKernel{.bandwidth = 0.30001}), 1);
}

}  // namespace
}  // namespace headlab
