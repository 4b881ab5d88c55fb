// SPDX-License-Identifier: Apache-2.0
// A results file as every command reads it: diff and report its figures and nodes, --resume a
// checkpoint, merge and status a shard. Inputs are edits of results (stored_runs.h).
#include <filesystem>
#include <stdexcept>

#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/results/results_reader.h"
#include "engine/results/stored_figures.h"
#include "engine/run/checkpoint.h"
#include "engine/shards/merge.h"
#include "engine/shards/shard_files.h"
#include "tools/fuzz/stored_runs.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

/// Notes why a reader rejects a file.
class Refusals {
 public:
  template <class Read>
  void collect(const Read& read) {
    try {
      read();
    } catch (const InvalidInput& refusal) {
      last_ = refusal.what();
    }
  }
  void raise() const {
    if (!last_.empty()) throw InvalidInput(last_);
  }

 private:
  std::string last_;
};

void read_figures(const StoredResults& results, Refusals& refusals) {
  for (std::size_t i = 0; i < std::min<std::size_t>(results.size(), 4); ++i) {
    refusals.collect([&] { results.parameters(i); });
    refusals.collect([&] {
      for (const NamedFigure& one : results.figures(i).figures) {
        require(!one.name.empty(), "a figure without a name");
      }
    });
    if (!results.has_nodes()) continue;
    refusals.collect([&] {
      try {
        stored_tree(results.nodes(i));
      } catch (const std::invalid_argument& damaged) {
        throw InvalidInput(damaged.what());
      }
    });
  }
}

/// A folder with the file as its only shard.
std::string folder_of_shard(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).parent_path() / "shards";
  if (fs::create_directory(folder)) fs::create_symlink(path, folder / "shard_1_of_1.nc");
  return folder.string();
}

void read_results(const std::string& input) {
  const std::pair<const StoredRun*, std::string> edited = edited_run(input);
  const StoredRun& run = *edited.first;
  const std::string& path = edited.second;
  Refusals refusals;
  if (run.name == "version_1") {
    for (std::size_t i = 0; i < 2; ++i) refusals.collect([&] { read_nodes(path, i); });
    return refusals.raise();
  }
  if (!run.share) refusals.collect([&] { read_figures(StoredResults(path), refusals); });
  refusals.collect([&] {
    read_checkpoint(path, *run.scenario, provenance(), run.share ? &*run.share : nullptr);
  });
  if (run.share) {
    refusals.collect([&] { read_shard_file(path); });
    refusals.collect([&] { merge_shards({folder_of_shard(path)}, provenance(), true); });
  }
  refusals.raise();
}

}  // namespace

const Target reader::results = {"results", read_results, words_of_runs};

}  // namespace headlab::fuzz
