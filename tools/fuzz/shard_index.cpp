// SPDX-License-Identifier: Apache-2.0
// Every shard that the index of a model checkpoint names is a safetensors file in the folder of the
// index.
#include "engine/files/models/model_checkpoint.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

const Target reader::shard_index = {
    "shard_index", [](const std::string& bytes) {
      const ShardIndex index = parse_shard_index(bytes, "fuzz");
      require(!index.empty(), "an index without tensors");
      for (const auto& [tensor, shard] : index) {
        require(tensor.size() <= bytes.size() && shard.size() <= bytes.size(),
                "names from nowhere");
        require(shard.ends_with(".safetensors"), "a shard that is not a safetensors file");
        require(shard.find_first_of(std::string_view("/\0", 2)) == std::string::npos,
                "a shard in another folder");
      }
    }};

}  // namespace headlab::fuzz
