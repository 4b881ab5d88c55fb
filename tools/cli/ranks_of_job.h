// SPDX-License-Identifier: Apache-2.0
/// \file The job that this process is a part of: its ranks, and what each gets of a machine.
#pragma once

#include <optional>
#include <string>

#include "engine/run/ranks.h"
#include "kernels/host.h"

namespace headlab::tools {

/// The ranks that share the command, null where this process has it alone.
Ranks* ranks_of_job();
/// To be called before the command begins.
void set_ranks_of_job(Ranks* ranks);

/// A process among those that one command started on one machine.
struct LocalRank {
  int rank = 0;
  int size = 1;  ///< 0: not known
};

/// By Open MPI or Slurm; nothing where neither started this process.
std::optional<LocalRank> local_rank(const Environment& environment);

/// This rank's share of the processors that it may use, one at least.
int threads_of_rank(const LocalRank& local, int usable, int online);

/// The same of this process; all of them where nothing says that others are there.
int threads_of_this_rank();

/// What CUDA_VISIBLE_DEVICES is to be for a rank, so that the GPUs of a machine are dealt to its
/// ranks in turns; nothing where it may stay: one GPU is visible, or none.
/// \param visible  the variable now, null where it is not set
/// \param gpus     in the machine
std::optional<std::string> gpu_of_rank(const LocalRank& local, const char* visible, int gpus);

/// Deals the GPUs of this machine to the ranks on it. To be called before any thread begins.
void deal_gpus();

}  // namespace headlab::tools
