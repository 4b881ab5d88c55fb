// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/layer_ranks.h"

#include <algorithm>
#include <string>

#include "engine/files/error.h"

namespace headlab {
namespace {

void require_sizes(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("ranks of a layer: ") + message);
}

void require_valid(const LayerSizes& sizes) {
  require_sizes(std::min({sizes.n, sizes.d, sizes.heads, sizes.dim, sizes.value_dim}) >= 1,
                "sizes must be at least 1");
}

}  // namespace

int rank_after_layer(const LayerSizes& sizes, int rank, bool has_skip) {
  require_valid(sizes);
  const int full = std::min(sizes.n, sizes.d);
  require_sizes(rank >= 0 && rank <= full, "rank must be between 0 and min(n, d)");
  const int heads = std::min(sizes.heads * rank, sizes.heads * sizes.value_dim);
  return std::min(full, (has_skip ? rank : 0) + heads);
}

int generic_projection_nullity(const LayerSizes& sizes) {
  require_valid(sizes);
  return sizes.n * std::max(sizes.heads * sizes.value_dim - sizes.d, 0);
}

int shared_projection_nullity(const LayerSizes& sizes) {
  require_valid(sizes);
  require_sizes(sizes.value_dim <= sizes.d, "a shared row space needs d_v <= d");
  return sizes.n * (sizes.heads - 1) * sizes.value_dim;
}

int gauge_dimension(const LayerSizes& sizes, bool pre_layer_norm) {
  require_valid(sizes);
  require_sizes(std::max(sizes.dim, sizes.value_dim) <= sizes.d,
                "the gauge dimension needs d_k, d_v <= d");
  const int invisible = pre_layer_norm ? 2 * sizes.dim + sizes.value_dim : 0;
  return sizes.heads * (sizes.dim * sizes.dim + sizes.value_dim * sizes.value_dim + invisible);
}

}  // namespace headlab
