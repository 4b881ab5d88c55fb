// SPDX-License-Identifier: Apache-2.0
/// \file Workers of replicates that learn their heads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/backend.h"
#include "kernels/statistics/stopping.h"

namespace headlab {

/// Creates a worker of `backend` on plans that share their draws. A plan with `learning` fits its
/// heads on the training set of each replicate, noise included, with batches numbered by the
/// replicate; the backend then computes the replicate with these heads. Where weights are learned,
/// the statistic of a head is H a_h f_h with the learned a_h, so that the ensemble is the mean of
/// the heads; the plan's own head_weights must be 1/H. Such a plan has the plain estimator, because
/// learned heads are not fixed given only the design points. During a fit run() throws WorkStopped
/// once `stop` returns true; any thread may call `stop`.
std::unique_ptr<Worker> make_worker(const Backend& backend, Plans plans,
                                    const std::function<bool()>& stop = {});

/// The plan of one replicate: without `learning`, with the heads and weights that the worker of
/// make_worker() learns for it; a plan without `learning` itself. Throws WorkStopped as the worker
/// does.
Plan learned_plan(const Backend& backend, const Plan& plan, std::uint64_t replicate,
                  const std::function<bool()>& stop = {});

/// Host memory of the worker of make_worker() [bytes].
std::uint64_t worker_bytes(const Backend& backend, Plans plans);

/// Host memory of a query of a batch in the sums of a fit [bytes]: H k numbers for each of up to 16
/// panels of keys, and factors, estimates and normalisers.
inline std::uint64_t fit_sums_bytes(int heads, int k) {
  return static_cast<std::uint64_t>(heads) * (17 * 8 * static_cast<std::uint64_t>(k) + 48);
}

/// Approximate number of kernel weights that one fit evaluates; 0 for a plan without learning.
double learning_work(const Plan& plan);

/// Training set of a replicate for a fit.
FitPoints fit_points(const Plan& plan, std::uint64_t replicate);

}  // namespace headlab
