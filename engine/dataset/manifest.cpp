// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/manifest.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/file_lock.h"
#include "engine/files/input_file.h"
#include "engine/files/json_fields.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_sum.h"
#include "engine/scenario/condition.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

/// Room for max_shards_of_dataset shards.
constexpr std::size_t max_manifest_bytes = std::size_t{1} << 33;

struct ProgramFields {
  const Provenance& program;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("version", program.version, "version of headlab");
    visit("git", program.git, "commit");
    visit("compiler", program.compiler, "compiler");
    visit("build_type", program.build_type, "kind of build");
  }
};

struct ShardFields {
  std::string path;
  ShardRange range;
  const std::vector<FileRecord>* files;  ///< nullptr where it is not finished

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("path", path, "of its files, without their endings");
    visit("first_replicate", range.first, "its first replicate");
    visit("replicates", range.count, "replicates");
    visit("files", files == nullptr ? std::nullopt : std::optional(*files), "null: not finished");
  }
};

struct ConditionFields {
  const Dataset& dataset;
  const ShardRecords& records;
  std::size_t number;

  template <class Visitor>
  void fields(Visitor& visit) const {
    const Condition& condition = *dataset.conditions[number].condition;
    std::vector<DatasetVariable> variables =
        dataset_variables(condition, dataset.request, condition.replicates);
    visit("parameters", condition.parameters.tree(), "scenario after --set and sweep");
    visit("inputs_sha256", dataset.conditions[number].inputs_sha256, "of its files");
    visit("seed", condition.seed, "seed");
    visit("replicates", condition.replicates, "replicates");
    visit("variables", by_name(variables), "a variable of the shards");
    visit("shards", shards(), "a shard");
  }

  std::vector<ShardFields> shards() const {
    std::vector<ShardFields> all;
    for (std::uint64_t shard = 0; shard < dataset.conditions[number].shards; ++shard) {
      const auto record = records.find({number, shard});
      all.push_back({.path = dataset.shard_path(number, shard),
                     .range = dataset.range(number, shard),
                     .files = record == records.end() ? nullptr : &record->second});
    }
    return all;
  }
};

struct ManifestFields {
  const Dataset& dataset;
  const ShardRecords& records;
  const Provenance& program;

  template <class Visitor>
  void fields(Visitor& visit) const {
    std::uint64_t shards = 0;
    std::uint64_t bytes = 0;
    for (const DatasetCondition& one : dataset.conditions) shards += one.shards;
    for (const auto& [id, files] : records) {
      for (const FileRecord& file : files) bytes += file.bytes;
    }
    const std::uint64_t seed = dataset.conditions.front().condition->seed;
    const bool one_seed = std::ranges::all_of(dataset.conditions, [&](const DatasetCondition& one) {
      return one.condition->seed == seed;
    });
    std::vector<ConditionFields> conditions;
    for (std::size_t i = 0; i < dataset.conditions.size(); ++i) {
      conditions.push_back({dataset, records, i});
    }
    visit("headlab", ProgramFields{program}, "the program");
    visit("format_version", dataset_format_version, "version of this format");
    visit("format", name_of(dataset.request.format), "of the shards");
    visit("complete", records.size() == shards, "every shard is finished");
    visit("bytes", bytes, "of the finished shards");
    visit("seed", one_seed ? std::optional(seed) : std::nullopt, "seed of all conditions");
    visit("scenario_file", dataset.scenario_file, "name of the scenario file");
    visit("scenario_text", dataset.scenario_text, "its text");
    visit("set_arguments", dataset.sets, "arguments of --set");
    visit("conditions", conditions, "a condition");
  }
};

/// What decides the bits of the shards: the rest may differ between runs that continue each
/// other.
Value identity_of(const Value& manifest) {
  Value conditions = required(manifest, "conditions");
  for (Value& condition : as<Value::Array>(conditions)) {
    // Name and aims.
    std::erase_if(as<Value::Members>(required(condition, "parameters")),
                  [](const Value::Entry& one) { return one.key == "scenario"; });
    Value& shards = required(condition, "shards");
    shards.data = std::uint64_t{items_of(shards).size()};
  }
  Value::Members identity = {{"conditions", {}, std::move(conditions)}};
  for (const char* key : {"format", "format_version"}) {
    identity.push_back({key, {}, required(manifest, key)});
  }
  identity.push_back({"version", {}, required(required(manifest, "headlab"), "version")});
  return {std::move(identity), {}};
}

/// Where two trees differ first, as a JSON Patch names it: "/conditions/0/parameters/run/seed".
std::optional<std::string> first_difference(const Value& a, const Value& b) {
  if (a == b) return std::nullopt;
  if (a.is<Value::Array>() && b.is<Value::Array>()) {
    const auto &left = items_of(a), &right = items_of(b);
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      const auto inside = first_difference(left[i], right[i]);
      if (inside) return "/" + std::to_string(i) + *inside;
    }
    return left.size() < right.size() ? "/-" : "/" + std::to_string(left.size() - 1);
  }
  if (a.is<Value::Members>() && b.is<Value::Members>()) {
    for (const auto& [key, location, value] : members_of(a)) {
      const Value* other = b.find(key);
      const auto inside = other == nullptr ? "" : first_difference(value, *other);
      if (inside) return "/" + key + *inside;
    }
    for (const Value::Entry& one : members_of(b)) {
      if (a.find(one.key) == nullptr) return "/" + one.key;
    }
  }
  return "";
}

ShardRecords records_of(const Value& manifest) {
  ShardRecords records;
  std::size_t which = 0;
  for (const Value& of : as<Value::Array>(required(manifest, "conditions"))) {
    std::uint64_t number = 0;
    for (const Value& shard : as<Value::Array>(required(of, "shards"))) {
      const ShardId id = {which, number++};
      const Value& all = required(shard, "files");
      if (all.is<Value::Null>()) continue;
      std::vector<FileRecord>& files = records[id];
      for (const Value& file : as<Value::Array>(all)) {
        const auto bytes = static_cast<std::uint64_t>(as<std::int64_t>(required(file, "bytes")));
        files.push_back({as<std::string>(required(file, "name")), bytes,
                         as<std::string>(required(file, "sha256"))});
      }
    }
    ++which;
  }
  return records;
}

constexpr const char* no_manifest = "no manifest";

/// The text of the file at `path` as JSON; null if it is not JSON.
Value manifest_of(const std::string& path, const std::string& text) {
  check_json_sum(path, text, " - write --overwrite, or choose another folder");
  return parse_json(text).value_or(Value());
}

bool has_file(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

/// How a manifest differs from that of a data set, and what it lists where it does not.
struct ComparedManifest {
  std::string difference;
  ShardRecords records;
};

ComparedManifest compared_manifest(const std::string& path, const Dataset& dataset,
                                   const Provenance& program) {
  ComparedManifest there;
  if (!has_file(path)) return there;
  try {
    const Value manifest = manifest_of(path, read_file(path, max_manifest_bytes));
    const Value identity = identity_of(manifest);
    // Both as read from a text, so that a number has one form.
    const Value expected = parse_json(manifest_json(dataset, {}, program)).value();
    const auto difference = first_difference(identity, identity_of(expected));
    if (difference) {
      there.difference = difference->empty() ? "the whole" : difference->substr(1);
    } else {
      there.records = records_of(manifest);
    }
  } catch (const JsonMismatch&) {
    there.difference = no_manifest;
  }
  return there;
}

/// How far digits go in `text` from `at` on.
std::size_t after_digits(const std::string& text, std::size_t at) {
  return std::min(text.find_first_not_of("0123456789", at), text.size());
}

}  // namespace

std::string manifest_json(const Dataset& dataset, const ShardRecords& records,
                          const Provenance& program) {
  return json_text(ManifestFields{dataset, records, program});
}

FolderLock::FolderLock(const std::string& folder, const std::function<bool()>& stop)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0 || wait_for_lock(descriptor_, stop)) return;
  ::close(descriptor_);
  throw WorkStopped();
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string difference_to_manifest(const std::string& path, const Dataset& dataset,
                                   const Provenance& program) {
  return compared_manifest(path, dataset, program).difference;
}

ShardRecords read_manifest(const std::string& path, const Dataset& dataset,
                           const Provenance& program) {
  ComparedManifest there = compared_manifest(path, dataset, program);
  if (there.difference.empty()) return std::move(there.records);
  throw InvalidInput(
      path +
      (there.difference == no_manifest
           ? ": is not a manifest of headlab dataset"
           : ": is of another data set (" + one_line(there.difference) + " differs)") +
      " - write --overwrite, or choose another folder");
}

ShardRecords update_manifest(const std::string& folder, const Dataset& dataset,
                             const ShardRecords& records, const std::vector<ShardId>& lost,
                             const Provenance& program, const std::function<bool()>& stop) {
  const std::string path = folder + "/manifest.json";
  const FolderLock lock(folder, stop);
  ShardRecords all = read_manifest(path, dataset, program);
  for (const ShardId& id : lost) all.erase(id);
  for (const auto& [id, files] : records) all[id] = files;
  write_atomically(path, manifest_json(dataset, all, program));
  return all;
}

FilesOfManifest files_of_manifest(const std::string& path) {
  FilesOfManifest files;
  if (!has_file(path)) return files;
  // What cannot be read is an error: it may be the manifest of a whole set.
  const std::string text = read_file(path, max_manifest_bytes);
  try {
    const Value manifest = manifest_of(path, text);
    for (const auto& [id, records] : records_of(manifest)) {
      for (const FileRecord& record : records) {
        if (is_file_of_data_set(record.name)) files.names.push_back(record.name);
      }
    }
    files.complete = as<bool>(required(manifest, "complete"));
  } catch (const JsonMismatch&) {
    return {};
  } catch (const InvalidInput&) {
    return {};
  }
  return files;
}

bool is_file_of_data_set(const std::string& name) {
  const std::string condition = "condition_", shard = "/shard_";
  if (!name.starts_with(condition)) return false;
  std::size_t at = after_digits(name, condition.size());
  if (at == condition.size() || name.compare(at, shard.size(), shard) != 0) return false;
  const std::size_t number = at + shard.size();
  at = after_digits(name, number);
  if (at == number) return false;
  const std::string rest = name.substr(at);
  return rest == ".nc" || (rest.starts_with("/") && rest.ends_with(".npy") &&
                           rest.find('/', 1) == std::string::npos && rest.size() > 5);
}

}  // namespace headlab
