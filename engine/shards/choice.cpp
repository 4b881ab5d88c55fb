// SPDX-License-Identifier: Apache-2.0
#include "engine/shards/choice.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/shards/cut.h"

namespace headlab {
namespace {

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

[[noreturn]] void reject_choice(const std::string& problem) {
  throw InvalidInput("--shard: " + problem);
}

/// The number in a variable, nothing where it is not set.
std::optional<std::uint64_t> number_in(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const auto number = whole_number(text);
  if (!number)
    reject_choice(std::string(name) + " is \"" + one_line(text, 40) + "\", which is not a number");
  return number;
}

/// A rank among several.
struct Ranks {
  const char* rank;
  const char* size;
  const char* needs;  ///< a variable that has to be set too, or null
};

// A step of Slurm has its own size. A batch script has rank 0 of its job, which chooses nothing.
constexpr Ranks all_ranks[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    {"PMI_RANK", "PMI_SIZE", nullptr},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
};

/// The shard of a rank.
std::optional<ShardChoice> by_rank(const Environment& environment, const Ranks& ranks) {
  if (ranks.needs && !number_in(environment, ranks.needs)) return std::nullopt;
  const auto rank = number_in(environment, ranks.rank);
  const auto size = number_in(environment, ranks.size);
  if (!rank || !size) return std::nullopt;
  return ShardChoice{
      *rank + 1, *size,
      std::string(ranks.rank) + " " + std::to_string(*rank) + " of " + std::to_string(*size)};
}

[[noreturn]] void reject_array(std::uint64_t task) {
  reject_choice("auto: task " + std::to_string(task) +
                " is of an array with gaps, which does not tell the number of shards - write "
                "--shard auto/N");
}

/// The shard of a task of an array; `fixed` is the number of shards where it was given.
std::optional<ShardChoice> by_array(const Environment& environment,
                                    std::optional<std::uint64_t> fixed) {
  const auto task = number_in(environment, "SLURM_ARRAY_TASK_ID");
  if (!task) return std::nullopt;
  const std::string name = "SLURM_ARRAY_TASK_ID " + std::to_string(*task);
  if (fixed) return ShardChoice{*task, *fixed, name};
  const auto first = number_in(environment, "SLURM_ARRAY_TASK_MIN");
  const auto last = number_in(environment, "SLURM_ARRAY_TASK_MAX");
  const std::uint64_t step = number_in(environment, "SLURM_ARRAY_TASK_STEP").value_or(1);
  const auto count = number_in(environment, "SLURM_ARRAY_TASK_COUNT");
  if (!first || !last || step < 1 || *task < *first || *task > *last) reject_array(*task);
  const std::uint64_t shards = (*last - *first) / step + 1;
  if ((*task - *first) % step != 0 || count.value_or(shards) != shards) reject_array(*task);
  return ShardChoice{(*task - *first) / step + 1, shards,
                     name + " of " + std::to_string(*first) + "-" + std::to_string(*last) +
                         (step > 1 ? ":" + std::to_string(step) : "")};
}

/// Throws InvalidInput unless the shard is one of them.
ShardChoice checked(ShardChoice choice) {
  if (choice.shards < 1 || choice.shards > max_shards) {
    reject_choice(std::to_string(choice.shards) + " shards (allowed: 1 to " +
                  std::to_string(max_shards) + ")");
  }
  if (choice.shard < 1 || choice.shard > choice.shards) {
    reject_choice("there is no shard " + std::to_string(choice.shard) + " of " +
                  std::to_string(choice.shards) + " (allowed: 1/" + std::to_string(choice.shards) +
                  " to " + std::to_string(choice.shards) + "/" + std::to_string(choice.shards) +
                  ")" +
                  (choice.chosen_by.starts_with("--") ? "" : ": here by " + choice.chosen_by));
  }
  return choice;
}

}  // namespace

ShardChoice choose_shard(const std::string& text, const Environment& environment) {
  const std::size_t slash = text.find('/');
  const std::string shard = text.substr(0, slash);
  std::optional<std::uint64_t> shards;
  if (slash != std::string::npos) shards = whole_number(std::string_view(text).substr(slash + 1));
  const bool automatic = shard == "auto";
  const auto number = whole_number(shard);
  if ((slash != std::string::npos || !automatic) && (!shards || !(automatic || number))) {
    reject_choice("\"" + one_line(text, 40) +
                  "\" is not a shard (allowed: I/N, as 3/8, auto or auto/N)");
  }
  if (!automatic) return checked({*number, *shards, "--shard " + text});
  std::optional<ShardChoice> single;
  for (const Ranks& ranks : all_ranks) {
    auto found = by_rank(environment, ranks);
    if (!found) continue;
    if (found->shards == 1) {
      single = found;
      continue;
    }
    if (shards) found->shards = *shards;
    return checked(*found);
  }
  if (const auto found = by_array(environment, shards)) return checked(*found);
  if (single && !shards) return checked(*single);
  reject_choice(
      "auto: nothing here tells which shard - start headlab by srun, mpirun or as a task of a "
      "Slurm "
      "array, or write --shard I/N");
}

}  // namespace headlab
