// SPDX-License-Identifier: Apache-2.0
/// \file Says where figures that are not finite come from.
#pragma once

#include <cstdint>
#include <string>

namespace headlab {

struct Plan;

/// Why a mean squared error over `replicates` is not finite: the first point drawn where regression
/// or noise has no value, as far as 10^7 points show one; else what to try.
std::string why_not_finite(const Plan& plan, std::uint64_t replicates);

}  // namespace headlab
