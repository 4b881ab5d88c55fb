// SPDX-License-Identifier: Apache-2.0
/// \file Replicates that learn their heads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/backend.h"

namespace headlab {

/// A worker of `backend` on plans that share their draws. A plan with `learning` fits its heads
/// anew on the training set of each replicate, noise included, with batches numbered by the
/// replicate, and the backend then computes the replicate with the heads found. Where weights are
/// learned a head's statistic is H a_h f_h, so that the ensemble is the mean of the heads under the
/// a_h found; the plan's own head_weights are to be 1/H then. Such a plan has the plain estimator:
/// given the design points alone, learned heads are not fixed. While it fits, run() throws
/// FitStopped once `stop` says so, which any thread may ask.
std::unique_ptr<Worker> make_worker(const Backend& backend, Plans plans,
                                    const std::function<bool()>& stop = {});

/// A block was given up while it learned heads.
class FitStopped {};

/// What make_worker()'s worker holds on the host [bytes].
std::uint64_t worker_bytes(const Backend& backend, Plans plans);

/// What a query of a batch takes in the sums of a fit on the host [bytes]: in up to 16 parts of the
/// keys, H k each, and factors, estimates and normalisers.
inline std::uint64_t fit_sums_bytes(int heads, int k) {
  return static_cast<std::uint64_t>(heads) * (17 * 8 * static_cast<std::uint64_t>(k) + 48);
}

/// Kernel weights that one fit evaluates, about; 0 for a plan that learns nothing.
double learning_work(const Plan& plan);

/// The training set of a replicate as a fit sees it.
TrainingPoints training_points(const Plan& plan, std::uint64_t replicate);

}  // namespace headlab
