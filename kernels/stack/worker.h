// SPDX-License-Identifier: Apache-2.0
/// \file Replicates of stacks as moments.
#pragma once

#include <cstdint>
#include <memory>

#include <Eigen/Core>

#include "kernels/backend.h"
#include "kernels/stack/stack.h"

namespace headlab {

/// X_0 [n][d] of a replicate: as given, or drawn from the plan's design in
/// float32.
Eigen::MatrixXd stack_tokens(const Plan& plan, std::uint64_t replicate);

/// Creates the worker of plans that have stacks and share their draws. Throws
/// std::invalid_argument where one has none.
/// \param tokens has the bits of stack_tokens()
std::unique_ptr<Worker> make_stack_worker(Plans plans,
                                          const StackArithmetic& arithmetic = plain_arithmetic(),
                                          decltype(stack_tokens)& tokens = stack_tokens);

/// Its memory [bytes].
std::uint64_t stack_worker_bytes(Plans plans);

/// Floating-point operations of a replicate, with 20 for an exponential or a
/// normal.
double stack_work(const Plan& plan);

}  // namespace headlab
