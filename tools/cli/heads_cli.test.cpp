// SPDX-License-Identifier: Apache-2.0
// The commands about heads of trained models: import-heads and hdi.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/npy_file.h"
#include "engine/testing/small_checkpoint.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::ordered_json;

/// Checkpoints of the three architectures in the working folder.
class Heads : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("b.safetensors", small_bert().bytes());
    write("g.safetensors", small_gpt2().bytes());
    write("l.safetensors", small_llama().bytes());
    write("b.json", R"({"model_type": "bert", "num_attention_heads": 3, "num_hidden_layers": 2})");
    write("l.json", R"({"num_attention_heads": 6, "num_key_value_heads": 3})");
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
};

TEST_F(Heads, ImportAndCompareEachArchitecture) {
  const std::vector<Arguments> imports = {
      {"b.safetensors", "--arch", "bert", "--config", "b.json", "--out", "b.nc"},
      {"g.safetensors", "--arch", "gpt2", "--heads", "3", "--out", "g.nc"},
      {"l.safetensors", "--arch", "llama", "--config", "l.json", "--out", "l.nc"}};
  for (Arguments arguments : imports) {
    const std::string out = arguments.back();
    arguments.insert(arguments.begin(), "import-heads");
    const ProgramResult imported = headlab(arguments);
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_EQ(imported.err, "headlab: wrote " + out + "\n");
    const ProgramResult table = headlab({"hdi", out});
    EXPECT_EQ(table.code, 0) << table.err;
    EXPECT_EQ(table.err, "");
    EXPECT_NE(table.out.find("2 layers, H "), std::string::npos) << table.out;
    const ProgramResult compared = headlab({"hdi", out, "--json", "-"});
    const Json json = Json::parse(compared.out);
    ASSERT_EQ(json["layers"].size(), 2u);
    const Json& layer = json["layers"][1];
    EXPECT_EQ(layer["layer"], 1);
    const bool llama = out == "l.nc";
    EXPECT_EQ(layer["heads"], llama ? 6 : 3);
    EXPECT_EQ(layer["dim"], llama ? 2 : 4);
    EXPECT_EQ(layer["indices"]["qk"]["value"].is_null(), llama);
    EXPECT_TRUE(layer["indices"]["chordal"]["z"].is_number());
    if (llama) {
      EXPECT_NEAR(layer["principal_cosines"][0][1][1].get<double>(), 1, 1e-12);  // shared keys
    }
    // One layer of it alone is the same layer, also as NPY.
    const std::string npy = out.substr(0, 1) + ".npy";
    arguments.back() = npy;
    arguments.insert(arguments.end(), {"--layer", "1"});
    ASSERT_EQ(headlab(arguments).code, 0);
    Arguments of_npy = {"hdi", npy, "--json", "-"};
    if (llama) {
      EXPECT_NE(table.out.find("random heads of that shape in 3 key-value groups, seed 0"),
                std::string::npos)
          << table.out;
      EXPECT_EQ(json["kv_heads"], 3);
      // An NPY file does not name its groups; a NetCDF file does, and allows no others.
      const std::string equal = "some heads have the same keys: ";
      EXPECT_NE(headlab({"hdi", npy}).out.find(equal), std::string::npos);
      EXPECT_EQ(headlab({"hdi", npy, "--kv-heads", "3"}).out.find(equal), std::string::npos);
      of_npy.insert(of_npy.end(), {"--kv-heads", "3"});
    }
    const Json alone = Json::parse(headlab(of_npy).out);
    EXPECT_EQ(alone["layers"][0]["indices"]["chordal"], layer["indices"]["chordal"]);
    EXPECT_EQ(alone["layers"][0]["principal_cosines"], layer["principal_cosines"]);
    EXPECT_TRUE(alone["layers"][0]["indices"]["qk"]["value"].is_null());
  }
}

TEST_F(Heads, HeadsOfLowRankAreNamed) {
  SmallCheckpoint c = small_bert();
  auto& numbers = c.tensors["bert.encoder.layer.1.attention.self.key.weight"].numbers;
  std::fill_n(numbers.begin() + 48, 96, 0.0f);
  write("z.safetensors", c.bytes());
  const Arguments import = {"import-heads", "z.safetensors", "--config", "b.json", "--out", "z.nc"};
  const ProgramResult imported = headlab(import);
  ASSERT_EQ(imported.code, 0) << imported.err;
  EXPECT_NE(imported.out.find("layer 1: heads 1 and 2 left out, keys of rank 0 below k = 4\n"),
            std::string::npos)
      << imported.out;
  const ProgramResult table = headlab({"hdi", "z.nc"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("layer 1 has 1 of 3 heads"), std::string::npos) << table.out;
  const Json json = Json::parse(headlab({"hdi", "z.nc", "--json", "-"}).out);
  EXPECT_EQ(json["layers"][0]["heads"], 3);
  EXPECT_EQ(json["layers"][1]["heads"], 1);
  EXPECT_EQ(json["layers"][1]["head_numbers"], Json::array({0}));
}

TEST_F(Heads, HdiNamesTheMostAlikeHeads) {
  // Heads 0 and 2 are one line, head 1 has squared cosine 0.36 with them.
  write("h.npy", npy_bytes({3, 2, 1}, std::vector<double>{1, 0, 3, 4, 2, 0}));
  const std::string out = headlab({"hdi", "h.npy"}).out;
  EXPECT_NE(out.find("random chordal"), std::string::npos) << out;
  EXPECT_NE(out.find("z overlap"), std::string::npos) << out;
  EXPECT_NE(out.find("  layer 0: heads 0 and 2, mean squared cosine 1.00: one subspace\n"
                     "  layer 0: heads 0 and 1, mean squared cosine 0.36\n"),
            std::string::npos)
      << out;
  const std::string last =
      "\n\ncompared are weights, not what heads do on text: a head that is like another may be "
      "needed there\n";
  EXPECT_TRUE(out.ends_with(last)) << out;
  EXPECT_EQ(out.find("redundant"), std::string::npos) << out;
  const std::string none = headlab({"hdi", "h.npy", "--top", "0"}).out;
  EXPECT_EQ(none.find("most alike"), std::string::npos) << none;
  EXPECT_TRUE(none.ends_with(last)) << none;
  // In groups, the first of which has the lines of heads 0 and 1.
  write("g.npy", npy_bytes({4, 2, 1}, std::vector<double>{1, 0, 2, 0, 3, 4, 3, 4}));
  const std::string groups = headlab({"hdi", "g.npy", "--kv-heads", "2"}).out;
  EXPECT_NE(groups.find("  layer 0: heads 0 and 1; 2 and 3, mean squared cosine 1.00: share keys "
                        "by construction\n"),
            std::string::npos)
      << groups;

  const auto alike_of = [&](const std::string& top) {
    return Json::parse(headlab({"hdi", "h.npy", "--top", top, "--json", "-"}).out).at("alike");
  };
  const Json alike = alike_of("5");
  ASSERT_EQ(alike["pairs"].size(), 1u);
  EXPECT_EQ(alike["pairs"][0]["layer"], 0);
  EXPECT_EQ(alike["pairs"][0]["heads"], Json::array({0, 1}));
  EXPECT_NEAR(alike["pairs"][0]["mean_squared_cosine"].get<double>(), 0.36, 1e-15);
  EXPECT_EQ(alike["identical"],
            Json::parse(R"([{"layer": 0, "heads": [0, 2], "share_keys": false}])"));
  EXPECT_EQ(alike.size(), 2u);
  EXPECT_EQ(alike_of("0")["pairs"], Json::array());
  EXPECT_EQ(alike_of("0")["identical"], Json::array());
}

TEST_F(Heads, ImportedHeadsRunAsALaw) {
  ASSERT_EQ(headlab({"import-heads", "b.safetensors", "--arch", "bert", "--config", "b.json",
                     "--out", "b.nc"})
                .code,
            0);
  const Arguments run = {"run",
                         "a.toml",
                         "--replicates",
                         "16",
                         "--quiet",
                         "--json",
                         "-",
                         "--set",
                         "data.design={law=\"normal\", dim=12}",
                         "--set",
                         "data.regression={law=\"zero\"}",
                         "--set",
                         "queries={law=\"design\", count=2}",
                         "--set",
                         "heads.count=3",
                         "--set",
                         "heads.dim=4",
                         "--set",
                         "heads.subspaces={law=\"file\", path=\"b.nc\", layer=1}"};
  const ProgramResult outcome = headlab(run);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json hdi = Json::parse(headlab({"hdi", "b.nc", "--json", "-"}).out);
  const double of_run =
      Json::parse(outcome.out)["conditions"][0]["indices"]["chordal"]["value"].get<double>();
  EXPECT_NEAR(of_run, hdi["layers"][1]["indices"]["chordal"]["value"].get<double>(), 1e-13);
  EXPECT_GT(std::abs(of_run - hdi["layers"][0]["indices"]["chordal"]["value"].get<double>()), 1e-6);
}

TEST_F(Heads, HdiWritesItsFiguresToAFile) {
  write("h.npy", npy_bytes({2, 3, 1}, std::vector<double>{1, 0, 0, 3, 4, 0}));
  const ProgramResult to_file = headlab({"hdi", "h.npy", "--json", "h.json"});
  EXPECT_EQ(to_file.code, 0);
  EXPECT_EQ(to_file.err, "headlab: wrote h.json\n");
  const std::string text = contents(folder_ / "h.json");
  EXPECT_EQ(text, headlab({"hdi", "h.npy", "--json", "-", "--threads", "1"}).out);
  EXPECT_NE(text, headlab({"hdi", "h.npy", "--json", "-", "--seed", "1"}).out);
  const Json layer = Json::parse(text)["layers"][0];
  // Lines at the angle of (1, 0, 0) and (3, 4, 0).
  EXPECT_NEAR(layer["principal_cosines"][0][1][0].get<double>(), 0.6, 1e-15);
  EXPECT_NEAR(layer["indices"]["chordal"]["value"].get<double>(), 0.64, 1e-15);
  EXPECT_NEAR(layer["indices"]["chordal"]["random_mean"].get<double>(), 2.0 / 3, 1e-15);
}

}  // namespace
}  // namespace headlab
