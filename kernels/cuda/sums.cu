// SPDX-License-Identifier: Apache-2.0
// Sums of the plain estimator, and the first pass of the aggregate moments of many heads: sum w,
// sum w value and sum w^2 for every head and query, in registers.
//
// The plain estimator needs sum w^2 only to find windows of a single key. Of many keys a bound is
// enough, the squares of a thread's sums over a tile: the fallback sums the few rows again that the
// bound leaves open.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/projected_keys.h"
#include "kernels/cuda/weigh.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int sums_of_query = 3;
constexpr int sum_threads = 128;

/// Sums of a thread for each of its queries.
template <int Queries>
struct HeadSums {
  float weight[Queries] = {};
  float value[Queries] = {};
  float square[Queries] = {};
};

/// Thread blocks on a multiprocessor: as many as leave each thread the registers it needs.
template <class Micro, bool squares, bool projects>
inline constexpr int sum_blocks = (Micro::padded_k == 8 && !Micro::halves) ||
                                          (Micro::padded_k == 32 && squares)
                                      ? 2
                                  : Micro::halves || (Micro::padded_k == 4 && Micro::shifted) ? 3
                                                                                              : 4;

template <class Micro, bool squares, bool projects>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(sum_threads, (sum_blocks<Micro, squares, projects>))
    sums_kernel(const WeighArguments a) {
  constexpr int tile_keys =
      projects ? projected_tile_keys(Micro::padded_k, false) : sum_tile_keys(Micro::padded_k);
  auto* shared = reinterpret_cast<float*>(shared_memory());
  const Assignment of = assignment_of(a.tiling, a.tiling.head_groups);
  const Place place = Micro::place(a.tiling, static_cast<int>(thread_index()));
  const int first_head = of.head_group * a.tiling.group_heads;
  const int head = first_head + place.head;
  const bool active = place.active && head < a.totals.heads;

  Micro micro;
  if (active) micro.load(a, head, place, of.first_query);
  HeadSums<Micro::queries> sums;
  constexpr int lanes = Micro::step_keys / Micro::keys;
  // As many as leave no thread idle with one head.
  constexpr int parts = sum_threads / (tile_keys / 4) > 4 ? 4 : sum_threads / (tile_keys / 4);
  const int first = Micro::first_key(place, place.split / lanes);
  const int step = a.tiling.splits / lanes * Micro::step_keys;
  const auto add_tile = [&](const Stage<Micro, tile_keys>& stage) {
    if (!active) return;
    const auto* rows =
        reinterpret_cast<const typename Micro::Number*>(stage.rows(place.head)) + first;
    const float* norms = stage.norms(place.head) + first;
    const float* values = stage.values() + first;
    float of_tile[Micro::queries] = {};
    HEADLAB_NO_UNROLL
    for (int key = first; key < stage.keys; key += step) {
      float w[Micro::queries][Micro::keys];
      micro.template exponents<stage_stride(tile_keys)>(a, rows, norms, w);
      to_weights<Micro>(a, w);
      const auto y = keys_at<Micro::keys>(values);
      HEADLAB_UNROLL
      for (int i = 0; i < Micro::queries; ++i) {
        HEADLAB_UNROLL
        for (int c = 0; c < Micro::keys; ++c) {
          of_tile[i] += w[i][c];
          sums.value[i] = math::fused(w[i][c], y.v[c], sums.value[i]);
        }
      }
      if constexpr (squares) {
        HEADLAB_UNROLL
        for (int c = 0; c < Micro::keys; ++c) {
          const float scale = a.scaled ? values[stage.stride + c] : 1.0f;
          HEADLAB_UNROLL
          for (int i = 0; i < Micro::queries; ++i) {
            const float scaled = w[i][c] * scale;
            sums.square[i] = math::fused(scaled, scaled, sums.square[i]);
          }
        }
      }
      rows += step;
      norms += step;
      values += step;
    }
    HEADLAB_UNROLL
    for (int i = 0; i < Micro::queries; ++i) {
      sums.weight[i] += of_tile[i];
      if (!squares) sums.square[i] = math::fused(of_tile[i], of_tile[i], sums.square[i]);
    }
  };
  if constexpr (projects) {
    for_each_projected_tile<Micro, tile_keys, sum_threads>(a, shared, of, first_head, add_tile);
  } else {
    for_each_stage<Micro, tile_keys, sum_threads, parts>(
        a, shared, of, of.head_group, 1,
        [&](const Stage<Micro, tile_keys>& stage, int) { add_tile(stage); });
  }

  // The splits of a slot are added in shared memory, in order: [splits][slots][queries][3].
  const int slots = a.tiling.group_heads * a.tiling.query_columns;
  constexpr int width = Micro::queries * sums_of_query;
  if (place.active) {
    float* out = shared + (place.split * slots + place.slot) * width;
    HEADLAB_UNROLL
    for (int i = 0; i < Micro::queries; ++i) {
      out[i * sums_of_query] = sums.weight[i];
      out[i * sums_of_query + 1] = sums.value[i];
      out[i * sums_of_query + 2] = sums.square[i];
    }
  }
  synchronise_block();
  for (int at = static_cast<int>(thread_index()); at < slots * width; at += sum_threads) {
    const int slot = at / width;
    const int query = of.first_query + Micro::query_of(a.tiling, slot % a.tiling.query_columns,
                                                       at % width / sums_of_query);
    const int of_head = first_head + slot / a.tiling.query_columns;
    if (query >= a.queries.count || of_head >= a.totals.heads) continue;
    double sum = 0;
    for (int split = 0; split < a.tiling.splits; ++split) {
      sum += static_cast<double>(shared[split * slots * width + at]);
    }
    a.partials[partial_row(a, of, query) * 3 * a.totals.heads +
               at % sums_of_query * a.totals.heads + of_head] = sum;
  }
}

}  // namespace

void sum_weights(Stream& stream, Microkernel microkernel, const WeighArguments& a,
                 std::int64_t replicates) {
  with_microkernel<sum_queries, 4>(microkernel, a.exponent == Exponent::law, [&]<class M>() {
    const Launch grid = launch_of(a, replicates, a.tiling.head_groups);
    if constexpr (M::halves) {
      if (a.projects) {
        launch(stream, "sum_weights", grid,
               a.bounds_squares ? sums_kernel<M, false, true> : sums_kernel<M, true, true>, a);
        return;
      }
    }
    launch(stream, "sum_weights", grid,
           a.bounds_squares ? sums_kernel<M, false, false> : sums_kernel<M, true, false>, a);
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
