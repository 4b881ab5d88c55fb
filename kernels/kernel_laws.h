// SPDX-License-Identifier: Apache-2.0
/// \file The kernel laws of the host (kernels/kernel_laws-inl.h) as one type.
#pragma once

#include <optional>
#include <type_traits>
#include <variant>

#include "kernels/kernel_laws-inl.h"

namespace headlab {

/// A struct rather than a name of its variant: see kernels/laws.h.
struct KernelLaw : KernelLaws {
  using variant::variant;
};

static_assert(are_kernel_laws(std::type_identity<KernelLaws>()));

/// The length scale that a kernel law measures distances in.
inline double length_scale(const KernelLaw& kernel) {
  return std::visit([](const auto& law) { return law.length_scale(); }, kernel);
}

/// c of a law with log K = q.k + c (|q|^2 + |k|^2)/2, query q and key k in units of the length
/// scale, see kernels/law/kernel/kernel_law.h; none for other laws.
inline std::optional<double> norm_coefficient_of(const KernelLaw& kernel) {
  return std::visit(
      []<class Law>(const Law&) -> std::optional<double> {
        if constexpr (HasNormCoefficient<Law>) return Law::norm_coefficient;
        return std::nullopt;
      },
      kernel);
}

}  // namespace headlab
