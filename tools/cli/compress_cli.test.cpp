// SPDX-License-Identifier: Apache-2.0
// headlab compress: low-rank approximations of the heads of a file.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/testing/small_checkpoint.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::ordered_json;

/// heads.nc of two layers with 3 heads of dimension 4 on 12 dimensions.
class CompressHeads : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::ofstream(folder_ / "b.safetensors", std::ios::binary) << small_bert().bytes();
    ASSERT_EQ(headlab({"import-heads", "b.safetensors", "--arch", "bert", "--heads", "3", "--out",
                       "heads.nc"})
                  .code,
              0);
    ASSERT_EQ(headlab({"import-heads", "b.safetensors", "--arch", "bert", "--heads", "3", "--layer",
                       "0", "--out", "heads.npy"})
                  .code,
              0);
  }
};

TEST_F(CompressHeads, ComparesTheMethodsWithStandardErrors) {
  const Arguments arguments = {"compress", "heads.nc", "--rank", "2", "--replicates", "16"};
  const ProgramResult table = headlab(arguments);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.err, "");
  for (const char* part :
       {"rank 2 of k 4, 2 layers, averages over heads, d 12, temperature 2", "kq_svd", "k_svd",
        "joint", "N(0, I), without --data", "128 keys a query, 16 x 16 queries, seed 0"}) {
    EXPECT_NE(table.out.find(part), std::string::npos) << part << table.out;
  }
  Arguments to_json = arguments;
  to_json.insert(to_json.end(), {"--json", "-"});
  const Json json = Json::parse(headlab(to_json).out);
  EXPECT_EQ(json["rank"], 2);
  EXPECT_EQ(json["inputs"], "normal");
  ASSERT_EQ(json["layers"].size(), 2u);
  const Json& methods = json["layers"][1]["methods"];
  ASSERT_EQ(methods.size(), 3u);
  for (const auto& [name, method] : methods.items()) {
    ASSERT_EQ(method["heads"].size(), 3u);
    for (const Json& head : method["heads"]) {
      EXPECT_GE(head["scores"].get<double>(), 0);
      for (const char* figure : {"weights", "outputs", "noise"}) {
        EXPECT_GT(head[figure]["mcse"].get<double>(), 0) << name << figure;
      }
    }
    EXPECT_LE(methods["kq_svd"]["mean"]["scores"].get<double>(),
              method["mean"]["scores"].get<double>());
  }
  // One layer has a row a head; another seed has other weights and the same scores.
  const ProgramResult layer = headlab({"compress", "heads.nc", "--rank", "2", "--layer", "1"});
  EXPECT_NE(layer.out.find("  head  method"), std::string::npos) << layer.out;
  to_json.insert(to_json.end(), {"--seed", "1"});
  const Json other = Json::parse(headlab(to_json).out)["layers"][1]["methods"];
  EXPECT_EQ(other["joint"]["mean"]["scores"], methods["joint"]["mean"]["scores"]);
  EXPECT_NE(other["joint"]["mean"]["weights"], methods["joint"]["mean"]["weights"]);
}

TEST_F(CompressHeads, TakesItsInputsFromAFile) {
  std::string rows;
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 12; ++j) {
      rows += (j == 0 ? "" : ",") +
              std::to_string((i * 7 + j * j * 3 + i * j) % 11 - (j == 2 ? 30 : 5));
    }
    rows += "\n";
  }
  std::ofstream(folder_ / "tokens.csv") << rows;
  const Arguments arguments = {"compress",     "heads.nc", "--rank", "2",
                               "--replicates", "8",        "--data", "tokens.csv"};
  const auto scores = [&](const Arguments& more) {
    Arguments all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), {"--json", "-"});
    return Json::parse(headlab(all).out)["layers"][0]["methods"]["kq_svd"]["mean"]["scores"];
  };
  const ProgramResult table = headlab(arguments);
  EXPECT_NE(table.out.find("rows of tokens.csv, 40 of them"), std::string::npos) << table.out;
  // Keys about their mean are no longer those that lose the least of all scores.
  EXPECT_GT(scores({"--centre"}).get<double>(), scores({}).get<double>());
}

TEST_F(CompressHeads, WritesHeadsThatAScenarioReads) {
  const ProgramResult written = headlab({"compress", "heads.nc", "--rank", "2", "--by", "joint",
                                         "--replicates", "8", "--out", "small.nc"});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.err, "headlab: wrote small.nc\n");
  const ProgramResult again = headlab({"compress", "heads.nc", "--rank", "2", "--out", "small.nc"});
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("--overwrite"), std::string::npos);
  EXPECT_EQ(headlab({"compress", "heads.nc", "--rank", "3", "--replicates", "8", "--out",
                     "small.nc", "--overwrite"})
                .code,
            0);
  EXPECT_NE(headlab({"hdi", "small.nc"}).out.find("2 layers, H 3, d 12, k 3, temperature 2"),
            std::string::npos);
  std::ofstream(folder_ / "s.toml")
      << "[scenario]\nname = \"small\"\n[data]\nn = 20\ndesign = { law = \"normal\", dim = 12 }\n"
         "regression = { law = \"zero\" }\nnoise = { law = \"normal\", sd = 1 }\n[heads]\ncount = "
         "3\ndim = 3\nsubspaces = { law = \"file\", path = \"small.nc\", layer = 1, query_key = "
         "true }\nkernel = { law = \"softmax\", temperature = 2 }\n[queries]\nlaw = \"design\"\n"
         "count = 2\n[run]\nreplicates = 64\n";
  const ProgramResult simulated = headlab({"run", "s.toml", "--quiet"});
  EXPECT_EQ(simulated.code, 0) << simulated.err;
}

TEST_F(CompressHeads, RefusesInOneLine) {
  const auto compress = [](const Arguments& more) {
    Arguments all = {"compress", "heads.nc"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_refusals({
      {{"compress"}, "compress: no file given - write headlab compress heads.nc --rank R"},
      {compress({}), "compress: --rank is missing - name one below the dimension of the heads"},
      {compress({"--rank", "0"}),
       "--rank: \"0\" does not fit (allowed: a whole number from 1 to 65535)"},
      {compress({"--rank", "4"}), "heads.nc: has heads of dimension 4, and rank 4 is not below it"},
      {compress({"--rank", "2", "--by", "k-svd"}),
       "--by: \"k-svd\" is unknown (allowed: kq_svd, k_svd, joint) - did you mean \"k_svd\"?"},
      {compress({"--rank", "2", "--n", "1"}),
       "--n: \"1\" does not fit (allowed: a whole number from 2 to 65536)"},
      {compress({"--rank", "2", "--layer", "7"}), "heads.nc: has no layer 7 (its layers: 0 to 1)"},
      {compress({"--rank", "2", "--out", "heads.nc", "--overwrite"}),
       "--out: would write over heads.nc, which is read here - choose another place"},
      {compress({"--rank", "2", "--out", "small.npy"}),
       "--out: small.npy: NPY holds one layer, not 2 - choose one with --layer, or write .nc"},
      {compress({"--rank", "2", "--out", "small.txt"}),
       "--out: small.txt: must end in .nc or .npy"},
      {{"compress", "heads.npy", "--rank", "2"},
       "heads.npy: has no w_q and w_k, from which scores are computed - give the NetCDF of headlab "
       "import-heads"},
  });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "small.npy"));
}

}  // namespace
}  // namespace headlab
