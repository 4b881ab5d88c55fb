// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/manifest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>
#include <variant>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/table_file.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;  // as written
using Tree = nlohmann::json;          // as read: the order of keys has no meaning

/// Room for max_shards_of_dataset shards.
constexpr std::size_t max_manifest_bytes = std::size_t{1} << 33;

const char* dtype_of(NumberType type) {
  switch (type) {
    case NumberType::float32:
      return "float32";
    case NumberType::float64:
      return "float64";
    case NumberType::int64:
      break;
  }
  return "int64";
}

Json variables_of(const Dataset& dataset, const Condition& condition) {
  Json variables = Json::object();
  for (const DatasetVariable& variable :
       dataset_variables(condition, dataset.request, condition.replicates)) {
    variables[variable.name] = {{"dimensions", variable.dimensions},
                                {"shape", variable.shape},
                                {"dtype", dtype_of(variable.type)},
                                {"meaning", variable.meaning}};
  }
  return variables;
}

Json shards_of(const Dataset& dataset, std::size_t which, const ShardRecords& records) {
  Json shards = Json::array();
  for (std::uint64_t shard = 0; shard < dataset.conditions[which].shards; ++shard) {
    const ShardRange range = dataset.range(which, shard);
    Json json = {{"path", dataset.shard_path(which, shard)},
                 {"first_replicate", range.first},
                 {"replicates", range.count},
                 {"files", nullptr}};
    if (const auto record = records.find({which, shard}); record != records.end()) {
      json["files"] = Json::array();
      for (const FileRecord& file : record->second) {
        json["files"].push_back(
            {{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
      }
    }
    shards.push_back(std::move(json));
  }
  return shards;
}

Json manifest_of(const Dataset& dataset, const ShardRecords& records, const Provenance& program) {
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
  for (const DatasetCondition& one : dataset.conditions) shards += one.shards;
  for (const auto& [id, files] : records) {
    for (const FileRecord& file : files) bytes += file.bytes;
  }
  const auto& conditions = dataset.conditions;
  const std::uint64_t seed = conditions.front().condition.seed;
  const bool one_seed = std::ranges::all_of(
      conditions, [&](const DatasetCondition& one) { return one.condition.seed == seed; });
  Json json = {{"headlab",
                {{"version", program.version},
                 {"git", program.git},
                 {"compiler", program.compiler},
                 {"build_type", program.build_type}}},
               {"format_version", dataset_format_version},
               {"format", name_of(dataset.request.format)},
               {"complete", records.size() == shards},
               {"bytes", bytes},
               {"seed", one_seed ? Json(seed) : Json(nullptr)},
               {"scenario_file", dataset.scenario_file},
               {"scenario_text", dataset.scenario_text},
               {"set_arguments", dataset.sets},
               {"conditions", Json::array()}};
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Condition& condition = conditions[i].condition;
    json["conditions"].push_back({{"parameters", Json::parse(to_json(condition.parameters.tree()))},
                                  {"inputs_sha256", conditions[i].inputs_sha256},
                                  {"seed", condition.seed},
                                  {"replicates", condition.replicates},
                                  {"variables", variables_of(dataset, condition)},
                                  {"shards", shards_of(dataset, i, records)}});
  }
  return json;
}

/// What decides the bits of the shards: the rest may differ between runs that continue each
/// other.
Tree identity_of(const Tree& manifest) {
  Tree identity = {{"version", manifest.at("headlab").at("version")},
                   {"format_version", manifest.at("format_version")},
                   {"format", manifest.at("format")},
                   {"conditions", manifest.at("conditions")}};
  for (Tree& condition : identity.at("conditions")) {
    condition.at("parameters").erase("scenario");  // name and aims
    condition["shards"] = condition.at("shards").size();
  }
  return identity;
}

/// "conditions/0/parameters/run/seed" of the first difference.
std::string first_difference(const Tree& a, const Tree& b) {
  const Tree patch = Tree::diff(a, b);
  return patch.at(0).at("path").get<std::string>().substr(1);
}

ShardRecords records_of(const Tree& manifest) {
  ShardRecords records;
  std::size_t which = 0;
  for (const Tree& of : manifest.at("conditions")) {
    std::uint64_t number = 0;
    for (const Tree& shard : of.at("shards")) {
      const ShardId id = {which, number++};
      if (shard.at("files").is_null()) continue;
      std::vector<FileRecord>& files = records[id];
      for (const Tree& file : shard.at("files")) {
        files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<std::uint64_t>(),
                         file.at("sha256").get<std::string>()});
      }
    }
    ++which;
  }
  return records;
}

/// Keeps other processes from the manifest of a folder. Best effort: some network file systems have
/// no locks.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace

std::string manifest_json(const Dataset& dataset, const ShardRecords& records,
                          const Provenance& program) {
  return manifest_of(dataset, records, program)
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

ShardRecords read_manifest(const std::string& path, const Dataset& dataset,
                           const Provenance& program, bool overwrite) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  const std::string text = read_file(path, max_manifest_bytes);
  std::string difference;
  try {
    const Tree manifest = parse_json<Tree>(text);
    // Both as read from a text, so that a number has one form.
    const Tree expected = Tree::parse(manifest_json(dataset, {}, program));
    const Tree here = identity_of(manifest);
    const Tree wanted = identity_of(expected);
    if (here == wanted) return records_of(manifest);
    difference = first_difference(here, wanted);
  } catch (const Tree::exception&) {
    if (overwrite) return {};
    throw InvalidInput(
        path +
        ": is not a manifest of headlab dataset - write --overwrite, or choose another "
        "folder");
  }
  if (overwrite) return {};
  throw InvalidInput(path + ": is of another data set (" + one_line(difference) +
                     " differs) - write --overwrite, or choose another folder");
}

ShardRecords update_manifest(const std::string& folder, const Dataset& dataset,
                             const ShardRecords& records, const std::vector<ShardId>& lost,
                             const Provenance& program, bool overwrite) {
  const std::string path = folder + "/manifest.json";
  const FolderLock lock(folder);
  ShardRecords all = read_manifest(path, dataset, program, overwrite);
  for (const ShardId& id : lost) all.erase(id);
  for (const auto& [id, files] : records) all[id] = files;
  write_atomically(path, manifest_json(dataset, all, program));
  return all;
}

}  // namespace headlab
