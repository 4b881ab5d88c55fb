// SPDX-License-Identifier: Apache-2.0
/// \file One replicate of a condition, with all that its statistics come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/provenance.h"
#include "engine/run/session.h"
#include "kernels/plan.h"
#include "kernels/reference/training_set.h"

namespace headlab {

class NetcdfGroup;
struct Condition;
struct Scenario;

/// One head at one query. The estimates are those of the condition's estimator: sum_i w_i m(X_i)
/// where the noise is integrated, sum_i w_i Y_i where it is drawn.
struct ReplayedHead {
  double reference = 0;            ///< estimate by the reference
  double backend = 0;              ///< estimate by the backend in use
  double sample_size = 0;          ///< 1 / sum_i w_i^2, weights by the reference
  double normalisation_error = 0;  ///< |sum_i w_i - 1|
};

/// The ensemble at one query.
struct ReplayedQuery {
  double reference = 0;
  double backend = 0;
  double squared_error = 0;  ///< by the backend, as in Replay
};

struct Replay {
  std::uint64_t replicate = 0;
  Plan plan;  ///< without learning, with the heads that this replicate learned where it did
  TrainingSet training_set;
  std::vector<double> kernel_weights;  ///< [Q][H][n], w_i of sum 1
  std::vector<ReplayedHead> heads;     ///< [Q][H]
  std::vector<ReplayedQuery> queries;  ///< [Q]
  /// Mean over the queries of the ensemble's squared error as the estimator has it: plain (f -
  /// m)^2, conditional the square of the bias given the design plus the variance of the noise.
  double squared_error = 0;
  /// Least effective sample size of all heads and queries by the backend, where it knows them.
  std::optional<double> backend_sample_size = {};
  Machine machine;
  Outcome outcome;  ///< not complete: stopped, and nothing but this is known

  const ReplayedHead& head(std::size_t q, std::size_t h) const {
    return heads[q * static_cast<std::size_t>(plan.heads) + h];
  }
  /// Place in `heads` of the least effective sample size, the first of equal ones.
  std::size_t narrowest() const;
};

/// Computes one replicate again, from 0, by the reference and by the session's backend. Heads and
/// weights that are found before a run are found again. Throws InvalidInput where the replicate
/// does not fit in memory, before anything is computed.
Replay replay_replicate(const Condition& condition, std::uint64_t replicate,
                        const Session& session);

/// Writes a complete replay of condition `condition` (from 0) to `path` as a NetCDF-4 file
/// (docs/datasets.md). The file is there whole or not at all; throws RunFailed with one line.
void write_replay(const std::string& path, const Scenario& scenario, std::size_t condition,
                  const Replay& replay, const Provenance& program);

/// Puts the same into the root of a new file.
void put_replay(const NetcdfGroup& root, const Scenario& scenario, std::size_t condition,
                const Replay& replay, const Provenance& program);

}  // namespace headlab
