// SPDX-License-Identifier: Apache-2.0
// Sums of the plain estimator, and the first pass of the aggregate moments of many heads: sum w,
// sum w value and sum w^2 for every head and query, in registers.
//
// Slots per kernel value in addition to those of products.h: an addition and two multiply-adds, the
// second for sum w^2, from which the effective sample size follows.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/weigh.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int sums_of_query = 3;

template <class Micro>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(128, (Micro::keys == 2 ? 3 : 4))
    sums_kernel(const WeighArguments a) {
  auto* shared = reinterpret_cast<float*>(shared_memory());
  const Assignment of = assignment_of(a.tiling, a.tiling.head_groups);
  const Place place = Micro::place(a.tiling);
  const int first_head = of.head_group * a.tiling.group_heads;
  const int head = first_head + place.head;
  const bool active = place.active && head < a.totals.heads;

  Micro micro;
  if (active) micro.load(a, head, place, of.first_query);
  float weight[Micro::queries] = {};
  float value[Micro::queries] = {};
  float square[Micro::queries] = {};
  for_each_stage<Micro>(a, shared, of, of.head_group, 1, [&](const Stage& stage, int) {
    if (!active) return;
    const float* rows = stage.rows(place.head);
    const float* norms = stage.norms(place.head);
    const int lanes = Micro::step_keys / Micro::keys;
    for (int step = place.split / lanes; step < tile_keys / Micro::step_keys;
         step += a.tiling.splits / lanes) {
      const int key = Micro::first_key(place, step);
      float w[Micro::queries][Micro::keys];
      micro.exponents(a, rows, norms, key, w);
      to_weights<Micro>(a, w);
      if (a.scaled) {
        HEADLAB_UNROLL
        for (int c = 0; c < Micro::keys; ++c) {
          HEADLAB_UNROLL
          for (int i = 0; i < Micro::queries; ++i) w[i][c] *= stage.scales[key + c];
        }
      }
      HEADLAB_UNROLL
      for (int c = 0; c < Micro::keys; ++c) {
        const float y = stage.values[key + c];
        HEADLAB_UNROLL
        for (int i = 0; i < Micro::queries; ++i) {
          weight[i] += w[i][c];
          value[i] = math::fused(w[i][c], y, value[i]);
          square[i] = math::fused(w[i][c], w[i][c], square[i]);
        }
      }
    }
  });

  // The splits of a slot are added in shared memory, in order: [splits][slots][queries][3].
  const int slots = a.tiling.group_heads * a.tiling.query_columns;
  const int width = Micro::queries * sums_of_query;
  if (place.active) {
    float* out = shared + (place.split * slots + place.slot) * width;
    HEADLAB_UNROLL
    for (int i = 0; i < Micro::queries; ++i) {
      out[i * sums_of_query] = weight[i];
      out[i * sums_of_query + 1] = value[i];
      out[i * sums_of_query + 2] = square[i];
    }
  }
  synchronise_block();
  for (int at = static_cast<int>(thread_index()); at < slots * width;
       at += static_cast<int>(block_threads())) {
    const int slot = at / width;
    const int query = of.first_query + slot % a.tiling.query_columns +
                      at % width / sums_of_query * a.tiling.query_columns;
    const int of_head = first_head + slot / a.tiling.query_columns;
    if (query >= a.queries.count || of_head >= a.totals.heads) continue;
    double sum = 0;
    for (int split = 0; split < a.tiling.splits; ++split) {
      sum += static_cast<double>(shared[split * slots * width + at]);
    }
    const std::int64_t row = (of.replicate * a.tiling.panels + of.panel) * a.queries.count + query;
    a.partials[row * 3 * a.totals.heads + at % sums_of_query * a.totals.heads + of_head] = sum;
  }
}

}  // namespace

void sum_weights(Stream& stream, Microkernel microkernel, const WeighArguments& a,
                 std::int64_t replicates) {
  with_microkernel(microkernel, [&]<class M>() {
    launch(stream, "sum_weights", launch_of(a, replicates, a.tiling.head_groups), sums_kernel<M>,
           a);
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
