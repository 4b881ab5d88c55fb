// SPDX-License-Identifier: Apache-2.0
// headlab compress: low-rank approximations of the heads of a file.
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

}  // namespace
}  // namespace headlab
