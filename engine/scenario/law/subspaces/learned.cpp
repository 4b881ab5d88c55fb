// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/law/subspaces/learned.h"

#include "engine/files/words.h"
#include "engine/scenario/law/subspaces/haar.h"
#include "engine/scenario/law/subspaces/orthogonal.h"
#include "engine/scenario/law/subspaces/orthonormal.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

void require_one_of(const std::string& key, const std::string& value,
                    const std::vector<std::string>& allowed) {
  for (const std::string& word : allowed) {
    if (value == word) return;
  }
  throw ParameterError(key, "is \"" + value + "\"" + suggestion(value, allowed));
}

}  // namespace

void LearnedSubspaces::check(const Sizes& sizes) const {
  require_one_of("fit", fit, {"once", "per_replicate"});
  require_one_of("start", start, {"identical", "haar", "orthogonal"});
  require_one_of("matrices", matrices, {"orthonormal", "free", "query_key"});
  require_fits(sizes);
  if (start == "orthogonal") {
    try {
      OrthogonalSubspaces{}.check(sizes);
    } catch (const ParameterError& error) {
      throw ParameterError("start", std::string("\"orthogonal\" ") + error.what());
    }
  }
  if (points && !once()) {
    throw ParameterError("points", "has no effect with fit = \"per_replicate\" - remove it");
  }
  if (diversity > 0 && sizes.heads < 2) {
    throw ParameterError("diversity", "needs two heads or more");
  }
  const std::uint64_t n = points.value_or(sizes.n);
  if (n > 4294967295u) {
    throw ParameterError(
        "", "learns on at most 2^32 - 1 points, here " + std::to_string(n) + " - set points");
  }
  Learning learning;
  learning.held_out = held_out;
  const std::uint64_t out = held_out_points(learning, n);
  if (n < out + 2) {
    throw ParameterError(points ? "points" : "", "leaves " + std::to_string(n - out) + " of " +
                                                     counted(n, "point") + " to learn on, needs 2");
  }
  if (held_out > 0 && out == 0) {
    throw ParameterError("held_out",
                         "of " + counted(n, "point") + " is less than one - use held_out = 0");
  }
}

Subspaces LearnedSubspaces::start_subspaces(const Sizes& sizes) const {
  if (start == "orthogonal") return OrthogonalSubspaces{}.generate(sizes);
  if (start == "haar") return HaarSubspaces{.seed = seed}.generate(sizes);
  Sizes one = sizes;
  one.heads = 1;
  const Subspaces common = HaarSubspaces{.seed = seed}.generate(one);
  Subspaces subspaces = normal_subspaces(sizes, seed, Purpose::learning_start);
  for (int h = 0; h < sizes.heads; ++h) {
    for (int i = 0; i < sizes.d; ++i) {
      for (int j = 0; j < sizes.k; ++j) {
        subspaces(h, i, j) = common(0, i, j) + spread * subspaces(h, i, j);
      }
    }
  }
  orthonormalise_each(subspaces);
  return subspaces;
}

Subspaces LearnedSubspaces::generate(const Sizes& sizes) const {
  if (once()) throw ParameterError("", "learned subspaces need their fit first");
  return start_subspaces(sizes);
}

}  // namespace headlab
