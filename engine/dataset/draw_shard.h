// SPDX-License-Identifier: Apache-2.0
/// \file The numbers of one shard, drawn by several threads.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/dataset/dataset.h"
#include "engine/dataset/shard_output.h"
#include "engine/run/session.h"

namespace headlab {

struct Condition;
struct Plan;

/// Cost of a shard of `replicates` in bytes written, kernel weights counted as bytes.
double shard_work(const Condition& condition, const DatasetRequest& request,
                  std::uint64_t replicates);

/// Memory that one thread needs to draw [bytes].
double draw_bytes(const Condition& condition, const DatasetRequest& request);

/// Puts every number of a shard into `output`. They are the draws of the run: X, noise, m and s of
/// draw_training_set() to the bit, weights of nw_weights() and estimates sum_i w_i Y_i in float64,
/// serial over the points of a replicate. False where the session stopped it. \param done called
/// with each part of shard_work(), from any thread
bool draw_shard(const Condition& condition, const Plan& plan, const DatasetRequest& request,
                ShardRange range, ShardOutput& output, const Session& session,
                const std::function<void(double work)>& done);

}  // namespace headlab
