// SPDX-License-Identifier: Apache-2.0
/// \file The registry of laws: what a scenario may name under design, regression, noise and kernel.
/// To add a regression or a noise law write its file under kernels/law/, include it here, and add
/// it to the variant of its family; a design in law/design/designs.h, a kernel law in
/// kernel_laws-inl.h. docs/architecture.md has what else it takes.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <variant>

#include "kernels/hd.h"
#include "kernels/kernel_laws.h"
#include "kernels/law/design/designs.h"
#include "kernels/law/noise/formula.h"
#include "kernels/law/noise/heteroscedastic.h"
#include "kernels/law/noise/laplace.h"
#include "kernels/law/noise/normal.h"
#include "kernels/law/noise/student_t.h"
#include "kernels/law/regression/additive.h"
#include "kernels/law/regression/bumps.h"
#include "kernels/law/regression/cosines.h"
#include "kernels/law/regression/file.h"
#include "kernels/law/regression/formula.h"
#include "kernels/law/regression/linear.h"
#include "kernels/law/regression/random_cosines.h"
#include "kernels/law/regression/single_index.h"
#include "kernels/law/regression/step.h"
#include "kernels/law/regression/zero.h"
#include "kernels/math.h"
#include "kernels/parameter.h"

namespace headlab {

// Structs rather than names of their variants, so that a header can declare one and hold it
// (kernels/copy_on_write.h) without this file.

struct RegressionLaw
    : std::variant<ZeroRegression, LinearRegression, CosinesRegression, RandomCosinesRegression,
                   AdditiveRegression, SingleIndexRegression, BumpsRegression, StepRegression,
                   FormulaRegression, FileRegression> {
  using variant::variant;
};
struct NoiseLaw
    : std::variant<NormalNoise, StudentNoise, LaplaceNoise, HeteroscedasticNoise, FormulaNoise> {
  using variant::variant;
};

/// The largest |m(x)| of a law; infinite where nothing bounds it.
inline double regression_bound(const RegressionLaw& law) {
  return std::visit([](const auto& m) { return m.bound(); }, law);
}

/// The largest variance of the noise at any x; infinite where nothing bounds it.
inline double noise_variance_bound(const NoiseLaw& law) {
  return std::visit(
      [](const auto& noise) {
        if constexpr (requires { noise.variance_bound(); }) {
          return noise.variance_bound();
        } else {
          return noise.sd * noise.sd;
        }
      },
      law);
}

/// The standard deviation of noise that has the same at all x; none of other noise.
inline std::optional<double> constant_noise_sd(const NoiseLaw& law) {
  return std::visit(
      [](const auto& noise) -> std::optional<double> {
        if constexpr (requires { noise.sd; }) {
          if (std::isfinite(noise_variance_bound(noise))) return noise.sd;
        }
        return std::nullopt;
      },
      law);
}

/// The order below which moments of what a law draws are finite; infinite where all are.
template <class Law>
double tail_of(const Law& law) {
  if constexpr (requires { law.tail(); }) return law.tail();
  return std::numeric_limits<double>::infinity();
}

/// The power of |x| with which what a law gives at x grows; 0: it is bounded.
template <class Law>
double growth_of(const Law& law) {
  if constexpr (requires { law.growth_rate(); }) return law.growth_rate();
  if constexpr (requires { Law::growth; }) return Law::growth;
  return 0;
}

namespace detail {
/// std::variant of the distinct types among Ts, in order: several laws may share one function form.
template <class Variant, class... Ts>
struct Distinct {
  using type = Variant;
};
template <class... Kept, class T, class... Rest>
struct Distinct<std::variant<Kept...>, T, Rest...>
    : Distinct<std::conditional_t<(std::is_same_v<T, Kept> || ...), std::variant<Kept...>,
                                  std::variant<Kept..., T>>,
               Rest...> {};

template <class Laws>
struct Forms;
template <class... Laws>
struct Forms<std::variant<Laws...>> {
  template <template <class> class Form>
  using of = typename Distinct<std::variant<>, Form<Laws>...>::type;
};
template <class Law>
using SamplerOf = typename Law::Sampler;
template <class Law>
using FunctionOf = decltype(std::declval<const Law&>().function(std::declval<Table&>(), 0));
}  // namespace detail

/// What a plan holds of each law: plain numbers that a kernel can take by value.
struct DesignSampler : detail::Forms<DesignLaw::variant>::of<detail::SamplerOf> {
  using variant::variant;
};
struct RegressionFunction : detail::Forms<RegressionLaw::variant>::of<detail::FunctionOf> {
  using variant::variant;
};
struct NoiseSampler : detail::Forms<NoiseLaw::variant>::of<detail::SamplerOf> {
  using variant::variant;
};

}  // namespace headlab
