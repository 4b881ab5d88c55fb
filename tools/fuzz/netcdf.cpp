// SPDX-License-Identifier: Apache-2.0
// Whole NetCDF files with bytes changed, as results and as heads. What the HDF5 library makes of
// them is not headlab's (docs/measured/fuzzing.md), so that this target is not among those run by
// default.
#include "engine/files/error.h"
#include "engine/files/models/head_file.h"
#include "engine/results/stored_figures.h"
#include "engine/shards/shard_files.h"
#include "tools/fuzz/stored_runs.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

void read_file_of(const std::string& bytes) {
  const std::string path = file_of(bytes);
  std::string rejected;
  const auto collect = [&](const auto& read) {
    try {
      read();
    } catch (const InvalidInput& refusal) {
      rejected = refusal.what();
    }
  };
  collect([&] { StoredResults(path).figures(0); });
  collect([&] { read_shard_file(path); });
  collect([&] { read_head_file(path); });
  throw InvalidInput(rejected);  // no file is all three
}

std::vector<NamedInput> netcdf_seeds() {
  std::vector<NamedInput> all;
  for (const StoredRun& run : stored_runs()) all.emplace_back(run.name, run.bytes);
  return all;
}

}  // namespace

const Target reader::netcdf = {"netcdf", read_file_of, nullptr, netcdf_seeds};

}  // namespace headlab::fuzz
