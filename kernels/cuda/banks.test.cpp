// SPDX-License-Identifier: Apache-2.0
// Kernel values in shared memory: no two lanes of a warp that are served together want different
// words of one bank. A GPU serves 128 bytes at a time, from 32 banks of 4 bytes: 8 lanes of 16
// bytes, 16 lanes of 8.
#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/weigh.h"
#include "kernels/testing/test_plans.h"

namespace headlab::emulated_cuda {
namespace {

constexpr int no_float = -1;

/// Most words that lanes served together want of one bank, in any warp of a block.
/// \param width floats of a lane
/// \param at (thread): its first float, or no_float
template <class At>
std::size_t words_of_bank(int threads, int width, const At& at) {
  std::size_t most = 0;
  const int together = 32 / width;
  for (int first = 0; first < threads; first += together) {
    std::vector<std::set<int>> words(32);
    for (int thread = first; thread < first + together; ++thread) {
      const int from = at(thread);
      for (int word = from; from != no_float && word < from + width; ++word) {
        words[static_cast<std::size_t>(word % 32)].insert(word);
      }
    }
    for (const std::set<int>& bank : words) most = std::max(most, bank.size());
  }
  return most;
}

LaunchPlan launch_of_heads(int heads, int k, MomentMode mode) {
  return plan_launch(test::make_plan({.n = 4096, .d = 70, .heads = heads, .k = k, .queries = 64},
                                     GaussianKernel{.bandwidth = 2}, Estimator::conditional, mode));
}

/// The place of a kernel value where rows are four floats longer than a tile.
int narrow_place(int head, int key) {
  return head * (weight_tile_keys + 4) + head / 8 * 4 + key;
}

/// Words of a bank that the stores of a tile want; `narrow` for the places above.
template <class Micro, bool Pairs>
std::size_t words_of_stores(const Tiling& tiling, int head_rows, bool narrow = false) {
  const int stride = narrow ? spread(narrow_place(head_rows, 0))
                            : weight_query_stride(head_rows, Micro::halves, tiling.query_columns);
  std::size_t most = 0;
  for (int i = 0; i < Micro::queries; ++i) {
    const auto at = [&](int thread) {
      const Place place = Micro::place(tiling, thread);
      if (!place.active) return no_float;
      const int key = Micro::first_key(place, place.split / (Micro::step_keys / Micro::keys));
      if (!narrow) {
        return stored_at<Micro, Pairs>(tiling, stride, place.column, i, place.head, key);
      }
      return Micro::query_of(tiling, place.column, i) * stride + narrow_place(place.head, key);
    };
    most = std::max(most, words_of_bank(tiling.threads, Micro::keys, at));
  }
  return most;
}

TEST(Banks, ConflictsAreCounted) {
  EXPECT_EQ(words_of_bank(32, 1, [](int lane) { return lane; }), 1u);
  EXPECT_EQ(words_of_bank(32, 1, [](int lane) { return 2 * lane; }), 2u);
  EXPECT_EQ(words_of_bank(32, 2, [](int lane) { return 2 * lane; }), 1u);
  EXPECT_EQ(words_of_bank(32, 1, [](int lane) { return 32 * lane; }), 32u);
  EXPECT_EQ(words_of_bank(32, 1, [](int) { return 7; }), 1u) << "one word is sent to all lanes";
}

TEST(Banks, PairsOfHeadsHaveNoConflicts) {
  for (const int heads : {16, 17, 32}) {
    for (const int k : {1, 2, 4, 8, 16, 64}) {
      const LaunchPlan launch = launch_of_heads(heads, k, MomentMode::pairwise);
      if (launch.microkernel == Microkernel::any) continue;
      with_microkernel<weight_queries, 4, pair_fragment_queries / 2>(
          launch.microkernel, false, [&]<class M>() {
            // Lanes of the last head of an odd group meet those of the first one.
            const std::size_t most = launch.weigh.group_heads % 2 == 0 || M::halves ? 1 : 2;
            EXPECT_LE((words_of_stores<M, true>(launch.weigh, pair_sides(heads) * pair_side)), most)
                << heads << ' ' << k;
          });
    }
  }
  const auto words_of_fragment = [](auto place) {
    return words_of_bank(32, 4, [&](int lane) { return place(lane / 4, 4 * (lane % 4)); });
  };
  EXPECT_EQ(words_of_fragment(weight_place), 1u);
  EXPECT_GT(words_of_fragment(narrow_place), 1u);
}

TEST(Banks, TheSecondPassHasNoConflicts) {
  for (const int heads : {17, 32, 64}) {
    for (const int k : {1, 4, 8, 16, 64}) {
      const LaunchPlan launch = launch_of_heads(heads, k, MomentMode::aggregate);
      const Tiling& tiling = launch.ensemble;
      with_microkernel<weight_queries, 4>(launch.microkernel, false, [&]<class M>() {
        EXPECT_EQ((words_of_stores<M, false>(tiling, tiling.group_heads)), 1u) << heads << ' ' << k;
        const int stride = weight_query_stride(tiling.group_heads, M::halves, tiling.query_columns);
        const int splits = tiling.threads / tiling.block_queries;
        const auto read_at = [&](int thread) {
          return weight_query(thread % tiling.block_queries, stride, M::halves) +
                 weight_tile_keys / splits * (thread / tiling.block_queries);
        };
        EXPECT_EQ(words_of_bank(tiling.threads, 4, read_at), 1u) << heads << ' ' << k;
      });
    }
  }
}

TEST(Banks, NarrowRowsHaveConflicts) {
  for (const int k : {4, 16}) {
    const LaunchPlan launch = launch_of_heads(16, k, MomentMode::pairwise);
    with_microkernel<weight_queries, 4, pair_fragment_queries / 2>(
        launch.microkernel, false, [&]<class M>() {
          EXPECT_GT((words_of_stores<M, true>(launch.weigh, pair_side, true)), 1u) << k;
        });
  }
}

}  // namespace
}  // namespace headlab::emulated_cuda
