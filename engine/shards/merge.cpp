// SPDX-License-Identifier: Apache-2.0
#include "engine/shards/merge.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/words.h"
#include "engine/results/results_reader.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/shards/cut.h"
#include "engine/shards/shard_files.h"

namespace headlab {
namespace {

[[noreturn]] void reject_shard(const std::string& path, const std::string& problem) {
  throw InvalidInput("merge: " + one_line(path) + ": " + problem);
}

/// Throws InvalidInput unless two shards are of one study and have the bits of one run.
void require_same_study(const ShardFile& first, const ShardFile& other) {
  const auto require = [&](const std::string& what, const std::string& there,
                           const std::string& here) {
    if (there == here) return;
    reject_shard(other.path, "has " + what + " " + one_line(there, 60) + ", and " +
                                 one_line(first.path) + " has " + one_line(here, 60) +
                                 " - merge shards of one study alone");
  };
  for (std::size_t i = 0; i < first.program.size(); ++i) {
    require(first.program[i].first, other.program[i].second, first.program[i].second);
  }
  require("backend", other.machine.backend, first.machine.backend);
  require("SIMD target", other.machine.simd, first.machine.simd);
  if (first.machine.backend == "cuda") {
    require("device", other.machine.device, first.machine.device);
  }
  // A shard without replicates has none.
  if (!first.seed.empty() && !other.seed.empty()) require("seed", other.seed, first.seed);
  require("scenario", other.share.study.substr(0, 12), first.share.study.substr(0, 12));
  if (other.share.study != first.share.study || other.share.leaves != first.share.leaves) {
    reject_shard(other.path, "is of another scenario");
  }
}

void require_this_program(const ShardFile& shard, const Provenance& program) {
  const std::vector<std::string> here = {program.version, program.git, program.compiler,
                                         program.build_type};
  for (std::size_t i = 0; i < here.size(); ++i) {
    const auto& [name, there] = shard.program[i];
    if (there == here[i]) continue;
    reject_shard(shard.path, "is of another headlab (" + name + " " + one_line(there, 60) +
                                 ", this one is " + here[i] + ") - merge with that program");
  }
}

std::shared_ptr<const Scenario> scenario_of_shard(const ShardFile& shard, const ReadHooks& hooks) {
  std::vector<std::string> sets;
  std::istringstream lines(shard.sets);
  for (std::string set; std::getline(lines, set);) sets.push_back(set);
  return std::make_shared<const Scenario>(
      parse_scenario(shard.scenario_text, shard.scenario_file, sets, shard.share.directory, hooks));
}

/// Leaves begin .. end - 1.
using Section = std::pair<std::uint64_t, std::uint64_t>;

/// What of the row of leaves no complete shard has.
std::vector<Section> missing_sections(const std::vector<ShardFile>& shards) {
  std::vector<Section> missing;
  std::uint64_t next = 0;
  const auto add_up_to = [&](std::uint64_t begin) {
    if (begin > next) missing.emplace_back(next, begin);
  };
  for (const ShardFile& shard : shards) {
    if (!shard.complete) continue;
    add_up_to(shard.share.begin);
    next = std::max(next, shard.share.end);
  }
  add_up_to(shards.front().share.leaves);
  return missing;
}

/// Shards of a number of them that make up a section, none where no shards begin and end with it.
std::vector<std::uint64_t> shards_of_section(const ScenarioCut& cut, std::uint64_t shards,
                                             const Section& section) {
  std::vector<std::uint64_t> found;
  std::uint64_t begin = 0;
  bool at_begin = false;
  for (std::uint64_t i = 1; i <= shards; ++i) {
    const std::uint64_t end = cut.end_of(i, shards);
    at_begin = at_begin || begin == section.first;
    if (begin >= section.first && end <= section.second && begin < end) found.push_back(i);
    if (end == section.second && at_begin) return found;
    begin = end;
  }
  return {};
}

/// A set of missing shards, of one number of shards in all.
struct MissingShards {
  std::uint64_t shards = 0;
  std::vector<std::uint64_t> numbers = {};
};

MissingShards missing_shards(const std::vector<ShardFile>& shards, const ScenarioCut& cut) {
  std::set<std::uint64_t> cuts;
  for (const ShardFile& shard : shards) cuts.insert(shard.share.shards);
  for (const std::uint64_t count : cuts) {
    MissingShards missing{count};
    bool fits = true;
    for (const Section& section : missing_sections(shards)) {
      const auto of_section = shards_of_section(cut, count, section);
      fits = fits && !of_section.empty();
      missing.numbers.insert(missing.numbers.end(), of_section.begin(), of_section.end());
    }
    if (fits) return missing;
  }
  return {};
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

/// "shards 2 and 5 of 8", or leaves where no cut has these shards.
std::string missing_text(const MissingShards& missing, const std::vector<Section>& sections) {
  if (missing.numbers.empty()) {
    return "leaves " + std::to_string(sections[0].first) + " to " +
           std::to_string(sections[0].second - 1);
  }
  return (missing.numbers.size() == 1 ? "shard " : "shards ") + shards_text(missing.numbers) +
         " of " + std::to_string(missing.shards);
}

[[noreturn]] void reject_missing(const MissingShards& missing, const std::string& text,
                                 const std::vector<ShardFile>& shards) {
  const bool one = missing.numbers.size() == 1;
  std::string line = "merge: " + text + (one ? " is" : " are") + " missing or not complete";
  if (!missing.numbers.empty()) {
    // In a folder of shards of that number.
    const ShardFile& like = *std::ranges::find(shards, missing.shards,
                                               [](const ShardFile& s) { return s.share.shards; });
    line += " - write " +
            shard_command(like, missing.numbers[0], missing.shards, folder_of(like.path)) +
            (one ? "" : ", the others likewise");
  }
  throw InvalidInput(line + (missing.numbers.empty() ? " - write" : ", or") +
                     " --allow-missing for what is there");
}

/// Adds what a shard has to the trees of all conditions.
void join_shard(const ShardFile& shard, const Scenario& scenario, MergedShards& merged) {
  try {
    const NetcdfInput file(shard.path);
    const ResultsReader results(file.root());
    for (std::size_t i = 0; i < shard.replicates.size(); ++i) {
      const SharePart& part = shard.share.parts[i];
      if (shard.replicates[i] == 0) continue;
      if (part.condition >= scenario.conditions.size() ||
          part.range.total != scenario.conditions[part.condition].replicates) {
        throw NetcdfError("its share is not of the scenario");
      }
      StoredCondition stored = results.read(i);
      CheckpointCondition& condition = merged.run.conditions[part.condition];
      const std::string sum = stored.plan_sha256;
      MomentTree tree = stored_tree(std::move(stored), &part.range);
      if (tree.count() != shard.replicates[i]) throw NetcdfError("it lacks nodes");
      if (condition.tree.count() == 0) {
        condition.tree = MomentTree(tree.layout(), {0, part.range.total, part.range.total});
        condition.plan_sha256 = sum;
      }
      if (condition.plan_sha256 != sum) {
        reject_shard(shard.path, numbered_condition(part.condition) +
                                     " has other numbers than in other shards: a data file was "
                                     "edited");
      }
      condition.tree.join_after_gap(tree);
      if (std::isfinite(shard.seconds[i])) condition.seconds += shard.seconds[i];
    }
  } catch (const NetcdfError& error) {
    reject_shard(shard.path, no_shard(error));
  } catch (const std::invalid_argument&) {
    reject_shard(shard.path, "is damaged - remove it and make it again");
  }
}

}  // namespace

MergedShards merge_shards(const std::vector<std::string>& folders, const Provenance& program,
                          bool allow_missing, const ReadHooks& hooks) {
  std::vector<ShardFile> shards;
  for (const std::string& path : shard_paths(folders)) shards.push_back(read_shard_file(path));
  if (shards.empty()) {
    throw InvalidInput("merge: no shard in " + one_line(listed(folders)) +
                       " - write headlab run SCENARIO.toml --shard I/N --out DIR");
  }
  require_this_program(shards.front(), program);
  for (const ShardFile& shard : shards) require_same_study(shards.front(), shard);
  std::ranges::stable_sort(shards, {}, [](const ShardFile& shard) {
    return std::pair(shard.share.begin, shard.share.end);
  });
  const ShardFile* before = nullptr;
  for (const ShardFile& shard : shards) {
    // Shards without replicates have nothing in common with any.
    if (shard.share.begin == shard.share.end) continue;
    if (before && before->share.end > shard.share.begin) {
      if (before->path == shard.path)
        throw InvalidInput("merge: " + one_line(folder_of(shard.path)) +
                           " is given twice - leave one of them out");
      reject_shard(shard.path, "has replicates that " + one_line(before->path) +
                                   " has too - leave one of them out");
    }
    before = &shard;
  }

  MergedShards merged{
      .scenario = scenario_of_shard(shards.front(), hooks),
      .run = Checkpoint{.path = shards.front().path, .machine = shards.front().machine},
      .study = shards.front().share.study};
  const Scenario& scenario = *merged.scenario;
  const std::vector<Section> sections = missing_sections(shards);
  if (!sections.empty()) {
    const ScenarioCut cut(scenario, shards.front().share.together);
    const MissingShards missing = missing_shards(shards, cut);
    merged.missing = missing_text(missing, sections);
    if (!allow_missing) reject_missing(missing, merged.missing, shards);
  }
  merged.run.conditions.reserve(scenario.conditions.size());
  for (const Condition& condition : scenario.conditions) {
    merged.run.conditions.push_back({.tree = MomentTree(layout_of(condition))});
  }
  for (const ShardFile& shard : shards) join_shard(shard, scenario, merged);
  for (CheckpointCondition& condition : merged.run.conditions) {
    MomentTree& tree = condition.tree;
    if (merged.missing.empty()) tree = tree.whole_run();
  }
  return merged;
}

}  // namespace headlab
