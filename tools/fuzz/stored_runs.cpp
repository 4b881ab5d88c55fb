// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/stored_runs.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>

#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/results/results_netcdf.h"
#include "engine/run/run.h"
#include "engine/shards/cut.h"
#include "kernels/testing/paths.h"
#include "tools/fuzz/netcdf_edits.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

const std::string regression_text = R"([scenario]
name = "fuzz"
[data]
n = 6
design = { law = "normal", dim = 3 }
regression = { law = "linear", coefficients = [1, 0, 0] }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 2
dim = 1
subspaces = { law = "haar" }
kernel = { law = "gaussian", bandwidth = 0.4 }
[queries]
law = "points"
points = [[0.5, 0, 0]]
[run]
seed = 3
replicates = 24
)";

const std::string depth_text = R"([scenario]
name = "fuzz"
[tokens]
n = 4
design = { law = "normal", dim = 3 }
[heads]
count = 2
dim = 3
kernel = { law = "softmax", temperature = 1.5 }
maps = { law = "gaussian", query_key = 1, value = 0.5 }
[layers]
count = 2
[run]
seed = 1
replicates = 16
)";

/// Indices as headlab run finds them: one of the heads' subspaces, and those of the error.
std::vector<ConditionIndices> indices_of(const RunResult& result) {
  std::vector<ConditionIndices> all;
  for (const ConditionResult& one : result.conditions) {
    ConditionIndices& indices = all.emplace_back();
    if (one.layers) continue;
    indices.push_back({.name = "chordal", .figure = {.value = 0.75}, .upper_bound = 1});
    const ErrorTerms<Estimate>& terms = one.estimates;
    NumberList<const Estimate> of_error;
    terms.index_fields(of_error);
    for (const auto& index : of_error.all) {
      indices.push_back(
          {.name = index.name, .figure = *index.number, .upper_bound = 2, .simulated = true});
    }
  }
  return all;
}

/// A mean that is not known leaves a control without coefficient, which no run refuses.
ControlMeans unknown_means(const Condition&, const Plan& plan, const std::function<bool(double)>&) {
  const auto heads = static_cast<std::size_t>(plan.queries * plan.heads);
  const std::size_t pairs = heads * static_cast<std::size_t>(plan.heads + 1) / 2;
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  return {.log_scale = std::vector<double>(heads),
          .estimate = std::vector<double>(heads),
          .of_estimates = std::vector<double>(heads * estimate_controls, unknown),
          .of_noise = std::vector<double>(pairs * noise_controls, unknown)};
}

StoredRun stored(const std::string& name, const std::string& text,
                 const std::vector<std::string>& sets = {}, const std::string& until = {},
                 std::optional<std::pair<std::uint64_t, std::uint64_t>> shard = {}) {
  const Session session{.backend = "reference", .threads = 1, .control_means = unknown_means};
  auto scenario = std::make_shared<const Scenario>(parse_scenario(text, "fuzz.toml", sets));
  RunOptions options;
  if (!until.empty()) options.until = parse_until(until);
  std::optional<Share> share;
  if (shard) {
    share = ScenarioCut(*scenario, 16).share(shard->first, shard->second);
    scenario = std::make_shared<const Scenario>(scenario_of(*scenario, *share));
    options.share = &*share;
  }
  NetcdfImage image;
  const RunResult result = run(scenario, session, options);
  put_results(image.root(), *scenario, result, indices_of(result), provenance());
  const NetcdfBytes bytes = image.bytes();
  const std::string path = file_of({static_cast<const char*>(bytes.memory.get()), bytes.size});
  return {name, editable(path), scenario, share};
}

std::vector<StoredRun> make_runs() {
  const std::string sweep = "[sweep]\n\"heads.count\" = [1, 2]\n";
  std::vector<StoredRun> all;
  all.push_back(stored("run", regression_text));
  all.push_back(stored("sweep", regression_text + sweep, {"run.replicates=8"}));
  all.push_back(stored("until", regression_text, {"run.replicates=1024"}, "mse=10%"));
  all.push_back(
      stored("redraw", regression_text, {"heads.subspaces={ law = \"haar\", redraw = true }"}));
  all.push_back(
      stored("controls", regression_text, {"run.controls={ law = \"exact\", pilot = 1024 }"}));
  all.push_back(stored("depth", depth_text));
  all.push_back(stored("shard", regression_text + sweep, {}, "", std::pair{1, 1}));
  all.push_back({"version_1",
                 editable(test::source_dir() + "/validation/testdata/results-version-1.nc"),
                 all.front().scenario});
  return all;
}

}  // namespace

const std::vector<StoredRun>& stored_runs() {
  static const std::vector<StoredRun> all = [] {
    try {
      return make_runs();
    } catch (const std::exception& error) {
      // No input would be to blame.
      throw std::logic_error(error.what());
    }
  }();
  return all;
}

std::pair<const StoredRun*, std::string> edited_run(const std::string& input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const auto run = std::ranges::find(stored_runs(), input.substr(0, end), &StoredRun::name);
  if (run == stored_runs().end()) throw InvalidInput("names no results to begin with");
  try {
    const std::string path = file_of(run->bytes);
    edit(path, std::string_view(input).substr(end));
    walk(path);
    return {&*run, path};
  } catch (const std::runtime_error&) {
    throw InvalidInput("makes no file");
  }
}

std::vector<std::string> words_of_runs() {
  std::vector<std::string> files, names;
  for (const StoredRun& run : stored_runs()) {
    files.push_back(run.bytes);
    names.push_back(run.name + "\n");
  }
  std::vector<std::string> words = words_of(files);
  words.insert(words.end(), names.begin(), names.end());
  return words;
}

}  // namespace headlab::fuzz
