// SPDX-License-Identifier: Apache-2.0
// Second pass of the aggregate moments of many heads: sum_i s_i^2 (sum_h a_h w_hi / W_h)^2, once
// every head's W_h = sum_i w_hi is known. The kernel values are recomputed, because storing them
// would take H n numbers per query. For few heads the sums of all pairs in one pass cost less:
// launch_plan.cpp.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/weigh.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int ensemble_threads = 128;

template <class Micro>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(ensemble_threads, (Micro::keys == 2 ? 2 : 3))
    ensemble_kernel(const WeighArguments a) {
  auto* shared = reinterpret_cast<float*>(shared_memory());
  const Tiling& tiling = a.tiling;
  const Assignment of = assignment_of(tiling, 1);
  const Place place = Micro::place(tiling, static_cast<int>(thread_index()));
  const int thread = static_cast<int>(thread_index());
  const WeightTile weights = weight_tile<Micro>(a, shared, tiling.group_heads);
  // Factors a_h / W_h [H][block_queries].
  float* factors = weights.weights + tiling.block_queries * weights.query_stride;
  const int count = a.totals.heads * tiling.block_queries;
  for (int at = thread; at < count; at += ensemble_threads) {
    const int head = at / tiling.block_queries;
    const int query = smaller(of.first_query + at % tiling.block_queries, a.queries.count - 1);
    const double* sums =
        a.sums +
        (static_cast<std::int64_t>(of.replicate) * a.queries.count + query) * a.totals.size();
    factors[at] = static_cast<float>(a.queries.weights[head] / sums[a.totals.weight(head)]);
  }

  // Second role of a thread: a query and neighbouring keys, four in a step.
  const int splits = ensemble_threads / tiling.block_queries;
  const int steps = splits < weight_tile_keys / 4 ? weight_tile_keys / 4 / splits : 1;
  const int column = thread % tiling.block_queries;
  const int split = thread / tiling.block_queries;
  const int query = of.first_query + column;
  const int first_key = 4 * steps * split;
  const bool active = query < a.queries.count && split < splits && first_key < weight_tile_keys;
  const float* rows =
      weights.weights + weight_query(column, weights.query_stride, Micro::halves) + first_key;

  Micro micro;
  int loaded = -1;
  float ensemble[ensemble_steps][4] = {};
  float square = 0;
  for_each_stage<Micro, weight_tile_keys, ensemble_threads, 1>(
      a, shared, of, 0, tiling.head_groups,
      [&](const Stage<Micro, weight_tile_keys>& stage, int group) {
        const int first_head = group * tiling.group_heads;
        const int heads = smaller(tiling.group_heads, a.totals.heads - first_head);
        store_weights<Micro, false>(a, micro, loaded, place, stage, group, 0, of.first_query,
                                    weights);
        synchronise_block();
        if (!active) return;
        const float* factor = factors + first_head * tiling.block_queries + column;
        for (int h = 0; h < heads; ++h) {
          HEADLAB_UNROLL
          for (int step = 0; step < ensemble_steps; ++step) {
            if (step >= steps) break;
            const Four w = *reinterpret_cast<const Four*>(rows + h * weight_stride + 4 * step);
            HEADLAB_UNROLL
            for (int c = 0; c < 4; ++c) {
              ensemble[step][c] = math::fused(*factor, w.v[c], ensemble[step][c]);
            }
          }
          factor += tiling.block_queries;
        }
        if (group + 1 < tiling.head_groups) return;
        HEADLAB_UNROLL
        for (int step = 0; step < ensemble_steps; ++step) {
          if (step >= steps) break;
          HEADLAB_UNROLL
          for (int c = 0; c < 4; ++c) {
            const float scale = a.totals.scaled ? stage.scales()[first_key + 4 * step + c] : 1.0f;
            const float noise = ensemble[step][c] * scale;
            square = math::fused(noise, noise, square);
            ensemble[step][c] = 0;
          }
        }
      });

  shared[thread] = square;
  synchronise_block();
  if (split != 0 || !active) return;
  double sum = 0;
  for (int s = 0; s < splits; ++s) {
    sum += static_cast<double>(shared[s * tiling.block_queries + column]);
  }
  a.partials[partial_row(a, of, query)] = sum;
}

}  // namespace

void sum_ensemble(Stream& stream, Microkernel microkernel, const WeighArguments& a,
                  std::int64_t replicates) {
  with_microkernel<weight_queries, 4>(microkernel, a.exponent == Exponent::law, [&]<class M>() {
    launch(stream, "sum_ensemble", launch_of(a, replicates, 1), ensemble_kernel<M>, a);
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
