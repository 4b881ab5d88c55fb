// SPDX-License-Identifier: Apache-2.0
/// \file What a run will take, found out without simulating it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/run/session.h"

namespace headlab {

struct Condition;
struct Scenario;

/// Bytes of the results of a run, to within a factor of two or so.
struct ResultSize {
  std::uint64_t netcdf = 0;  ///< results.nc with the nodes
  std::uint64_t netcdf_without_nodes = 0;
  std::uint64_t summary = 0;
};

/// What one backend would take for all conditions.
struct BackendForecast {
  Machine machine;
  std::string problem = {};     ///< why it cannot compute them; empty where it can
  std::uint64_t memory = 0;     ///< bytes, as the run would ask for
  std::size_t groups = 0;       ///< of conditions simulated together
  double measured_seconds = 0;  ///< behind its speed
  double weights_per_second = 0;
  double seconds = 0;  ///< of the simulation; pilots included, learning once left out
};

/// The condition with heads and weights that need no preparation.
Condition without_preparation(Condition condition);

/// What the results of all conditions take.
ResultSize result_size(const Scenario& scenario);

/// Simulates the costliest group of conditions for about `seconds`, on fewer training points where
/// one replicate would take longer, and scales by replicate_work(). Heads that are learned once and
/// optimal weights are replaced by given ones. Throws InvalidInput where the conditions do not fit
/// in memory.
BackendForecast forecast(const Scenario& scenario, const BackendChoice& backend, int threads,
                         double seconds);

}  // namespace headlab
