// SPDX-License-Identifier: Apache-2.0
/// \file SHA-256 fingerprint of the numbers of a plan.
#pragma once

#include <string>

namespace headlab {

struct Plan;

/// SHA-256 of the numbers behind the laws of a plan: table, projections, query points and head
/// weights. A data file that was edited between two runs gives another sum.
std::string plan_sha256(const Plan& plan);

}  // namespace headlab
