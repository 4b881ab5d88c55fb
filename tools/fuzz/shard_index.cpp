// SPDX-License-Identifier: Apache-2.0
// The reader of the index of a checkpoint's shards on arbitrary bytes: every shard it names is a
// safetensors file in the folder of the index, or the index is refused in one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/files/error.h"
#include "engine/files/model_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const headlab::ShardIndex index =
        headlab::parse_shard_index({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (index.empty()) std::abort();
    for (const auto& [tensor, shard] : index) {
      if (tensor.size() > size || shard.size() > size) std::abort();
      if (!shard.ends_with(".safetensors")) std::abort();
      if (shard.find_first_of(std::string_view("/\0", 2)) != std::string::npos) std::abort();
    }
  } catch (const headlab::InvalidInput& refusal) {
    if (std::string_view(refusal.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
