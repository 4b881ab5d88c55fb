// SPDX-License-Identifier: Apache-2.0
#include "engine/shards/shard_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>

#include <netcdf.h>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/folder.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/words.h"
#include "engine/results/results_scenario.h"
#include "engine/scenario/scenario.h"
#include "engine/shards/cut.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_start = "shard_";
constexpr std::string_view name_middle = "_of_";
constexpr std::string_view name_end = ".nc";

}  // namespace

std::optional<std::pair<std::uint64_t, std::uint64_t>> shard_of_name(const std::string& name) {
  if (!name.starts_with(name_start) || !name.ends_with(name_end)) return std::nullopt;
  std::uint64_t shard = 0, shards = 0;
  const char* const end = name.data() + name.size() - name_end.size();
  const auto [middle, bad] = std::from_chars(name.data() + name_start.size(), end, shard);
  if (bad != std::errc() || !std::string_view(middle, end).starts_with(name_middle)) {
    return std::nullopt;
  }
  const auto [stop, worse] = std::from_chars(middle + name_middle.size(), end, shards);
  // No other spelling, as with zeros in front, is the same shard twice.
  if (worse != std::errc() || name != shard_file_name(shard, shards)) return std::nullopt;
  return std::pair{shard, shards};
}

std::string shard_file_name(std::uint64_t shard, std::uint64_t shards) {
  return std::string(name_start) + std::to_string(shard) + std::string(name_middle) +
         std::to_string(shards) + std::string(name_end);
}

double ShardFile::work() const {
  double sum = 0;
  for (const SharePart& part : share.parts) {
    sum += part.work * static_cast<double>(part.range.replicates);
  }
  return sum;
}

double ShardFile::work_done() const {
  double sum = 0;
  for (std::size_t i = 0; i < replicates.size(); ++i) {
    sum += share.parts[i].work * static_cast<double>(replicates[i]);
  }
  return sum;
}

double ShardFile::seconds_taken() const {
  double sum = 0;
  for (const double one : seconds) sum += std::isfinite(one) ? one : 0;
  return sum;
}

std::vector<std::string> shard_paths(const std::vector<std::string>& folders) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string>> found;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const std::string& name : names_in(folder, error)) {
      const auto numbers = shard_of_name(name);
      if (numbers) {
        found.emplace_back(numbers->second, numbers->first, (fs::path(folder) / name).string());
      }
    }
    if (error) {
      throw InvalidInput(one_line(folder) + ": cannot be read (" + error.message() +
                         ") - give a folder with shards");
    }
  }
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (auto& [shards, shard, path] : found) paths.push_back(std::move(path));
  return paths;
}

ShardFile read_shard_file(const std::string& path) {
  try {
    const NetcdfInput file(path);
    const NetcdfGroup root = file.root();
    std::optional<Share> share = read_share(root);
    if (!share) throw NetcdfError("it has no share");
    if (share->shards > max_shards) throw NetcdfError("its share is none");
    const auto named = shard_of_name(fs::path(path).filename().string());
    if (named && *named != std::pair(share->shard, share->shards)) {
      throw NetcdfError("it holds " + shard_file_name(share->shard, share->shards));
    }
    ShardFile shard{
        .path = path,
        .share = std::move(*share),
        .machine = Machine{.backend = root.text_attribute("backend"),
                           .simd = root.text_attribute("simd"),
                           .device = root.text_attribute("device"),
                           .threads = static_cast<int>(root.integer_attribute("threads"))},
        .program = {},
        .seed = {},
        .scenario_file = root.text_attribute("scenario_file"),
        .scenario_text = root.text_attribute("scenario_text"),
        .sets = root.text_attribute("set_arguments"),
        .complete = root.integer_attribute("complete") != 0,
        .replicates = {},
        .seconds = {}};
    for (const char* name : {"headlab_version", "git", "compiler", "build_type"}) {
      shard.program.emplace_back(name, root.text_attribute(name));
    }
    if (root.has_attribute("seed")) shard.seed = std::to_string(root.integer_attribute("seed"));
    if (root.dimension("condition") == 0) return shard;
    for (const std::int64_t count : root.integers("replicates")) {
      if (count < 0) throw NetcdfError("replicates: is negative");
      shard.replicates.push_back(static_cast<std::uint64_t>(count));
    }
    shard.seconds = root.doubles("seconds");
    if (shard.replicates.size() > shard.share.parts.size() ||
        shard.seconds.size() != shard.replicates.size()) {
      throw NetcdfError("condition: variables of different lengths");
    }
    return shard;
  } catch (const NetcdfError& error) {
    throw InvalidInput(one_line(path) + ": " + no_shard(error));
  }
}

std::string no_shard(const NetcdfError& error) {
  const std::string reason = error.what();
  // HDF5 does not say why it fails.
  const bool unexplained = reason.ends_with(nc_strerror(NC_EHDFERR));
  return "cannot be read as a shard (" + reason + ") - if " +
         (unexplained ? "memory is not short" : "it is damaged") + ", remove it and make it again";
}

std::string shards_text(const std::vector<std::uint64_t>& shards) {
  constexpr std::size_t most = 8;
  std::string text;
  const std::size_t listed_count = std::min(shards.size(), most);
  for (std::size_t i = 0; i < listed_count; ++i) {
    const bool last = i + 1 == shards.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(shards[i]);
  }
  if (shards.size() > most) text += " and " + std::to_string(shards.size() - most) + " more";
  return text;
}

std::string shard_command(const ShardFile& like, std::uint64_t shard, std::uint64_t shards,
                          const std::string& folder) {
  const bool is_piped = like.scenario_file == standard_input_name;
  std::string command = "headlab run " + (is_piped ? "-" : shell_word(like.scenario_file));
  std::istringstream sets(like.sets);
  for (std::string set; std::getline(sets, set);) command += " --set " + shell_word(set);
  if (like.machine.backend != "cpu") command += " --backend " + shell_word(like.machine.backend);
  return command + " --shard " + std::to_string(shard) + "/" + std::to_string(shards) + " --out " +
         shell_word(folder) + " --resume" + (is_piped ? " < SCENARIO.toml" : "");
}

}  // namespace headlab
