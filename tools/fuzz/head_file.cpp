// SPDX-License-Identifier: Apache-2.0
// A file of heads in NetCDF: bases of full size and finite, or it is rejected. Inputs are edits of
// one (netcdf_edits.h); the target npy has the files of heads in NPY.
#include "engine/files/models/head_file.h"

#include <stdexcept>

#include "engine/files/error.h"
#include "engine/files/models/import_heads.h"
#include "engine/testing/small_checkpoint.h"
#include "tools/fuzz/netcdf_edits.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

/// A file of two layers with three heads of 12 x 4.
const std::string& heads_of_bert() {
  static const std::string bytes = [] {
    const HeadFile heads =
        import_heads(file_of(small_bert().bytes()),
                     {.architecture = &find_architecture("bert"), .counts = {3, 3, {}, {}}}, 1);
    const std::string path = file_of("", made_file) + ".nc";
    write_head_file(path, heads);
    return editable(path);
  }();
  return bytes;
}

void read_heads(const std::string& input) {
  const std::string path = file_of(heads_of_bert());
  try {
    edit(path, input);
    walk(path);
  } catch (const std::runtime_error&) {
    throw InvalidInput("makes no file");
  }
  const HeadFile file = read_head_file(path);
  require(!file.layers.empty(), "no layer");
  for (const HeadLayer& layer : file.layers) {
    require(!layer.subspaces.empty(), "a layer without heads");
    require(layer.w_q.size() == layer.w_k.size(), "queries without keys");
    for (const Matrices* matrices : {&layer.subspaces, &layer.w_q, &layer.w_k}) {
      for (const Eigen::MatrixXd& w : *matrices) {
        require(w.rows() == file.d() && w.cols() == file.k() && w.allFinite(), "a basis");
      }
    }
  }
  const int last = file.layers.back().number;
  require(!read_head_layer(path, last).subspaces.empty(), "a layer without heads");
}

std::vector<std::string> words_of_heads() {
  return words_of({heads_of_bert()});
}

}  // namespace

const Target reader::head_file = {"head_file", read_heads, words_of_heads};

}  // namespace headlab::fuzz
