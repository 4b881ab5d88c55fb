// SPDX-License-Identifier: Apache-2.0
/// \file Several plans for a backend whose workers compute one: each draws for itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/backend.h"

namespace headlab {

/// A worker of `plans` that runs a worker of each, made by `one`, in turn.
std::unique_ptr<Worker> workers_in_turn(
    Plans plans, const std::function<std::unique_ptr<Worker>(const Plan&)>& one);

/// The memory of such a worker [bytes], `one` being that of a worker of one plan.
std::uint64_t bytes_in_turn(Plans plans, const std::function<std::uint64_t(const Plan&)>& one);

}  // namespace headlab
