// SPDX-License-Identifier: Apache-2.0
/// \file The numbers of one shard, drawn by several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/dataset/dataset.h"
#include "engine/dataset/shard_output.h"
#include "kernels/plan.h"

namespace headlab {

/// What drawing asks and tells while it goes on, from any thread.
struct DrawHooks {
  std::function<bool()> stop = {};             ///< true: give up soon
  std::function<void(double work)> done = {};  ///< hears of each part of shard_work() done
};

/// Cost of a shard of `replicates` in bytes written, kernel weights counted as bytes.
double shard_work(const Scenario& scenario, const DatasetRequest& request,
                  std::uint64_t replicates);

/// Memory that one thread needs to draw [bytes].
double draw_bytes(const Scenario& scenario, const DatasetRequest& request);

/// Puts every number of a shard into `output`. They are the draws of the run: X, noise, m and s of
/// draw_sample() to the bit, weights of nw_weights() and estimates sum_i w_i Y_i in float64, serial
/// over the points of a replicate. False where `hooks` stopped it.
bool draw_shard(const Scenario& scenario, const Plan& plan, const DatasetRequest& request,
                ShardRange range, ShardOutput& output, int threads, const DrawHooks& hooks);

}  // namespace headlab
