// SPDX-License-Identifier: Apache-2.0
/// \file By what sum the numbers of a plan are known again.
#pragma once

#include <string>

#include "kernels/plan.h"

namespace headlab {

/// SHA-256 of the numbers behind the laws of a plan: table, projections, query points and head
/// weights. A data file that was edited between two runs gives another sum.
std::string plan_sha256(const Plan& plan);

}  // namespace headlab
