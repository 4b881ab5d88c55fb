// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/ranks_of_job.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "engine/files/folder.h"
#include "kernels/parallel_for.h"

namespace headlab::tools {
namespace {

Ranks* shared_ranks = nullptr;

std::optional<int> number_of(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

int gpus_of_machine() {
  std::error_code none;
  return static_cast<int>(names_in("/proc/driver/nvidia/gpus", none).size());
}

}  // namespace

Ranks* ranks_of_job() {
  return shared_ranks;
}

void set_ranks_of_job(Ranks* ranks) {
  shared_ranks = ranks;
}

std::optional<LocalRank> local_rank(const Environment& environment) {
  const auto number = [&](const char* name) { return number_of(environment, name); };
  if (const auto rank = number("OMPI_COMM_WORLD_LOCAL_RANK")) {
    return LocalRank{*rank, number("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(0)};
  }
  // A batch script has these variables too, and is alone on its machine.
  if (number("SLURM_STEP_ID") && number("SLURM_STEP_NUM_TASKS")) {
    if (const auto rank = number("SLURM_LOCALID")) {
      const char* const tasks = environment("SLURM_STEP_TASKS_PER_NODE");
      // "4" or "4(x16)"; "4,3" has machines of several sizes.
      const std::string each =
          tasks ? std::string(tasks).substr(0, std::string(tasks).find('(')) : "";
      int size = 0;
      const auto [stop, error] = std::from_chars(each.data(), each.data() + each.size(), size);
      const bool known = error == std::errc() && stop == each.data() + each.size() && size > 0;
      return LocalRank{*rank, known ? size : 0};
    }
  }
  return std::nullopt;
}

int threads_of_rank(const LocalRank& local, int usable, int online) {
  const int share = local.size > 0 ? online / local.size : usable;
  return std::max(1, std::min(usable, share));
}

int threads_of_this_rank() {
  const LocalRank local = local_rank(environment_variable).value_or(LocalRank{0, 0});
  const int usable = thread_count(0);
  const int online = online_processors();
  return threads_of_rank(local, usable, online);
}

std::optional<std::string> gpu_of_rank(const LocalRank& local, const char* visible, int gpus) {
  std::vector<std::string> names;
  if (visible) {
    std::istringstream list(visible);
    for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  } else {
    for (int i = 0; i < gpus; ++i) names.push_back(std::to_string(i));
  }
  if (names.size() < 2 || local.size == 1) return std::nullopt;
  return names[static_cast<std::size_t>(local.rank) % names.size()];
}

void deal_gpus() {
  const auto local = local_rank(environment_variable);
  if (!local) return;
  const auto gpu =
      gpu_of_rank(*local, environment_variable("CUDA_VISIBLE_DEVICES"), gpus_of_machine());
  if (gpu) ::setenv("CUDA_VISIBLE_DEVICES", gpu->c_str(), 1);
}

}  // namespace headlab::tools
