// SPDX-License-Identifier: Apache-2.0
// The config.json of a model names its family and numbers of heads that the family can have.
#include "engine/files/models/model_config.h"

#include "engine/files/error.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

void read_config(const std::string& bytes) {
  const std::string path = file_of(bytes);
  const ModelConfig config = read_model_config(path, nullptr);
  require(config.architecture != nullptr, "no family");
  const HeadCounts& counts = config.counts;
  require(counts.heads >= 1 && counts.heads <= max_model_heads, "a number of heads");
  require(counts.kv_heads >= 1 && counts.kv_heads <= max_model_heads, "a number of groups");
  require(counts.layers.value_or(1) >= 1 && counts.head_dim.value_or(1) >= 1, "a size");
  // The same where the family is named, as by --arch.
  require(read_model_config(path, config.architecture).counts.heads == counts.heads,
          "other heads by --arch");
}

}  // namespace

const Target reader::model_config = {"model_config", read_config};

}  // namespace headlab::fuzz
