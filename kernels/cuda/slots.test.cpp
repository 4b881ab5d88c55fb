// SPDX-License-Identifier: Apache-2.0
// The rows of tools/check/slots.toml, whose machine code is counted, are what plan_launch chooses.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include <gtest/gtest.h>
#include <toml++/toml.h>

#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/weigh.h"
#include "kernels/testing/test_plans.h"

namespace headlab::emulated_cuda {
namespace {

template <class T>
T number(const toml::table& row, const char* key, T without) {
  return row[key].value_or(without);
}

KernelLaw law_of(const toml::table& row) {
  const std::string name = number<std::string>(row, "law", "gaussian");
  const double width = number(row, "width", 2.0);
  if (name == "gaussian") return GaussianKernel{.bandwidth = width};
  if (name == "softmax") return SoftmaxKernel{.temperature = width};
  if (name == "epanechnikov") return EpanechnikovKernel{.bandwidth = width};
  if (name == "laplace") return LaplaceKernel{.bandwidth = width};
  if (name == "triangular") return TriangularKernel{.bandwidth = width};
  throw std::invalid_argument(name);
}

const char* name_of(Microkernel microkernel) {
  static constexpr std::array names = {"distances1", "distances2", "distances4", "distances8",
                                       "dots1",      "dots2",      "dots3",      "dots4",
                                       "shifted1",   "shifted2",   "shifted4",   "tensor8",
                                       "tensor16",   "tensor32",   "tensor64",   "any"};
  static_assert(names.size() == static_cast<std::size_t>(Microkernel::any) + 1);
  return names[static_cast<std::size_t>(microkernel)];
}

/// Name of a microkernel's struct in the name of a kernel that is compiled for a GPU.
template <int Queries, int Keys, int Fragments = Queries / 2>
std::string struct_of(const LaunchPlan& launch, bool law) {
  std::string name;
  with_microkernel<Queries, Keys, Fragments>(launch.microkernel, law, [&]<class M>() {
    const std::string space = "N7headlab13emulated_cuda";
    name = typeid(M).name();
    if (name.starts_with(space)) name = "NS0_" + name.substr(space.size());
  });
  return name;
}

/// The kernel of a row, its division among threads, and the threads that split four keys.
struct Work {
  std::string symbol;
  Tiling tiling;
  int heads_of_stage, tile_keys, max_parts;
  int stages = 1;  ///< groups of heads of a tile
};
/// Of the template argument that says whether keys are projected.
std::string projects(const LaunchPlan& launch) {
  return launch.projects ? "Lb1E" : "Lb0E";
}
Work work_of(const std::string& kind, const LaunchPlan& launch, bool law) {
  const Tiling& t = launch.weigh;
  if (kind == "plain") {
    const int keys =
        launch.projects
            ? projected_tile_keys(launch.padded_k, false)
            : sum_tile_keys(launch.microkernel == Microkernel::any ? 0 : launch.padded_k);
    return {"11sums_kernelI" + struct_of<sum_queries, 4>(launch, law) +
                (launch.bounds_squares ? "Lb0E" : "Lb1E") + projects(launch),
            t, t.group_heads, keys, std::min(4, t.threads / (keys / 4))};
  }
  if (kind == "second pass") {
    const Tiling& pass = launch.ensemble;
    return {"15ensemble_kernelI" + struct_of<weight_queries, 4>(launch, law),
            pass,
            pass.group_heads,
            weight_tile_keys,
            1,
            pass.head_groups};
  }
  if (launch.register_heads == 0) {
    return {"16pair_sums_kernelI" +
                struct_of<weight_queries, 4, pair_fragment_queries / 2>(launch, law),
            t,
            t.group_heads,
            weight_tile_keys,
            1,
            t.head_groups};
  }
  const int heads = launch.register_heads;
  const int keys = pair_tile_keys(launch.padded_k);
  return {"21register_pairs_kernelI" + struct_of<pair_queries, 2>(launch, law) + "Li" +
              std::to_string(heads) + "E" + projects(launch),
          t, heads, keys, std::clamp(4 * t.threads / (heads * keys), 1, 4)};
}

/// Mean runs of a warp through a loop over `count` numbers that the threads take in turns.
double runs_of_warp(int count, int threads) {
  return std::ceil(count / 32.0) / (threads / 32);
}

/// Where the launch plan has something else than a row says, by key.
std::map<std::string, std::string> differences(const toml::table& row, int k) {
  const std::string kind = number<std::string>(row, "kind", "");
  const auto& kernel = law_of(row);
  const test::Shape shape = {.n = static_cast<std::uint64_t>(number(row, "n", 4096)),
                             .d = number(row, "d", 70),
                             .heads = number(row, "heads", 8),
                             .k = k,
                             .queries = number(row, "queries", 64)};
  const Plan plan =
      test::make_plan(shape, kernel, kind == "plain" ? Estimator::plain : Estimator::conditional,
                      kind == "second pass" ? MomentMode::aggregate : MomentMode::pairwise);
  const LaunchPlan launch =
      plan_launch(plan, {.stores_keys = number<std::string>(row, "keys", "") == "read"});
  const Work work = work_of(kind, launch, !norm_coefficient_of(kernel));
  const Tiling& t = work.tiling;

  std::map<std::string, std::string> found;
  const auto compare = [&](const char* key, const auto& said, const auto& chosen) {
    std::ostringstream text;
    text << said << " in the row, " << chosen << " chosen";
    if (said != chosen) found[key] = text.str();
  };
  compare("form", number<std::string>(row, "form", ""), std::string(name_of(launch.microkernel)));
  compare("symbol", number<std::string>(row, "symbol", ""), work.symbol);
  compare("threads", number(row, "threads", 0), t.threads);
  compare("shared_bytes", number<std::uint64_t>(row, "shared_bytes", 0), t.shared_bytes);
  int stages = 0;
  for (const toml::node& stage : *row["stages"].as_array()) {
    stages += number(*stage.as_table(), "times", 1);
  }
  compare("stages", stages, work.stages);
  compare("weights", number(row, "weights", 0),
          stages * work.heads_of_stage * t.block_queries * work.tile_keys / t.threads);
  const toml::table& stage = *row["stages"][0].as_table();
  const int fours = work.tile_keys / 4;
  const int rows = t.threads / fours;
  if (launch.projects) {
    const double passes = plan.d / static_cast<double>(rows);
    compare("copy", number(stage, "copy", 0.0), passes);
    compare("split", number(stage, "split", 0.0), passes);
    compare("loads", number(row, "loads", 0), 1);
    const int eights = projected_eights(launch.padded_k, work.tile_keys);
    const int warps = t.threads / static_cast<int>(warp_threads);
    compare("project", number(stage, "project", 0.0),
            work.heads_of_stage * work.tile_keys / (8.0 * eights * warps));
    compare("project_products", number(row, "project_products", 0),
            3 * eights * std::max(1, launch.padded_k / 16) * projection_chunks(plan.d));
    return found;
  }
  const int width = power_of_two_from(launch.padded_k);
  compare("copy", number(stage, "copy", 0.0),
          static_cast<double>(work.heads_of_stage) / std::max(1, rows / width));
  const bool splits = launch.on_tensor_cores();
  const int parts = splits ? work.max_parts : 1;
  const bool norms = launch.microkernel > Microkernel::distances8;
  compare(splits ? "split" : "norm", number(stage, splits ? "split" : "norm", 0.0),
          norms ? runs_of_warp(work.heads_of_stage * fours * parts, t.threads) : 0.0);
  compare("loads", number(row, "loads", 0), norms ? launch.padded_k / parts : 0);
  compare("move", number(stage, "move", 0.0),
          splits ? runs_of_warp(stage_stride(work.tile_keys) / 4, t.threads) : 0.0);
  return found;
}

toml::array rows_of_table() {
  return *toml::parse_file(HEADLAB_SOURCE_DIR "/tools/check/slots.toml")["kernel"].as_array();
}

TEST(Slots, RowsAreWhatIsLaunched) {
  const toml::array rows = rows_of_table();
  ASSERT_GT(rows.size(), 40u);
  for (const toml::node& node : rows) {
    const toml::table& row = *node.as_table();
    if (!row.contains("stages")) continue;  // of stage `keep`
    for (const toml::node& k : *row["d_k"].as_array()) {
      for (const auto& [key, text] : differences(row, k.value_or(0))) {
        ADD_FAILURE() << number<std::string>(row, "kind", "") << ", "
                      << number<std::string>(row, "form", "") << ", "
                      << number<std::string>(row, "law", "") << ", " << key << ": " << text;
      }
    }
  }
}

TEST(Slots, ARowThatStatesAnotherLaunchIsFound) {
  const toml::array rows = rows_of_table();
  const toml::table row = *rows[0].as_table();
  ASSERT_TRUE(differences(row, 1).empty());
  for (const char* key : {"form", "symbol"}) {
    toml::table wrong = row;
    wrong.insert_or_assign(key, "dots2");
    EXPECT_EQ(differences(wrong, 1).count(key), 1u) << key;
  }
  for (const char* key : {"threads", "shared_bytes", "weights", "loads"}) {
    toml::table wrong = row;
    wrong.insert_or_assign(key, number(row, key, 0) + 32);
    EXPECT_EQ(differences(wrong, 1).count(key), 1u) << key;
  }
  for (const char* key : {"copy", "norm", "move", "times"}) {
    toml::table wrong = row;
    (*wrong["stages"][0].as_table()).insert_or_assign(key, 7);
    const std::string said = key == std::string("times") ? "stages" : key;
    EXPECT_EQ(differences(wrong, 1).count(said), 1u) << key;
  }
  // Another size of the problem is another row.
  toml::table wrong = row;
  wrong.insert_or_assign("law", "triangular");
  EXPECT_EQ(differences(wrong, 1).count("form"), 1u);
  wrong = row;
  wrong.insert_or_assign("n", 500);
  EXPECT_EQ(differences(wrong, 1).count("symbol"), 1u);
  EXPECT_FALSE(differences(row, 2).empty());
}

}  // namespace
}  // namespace headlab::emulated_cuda
