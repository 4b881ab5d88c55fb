// SPDX-License-Identifier: Apache-2.0
/// \file A short test of a backend against what is known in closed form.
#pragma once

#include <string>
#include <vector>

#include "engine/moments/estimates.h"

namespace headlab::tools {

struct SelfTestCheck {
  std::string name;
  bool passed = false;
  std::string detail;  ///< the figures compared
};

/// Passes where |value - expected| <= 4 MCSE; not for NaN, nor for an MCSE of 0.
SelfTestCheck compare_estimate(const std::string& name, const Estimate& figure, double expected);

/// Passes where |value - expected| <= tolerance; not for NaN.
SelfTestCheck compare_exact(const std::string& name, double value, double expected,
                            double tolerance);

/// Runs a tiny study through a backend:
///   noise alone, X ~ N(0, I), orthogonal heads, x = 0: C = s2/n exactly (theory, section 6);
///   m = 1: no bias, because the weights sum to 1;
///   aligned heads: C = V.
std::vector<SelfTestCheck> self_test(const std::string& backend);

}  // namespace headlab::tools
