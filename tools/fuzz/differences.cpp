// SPDX-License-Identifier: Apache-2.0
// headlab diff: results, or a summary, next to good results of the same kind.
#include <memory>
#include <vector>

#include "engine/files/error.h"
#include "engine/results/stored_figures.h"
#include "tools/fuzz/stored_runs.h"
#include "tools/fuzz/target.h"
#include "validation/difference/results_difference.h"

namespace headlab::fuzz {
namespace {

/// The results that edits of run number `i` began with.
const StoredResults& good_results(std::size_t i) {
  static std::vector<std::unique_ptr<StoredResults>> all(stored_runs().size());
  if (!all[i]) all[i] = std::make_unique<StoredResults>(file_of(stored_runs()[i].bytes, i + 1));
  return *all[i];
}

void compare(const std::string& input) {
  if (input.starts_with('{')) {
    difference_of(StoredResults(file_of(input)), good_results(0));
    return;
  }
  const auto [run, path] = edited_run(input);
  const StoredResults edited(path);
  const StoredResults& good = good_results(static_cast<std::size_t>(run - stored_runs().data()));
  difference_of(good, edited);
  difference_of(edited, good);
}

}  // namespace

const Target reader::differences = {"differences", compare, words_of_runs};

}  // namespace headlab::fuzz
