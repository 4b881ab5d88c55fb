// SPDX-License-Identifier: Apache-2.0
/// \file manifest.json: what a data set is, and the SHA-256 of each of its files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/files/provenance.h"

namespace headlab {

/// Raised whenever a reader of older data sets would misread a new one.
inline constexpr int dataset_format_version = 1;

/// A finished file.
struct FileRecord {
  std::string name;  ///< relative to the folder of the data set
  std::uint64_t bytes = 0;
  std::string sha256;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("name", name, "relative to the folder of the data set");
    visit("bytes", bytes, "size");
    visit("sha256", sha256, "its SHA-256");
  }
  bool operator==(const FileRecord&) const = default;
};

/// A shard by condition and number.
using ShardId = std::pair<std::size_t, std::uint64_t>;

/// The finished shards.
using ShardRecords = std::map<ShardId, std::vector<FileRecord>>;

/// The text of manifest.json (docs/datasets.md), the same for the same arguments.
std::string manifest_json(const Dataset& dataset, const ShardRecords& records,
                          const Provenance& program);

/// The first key in which the manifest at `path` differs from that of `dataset`, such as
/// "conditions/0/parameters/run/seed", or "no manifest" for another kind of file. Empty if they
/// agree or there is no file.
std::string difference_to_manifest(const std::string& path, const Dataset& dataset,
                                   const Provenance& program);

/// The finished shards that the manifest at `path` names; none where there is no file. Throws
/// InvalidInput where it is not a manifest, or is that of another data set than `dataset`.
ShardRecords read_manifest(const std::string& path, const Dataset& dataset,
                           const Provenance& program);

/// Adds `records` to the manifest in `folder`, which other processes may do at the same time for
/// other shards, and removes the shards in `lost` that it still names. Returns all it names then.
/// Throws InvalidInput and RunFailed, and WorkStopped where `stop` ends the wait for the others.
ShardRecords update_manifest(const std::string& folder, const Dataset& dataset,
                             const ShardRecords& records, const std::vector<ShardId>& lost,
                             const Provenance& program, const std::function<bool()>& stop);

/// What the manifest of any data set lists.
struct FilesOfManifest {
  std::vector<std::string> names;  ///< of finished shards, relative to its folder
  bool complete = false;           ///< it says so
};
/// Reads a manifest; empty if no file is at `path`, or another one. Ignores names that no data set
/// uses. Throws RunFailed, or InvalidInput that begins with the path, where it cannot be read.
FilesOfManifest files_of_manifest(const std::string& path);

/// True for names as condition_000/shard_00.nc and condition_000/shard_00/X.npy.
bool is_file_of_data_set(const std::string& name);

/// Keeps other processes from a folder's manifest. Best effort: some network file systems have no
/// locks. Throws WorkStopped where `stop` ends the wait for another one.
class FolderLock {
 public:
  FolderLock(const std::string& folder, const std::function<bool()>& stop);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace headlab
