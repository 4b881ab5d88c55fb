// SPDX-License-Identifier: Apache-2.0
/// \file A data set: planned, checked, drawn shard by shard, recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/files/provenance.h"
#include "engine/run/session.h"

namespace headlab {

/// What is there and what is to be done, known before anything is written.
struct DatasetWork {
  std::size_t conditions = 0;
  std::uint64_t shards = 0;   ///< asked for, of all conditions
  std::uint64_t kept = 0;     ///< of these, intact by their SHA-256
  std::uint64_t damaged = 0;  ///< of these, recorded but missing or changed: written again
  std::uint64_t bytes = 0;    ///< to write
};

struct DatasetOptions {
  std::optional<std::uint64_t> only_shard = {};  ///< of each condition; else all
  bool overwrite = false;                        ///< another data set in the folder is replaced
  std::function<void(const DatasetWork&)> begin = {};
};

struct DatasetResult {
  DatasetWork work;
  std::uint64_t written = 0;  ///< shards
  /// Where the set is: not in its place yet where it is to replace another one and is not complete.
  std::string folder = {};
  std::vector<std::string> left = {};  ///< files among those that were replaced, not of a data set
  Outcome outcome;                     ///< complete: all shards asked for are there
};

/// Writes the shards of `dataset` into `target`, which exists, one after the other, each drawn by
/// all threads while those before it are summed and flushed. A shard is there whole or not at all,
/// and manifest.json names it once it is on the disk. Shards that are there already are kept where
/// their SHA-256 is that of the manifest. Throws InvalidInput, before anything is written, for a
/// shard number out of range, a folder with another data set (unless that is to be replaced: it
/// stays whole until the new one is, engine/dataset/replacement.h), or too little memory or room on
/// the disk; RunFailed where a file cannot be written: finished shards are recorded. Reports bytes
/// "to check", then bytes "to write"; the backend of the session has no part in it.
DatasetResult write_dataset(const Dataset& dataset, const std::string& target,
                            const Session& session, const DatasetOptions& options,
                            const Provenance& program);

}  // namespace headlab
