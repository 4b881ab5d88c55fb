// SPDX-License-Identifier: Apache-2.0
/// \file What a data set of a scenario consists of: conditions, shards, variables, files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/session.h"
#include "engine/scenario/preparation.h"
#include "kernels/copy_on_write.h"

namespace headlab {

struct Condition;
struct Scenario;

/// How the variables of a shard are kept: one NetCDF-4 file, or a folder with one NPY file each.
enum class DatasetFormat { netcdf, npy };

const char* name_of(DatasetFormat format);

/// What is asked for.
struct DatasetRequest {
  DatasetFormat format = DatasetFormat::netcdf;
  /// Shards of each condition; without a number, as many as keep each below max_shard_bytes.
  std::optional<std::uint64_t> shards = {};
  bool estimates = false;  ///< the heads' estimates too
  bool weights = false;    ///< the attention weights too
};

inline constexpr std::uint64_t max_shard_bytes = std::uint64_t{256} << 20;
/// Shards of all conditions together, which are listed in memory and in the manifest.
inline constexpr std::uint64_t max_shards_of_dataset = 1'000'000;

enum class NumberType { float32, float64, int64 };

std::size_t size_of(NumberType type);
/// "float32", ...
const char* name_of(NumberType type);

/// One variable of one shard.
struct DatasetVariable {
  std::string name;
  NumberType type = NumberType::float64;
  std::vector<std::string> dimensions;  ///< "replicate", "n", ...
  std::vector<std::uint64_t> shape;     ///< [dimensions]
  std::string meaning;                  ///< a line for a reader of the file

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("dimensions", dimensions, "names of its axes");
    visit("shape", shape, "their lengths");
    visit("dtype", name_of(type), "type of its numbers");
    visit("meaning", meaning, "a line for a reader of the file");
  }
  std::uint64_t elements() const;
  std::uint64_t bytes() const { return elements() * size_of(type); }
};

/// The variables of a shard that holds `replicates` of a condition, in the order of the file:
/// replicate, projections, queries, truth, X, Y, m, noise_sd, then those asked for.
std::vector<DatasetVariable> dataset_variables(const Condition& condition,
                                               const DatasetRequest& request,
                                               std::uint64_t replicates);

/// Consecutive replicates.
struct ShardRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The replicates of shard `shard` of `shards`: consecutive, the first `replicates % shards` shards
/// with one more than the others. Requires shard < shards <= replicates.
ShardRange shard_range(std::uint64_t replicates, std::uint64_t shards, std::uint64_t shard);

/// One condition of a data set.
struct DatasetCondition {
  /// With uniform head weights unless they are learned: nothing asks for others.
  CopyOnWrite<Condition> condition;
  std::uint64_t shards = 1;
  Preparation found;
  std::string inputs_sha256;  ///< of the plan's numbers, which may come from data files
};

/// A data set as planned, before anything is written.
struct Dataset {
  std::string scenario_file;
  std::string scenario_text;
  std::vector<std::string> sets;  ///< --set arguments applied
  DatasetRequest request;
  std::vector<DatasetCondition> conditions;

  ShardRange range(std::size_t which, std::uint64_t shard) const;
  /// Relative to the folder of the data set: condition_000/shard_000.nc, or condition_000/shard_000
  /// for a folder of NPY files.
  std::string shard_path(std::size_t which, std::uint64_t shard) const;
  /// The files of a shard: that path itself, or one file a variable.
  std::vector<std::string> shard_files(std::size_t which, std::uint64_t shard) const;
  /// Bytes of the numbers of a shard.
  std::uint64_t shard_bytes(std::size_t which, std::uint64_t shard) const;
};

/// Plans the data set of a scenario, of run.replicates training sets a condition. Throws
/// InvalidInput where there are more shards than replicates, sizes beyond 2^60 bytes, or heads that
/// every replicate learns; those learned once are learned here, on the cpu backend whatever that of
/// the session. Unfinished where the session ended that.
Dataset plan_dataset(const Scenario& scenario, const DatasetRequest& request,
                     Session session = {.threads = 1});

}  // namespace headlab
