// SPDX-License-Identifier: Apache-2.0
/// \file Replicates that learn their heads.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/reference/reference.h"

namespace headlab {

/// A worker of `backend` on plans that share their draws. A plan with `learning` fits its heads
/// anew on the training set of each replicate, noise included, with batches numbered by the
/// replicate, and the backend then computes the replicate with the heads found. Where weights are
/// learned a head's statistic is H a_h f_h, so that the ensemble is the mean of the heads under the
/// a_h found; the plan's own head_weights are to be 1/H. Such a plan has the plain estimator: given
/// the design points alone, learned heads are not fixed.
std::unique_ptr<Worker> make_worker(const Backend& backend, Plans plans);

/// What make_worker()'s worker holds on the host [bytes].
std::uint64_t worker_bytes(const Backend& backend, Plans plans);

/// Kernel weights that one fit evaluates, about; 0 for a plan that learns nothing.
double learning_work(const Plan& plan);

/// The training set of a replicate as a fit sees it.
TrainingPoints training_points(const Plan& plan, std::uint64_t replicate);

}  // namespace headlab
