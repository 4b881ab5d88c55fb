// SPDX-License-Identifier: Apache-2.0
/// \file What stands below the table of a run.
#pragma once

#include <string>
#include <vector>

#include "engine/results/computed.h"
#include "engine/results/result.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

/// A line each: windows that held too little weight, what standard errors do not say, biases whose
/// estimates are not normal, speed, what the standard errors are and what they do not cover, and
/// the stages that indices do not see. \param compact  estimates are written 4.6240(64)
std::string result_notes(const RunResult& result, bool compact);

/// What was read of tables of numbers, a line each.
std::string tables_text(const Scenario& scenario);

/// Time and speed of a run, and what its differences are from.
std::string speed_text(const RunResult& result);
std::string difference_text(const RunResult& result);

/// "sequence ar1, correlation 0.9; merge 4; window swept": what is in force in some condition, in
/// the order in which it applies. Empty for plain heads on independent points.
std::string mechanism_text(const Scenario& scenario);

/// What stands for a standard error in a table.
std::string mcse_line(bool compact);

/// Which forms were used, and how far weights are from summing to one in a quadrature.
std::string forms_line(const std::vector<ComputedCondition>& theory);

}  // namespace headlab::tools
