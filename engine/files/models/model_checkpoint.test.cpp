// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/model_checkpoint.h"

#include <cmath>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/models/import_heads.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/small_checkpoint.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

class Shards : public FolderTest {
 protected:
  /// A tensor to each of two shards in turn, and their index.
  void write_shards(const SmallCheckpoint& whole) const {
    SmallCheckpoint parts[2];
    std::string map;
    std::size_t count = 0;
    for (const auto& [name, tensor] : whole.tensors) {
      const std::size_t part = count++ % 2;
      parts[part].tensors[name] = tensor;
      map += (map.empty() ? "\"" : ", \"") + name + "\": \"" + shard(part) + "\"";
    }
    write(shard(0), parts[0].bytes());
    write(shard(1), parts[1].bytes());
    write("model.safetensors.index.json",
          R"({"metadata": {"total_size": 1}, "weight_map": {)" + map + "}}");
  }
  static std::string shard(std::size_t part) {
    return "model-0000" + std::to_string(part + 1) + "-of-00002.safetensors";
  }
  std::string open_refusal(const std::string& name) const {
    return refusal_here([&] { ModelCheckpoint checkpoint(at(name)); });
  }
};

HeadImport six_heads() {
  return {.architecture = &find_architecture("llama"),
          .counts = {.heads = 6, .kv_heads = 3, .layers = {}, .head_dim = {}},
          .layer = {}};
}

TEST_F(Shards, HaveTheHeadsOfTheWholeFile) {
  const SmallCheckpoint whole = small_llama();
  write("whole.safetensors", whole.bytes());
  const HeadFile wanted = import_heads(at("whole.safetensors"), six_heads(), 1);
  write_shards(whole);
  for (const char* name : {"model.safetensors.index.json", ""}) {
    const HeadFile file = import_heads(at(name), six_heads(), 2);
    EXPECT_EQ(file.origin, at("model.safetensors.index.json"));
    ASSERT_EQ(file.layers.size(), 2u);
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t h = 0; h < 6; ++h) {
        EXPECT_EQ(file.layers[n].w_q[h], wanted.layers[n].w_q[h]);
        EXPECT_EQ(file.layers[n].subspaces[h], wanted.layers[n].subspaces[h]);
      }
    }
  }
}

TEST_F(Shards, AFolderIsReadByItsUsualNames) {
  write("b.safetensors", small_bert().bytes());
  EXPECT_EQ(ModelCheckpoint(folder_.string()).source(), at("b.safetensors"));
  write("a.safetensors", small_llama().bytes());
  EXPECT_EQ(open_refusal(""),
            ": has 2 models and none is called model.safetensors - name one: "
            "a.safetensors, b.safetensors");
  fs::rename(folder_ / "a.safetensors", folder_ / "a-00001-of-00002.safetensors");
  EXPECT_EQ(open_refusal(""),
            ": has shards of a model and no index - download a.safetensors.index.json too");
  write("model.safetensors", small_llama().bytes());
  EXPECT_EQ(ModelCheckpoint(folder_.string()).source(), at("model.safetensors"));
  EXPECT_EQ(config_next_to(folder_.string()), "");
  write("config.json", "{}");
  EXPECT_EQ(config_next_to(folder_.string()), at("config.json"));
  EXPECT_EQ(config_next_to(at("model.safetensors")), at("config.json"));
}

TEST_F(Shards, MessagesNameTheShard) {
  const SmallCheckpoint whole = small_llama();
  write_shards(whole);
  const auto import = [&] {
    return refusal_here([&] { import_heads(folder_.string(), six_heads(), 1); });
  };
  ASSERT_EQ(import(), "accepted");
  // In the order of their names, the first tensor is in the first shard.
  const std::string gain = "model.layers.0.input_layernorm.weight";
  const std::string key = "model.layers.0.self_attn.k_proj.weight";
  ASSERT_EQ(whole.tensors.begin()->first, gain);
  const std::string index = "model.safetensors.index.json";

  SmallCheckpoint bad = whole;
  bad.tensors[key].numbers[3] = INFINITY;
  write_shards(bad);
  EXPECT_EQ(import(), shard(1) + ": tensor \"" + key + "\" has a number that is not finite");
  bad = whole;
  bad.tensors[gain] = {{1}, {1.0f}};
  write_shards(bad);
  EXPECT_EQ(import(), shard(0) + ": tensor " + gain + " is 1, needs 12");

  write_shards(whole);
  fs::remove(folder_ / shard(1));
  EXPECT_EQ(import(), shard(1) + ": is missing - " + index + " places tensor " + key + " there");
  write(shard(1), SmallCheckpoint().bytes());
  EXPECT_EQ(import(), shard(1) + ": has no tensor " + key + ", which " + index + " places there");
  write(shard(1), "short");
  EXPECT_EQ(import(), shard(1) + ": is not a safetensors file: it has fewer than 8 bytes");
}

TEST_F(Shards, OneLayerNeedsItsShardsAlone) {
  SmallCheckpoint first, second;
  std::string map;
  for (const auto& [name, tensor] : small_llama().tensors) {
    const bool layer_one = name.find("layers.1.") != std::string::npos;
    (layer_one ? second : first).tensors[name] = tensor;
    map += (map.empty() ? "\"" : ", \"") + name + "\": \"" + shard(layer_one ? 1 : 0) + "\"";
  }
  write(shard(0), first.bytes());
  write("model.safetensors.index.json", R"({"weight_map": {)" + map + "}}");
  HeadImport one = six_heads();
  one.layer = 0;
  EXPECT_EQ(import_heads(folder_.string(), one, 1).layers.size(), 1u);
  one.layer = 1;
  EXPECT_NE(refusal_here([&] { import_heads(folder_.string(), one, 1); }).find("is missing"),
            std::string::npos);
}

TEST_F(Shards, MalformedIndicesAreRefused) {
  const std::string needs =
      "i: is not an index of shards: needs an object \"weight_map\" {TENSOR: SHARD}";
  const auto parse = [&](const std::string& text) {
    return refusal_here([&] { parse_shard_index(text, "i"); });
  };
  EXPECT_EQ(parse(""), "i: is not JSON from line 1, column 1 on");
  EXPECT_EQ(parse("{"), "i: is not JSON from line 1, column 2 on");
  for (const char* text : {"[]", "{}", R"({"weight_map": 1})", R"({"weight_map": {}})"}) {
    EXPECT_EQ(parse(text), needs) << text;
  }
  EXPECT_EQ(parse(std::string(100000, '[')),
            "i: is not JSON of at most 100 levels from line 1, column 101 on");
  const std::string allowed = " (allowed: the name of a .safetensors file in the same folder)";
  for (const char* shard : {R"("../x.safetensors")", R"("/x.safetensors")", R"("x.bin")", "1"}) {
    EXPECT_EQ(parse(std::string(R"({"weight_map": {"t": )") + shard + "}}"),
              "i: weight_map: tensor \"t\" is in " + std::string(shard) + allowed);
  }
  EXPECT_EQ(parse(R"({"weight_map": {"t": "x.safetensors"}})"), "accepted");
}

TEST_F(Shards, PyTorchFilesAreRefusedWithTheCommandThatConvertsThem) {
  const std::string command =
      "python3 -c \"import sys, torch; from safetensors.torch import save_file; save_file({k: "
      "v.clone().contiguous() for k, v in torch.load(sys.argv[1], map_location='cpu', "
      "weights_only=True).items()}, sys.argv[2])\" ";
  const std::string reason = ": is PyTorch's own format and not safetensors - convert ";
  write("pytorch_model.bin", "PK");
  EXPECT_NE(open_refusal("x.pt").find("convert it with"), std::string::npos);
  EXPECT_EQ(open_refusal("pytorch_model.bin.index.json"), "pytorch_model.bin.index.json" + reason +
                                                              "each shard with: " + command +
                                                              "SHARD.bin model.safetensors");
  fs::remove(folder_ / "pytorch_model.bin");
  EXPECT_EQ(open_refusal(""),
            ": has no safetensors file (looked for model.safetensors, *.safetensors)");
}

}  // namespace
}  // namespace headlab
