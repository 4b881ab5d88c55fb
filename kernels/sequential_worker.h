// SPDX-License-Identifier: Apache-2.0
/// \file Several plans on a backend whose workers take one: each plan has its own draws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/backend.h"

namespace headlab {

/// A worker of `plans` that runs a worker of each plan, made by `one`, one after another.
std::unique_ptr<Worker> make_sequential_worker(
    Plans plans, const std::function<std::unique_ptr<Worker>(const Plan&)>& one);

/// Memory of such a worker [bytes], given that of a worker of one plan.
std::uint64_t sequential_worker_bytes(Plans plans,
                                      const std::function<std::uint64_t(const Plan&)>& one);

}  // namespace headlab
