// SPDX-License-Identifier: Apache-2.0
/// \file The requirements on a kernel law.
///
/// A kernel law is a struct with one length scale s, by which a backend divides projected keys and
/// queries before it measures distances:
///
///     name, summary          text for users
///     equation               for reports, in the notation of tools/report/mathml.h
///     example                the parameters that a scenario must give
///     bandwidth or temperature   double: the width parameter, under one of these two names
///     parameters(visitor)    description of the parameters, see kernels/parameter.h
///     length_scale()         s > 0
///     log_weight(u)          natural log of the kernel at u = |W_h^T (x - X)|^2 / s^2: 0 at u = 0,
///                            falling to minus infinity
///     has_key_prior          true: log_prior(norm2) is added, the log of a prior on a key of
///                            squared projected norm norm2 s^2
///     counts_empty_windows   true: windows without a key of weight above 2^-126 are counted
///     weight(u)              the kernel itself, of a law that is no exponential; its log_weight(u)
///                            is the logarithm of this
///     norm_coefficient c     optional: log K = q.k + c (|q|^2 + |k|^2) / 2 for a query q and a key
///                            k in units of s, so that a backend may multiply instead of measuring
///                            distances; required of a law with a prior
///
/// weight, log_weight and log_prior are templates on the number type T: double, float, or a SIMD
/// vector of floats. T has a constructor from int and double, a + b, a - b, a * b, and by
/// argument-dependent lookup fused(a, b, c) = a b + c, max, min, sqrt and log (write `using
/// math::log;`). It has no division, no comparison and no branch.
///
/// The struct is trivially copyable, because a GPU receives its bytes.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>
#include <variant>

#include "kernels/hd.h"
#include "kernels/math.h"
#include "kernels/parameter.h"

/// Namespace that a law is compiled in: headlab, or the one of a SIMD target
/// (kernels/cpu/kernel_laws-inl.h).
#define HEADLAB_LAW_NAMESPACE headlab

namespace headlab {

/// The width parameter of a kernel law is called bandwidth or temperature, not both.
template <class Law>
concept HasKernelWidth = requires(Law law) {
  { (law.bandwidth) } -> std::same_as<double&>;
}
!= requires(Law law) {
  { (law.temperature) } -> std::same_as<double&>;
};

/// The members that every kernel law has, except the width parameter.
template <class Law>
concept HasKernelFormula = requires(const Law& law, float f, double d) {
  { Law::name } -> std::convertible_to<const char*>;
  { Law::summary } -> std::convertible_to<const char*>;
  { Law::has_key_prior } -> std::convertible_to<bool>;
  { Law::counts_empty_windows } -> std::convertible_to<bool>;
  { law.length_scale() } -> std::same_as<double>;
  { law.log_weight(f) } -> std::same_as<float>;
  { law.log_weight(d) } -> std::same_as<double>;
};

template <class Law>
concept HasNormCoefficient = requires {
  { Law::norm_coefficient } -> std::convertible_to<double>;
};

template <class Law>
concept HasWeight = requires(const Law& law, float f) {
  { law.weight(f) } -> std::same_as<float>;
};

/// True, or an error of compilation that names the requirement.
template <class Law>
constexpr bool is_kernel_law() {
  static_assert(std::is_trivially_copyable_v<Law>, "a kernel law is copied to a GPU byte by byte");
  static_assert(HasKernelFormula<Law>,
                "a kernel law has name, summary, has_key_prior, counts_empty_windows, "
                "length_scale() and log_weight(u), see kernels/law/kernel/kernel_law.h");
  static_assert(
      HasKernelWidth<Law>,
      "the width parameter of a kernel law is `double bandwidth` or `double temperature`");
  static_assert(!Law::has_key_prior || HasNormCoefficient<Law>,
                "a kernel law with a prior on its keys has a norm_coefficient");
  return true;
}
template <class... Laws>
constexpr bool are_kernel_laws(std::type_identity<std::variant<Laws...>>) {
  return (is_kernel_law<Laws>() && ...);
}

}  // namespace headlab
