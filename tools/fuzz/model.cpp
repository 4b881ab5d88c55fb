// SPDX-License-Identifier: Apache-2.0
// A safetensors file as a model of three families: its heads are imported or rejected.
#include "engine/files/error.h"
#include "engine/files/models/import_heads.h"
#include "engine/testing/small_checkpoint.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

struct Family {
  const char* name;
  HeadCounts counts;
};

void import(const std::string& bytes) {
  const Family families[] = {{"bert", {.heads = 3, .kv_heads = 3}},
                             {"gpt2", {.heads = 3, .kv_heads = 3}},
                             {"llama", {.heads = 6, .kv_heads = 3}}};
  const std::string path = file_of(bytes);
  std::string rejected;
  int read = 0;
  for (const Family& family : families) {
    try {
      const HeadFile heads = import_heads(
          path, {.architecture = &find_architecture(family.name), .counts = family.counts}, 1);
      require(!heads.layers.empty(), "no layer");
      for (const HeadLayer& layer : heads.layers) {
        require(!layer.subspaces.empty() && layer.subspaces[0].cols() == heads.k() &&
                    layer.subspaces[0].rows() == heads.d(),
                "subspaces of other sizes");
        for (const Eigen::MatrixXd& w : layer.subspaces) {
          require(w.allFinite(), "a number that is not finite");
        }
      }
      ++read;
    } catch (const InvalidInput& refusal) {
      rejected = refusal.what();
    }
  }
  if (read == 0) throw InvalidInput(rejected);
}

std::vector<NamedInput> model_seeds() {
  return {{"bert", small_bert().bytes()},
          {"gpt2", small_gpt2().bytes()},
          {"llama", small_llama().bytes()}};
}

}  // namespace

const Target reader::model = {"model", import, nullptr, model_seeds};

}  // namespace headlab::fuzz
