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
  const WeightTile weights = {
      shared + 2 * stage_floats(tiling.group_heads, padded_k_of<Micro>(a), weight_tile_keys),
      weight_query_stride(tiling.group_heads)};

  // Second role of a thread: a query, and every splits-th group of four keys.
  const int splits = ensemble_threads / tiling.block_queries;
  const int column = thread % tiling.block_queries;
  const int split = thread / tiling.block_queries;
  const int query = of.first_query + column;
  const bool active = query < a.queries.count && split < splits;
  const double* sums =
      a.sums +
      (static_cast<std::int64_t>(of.replicate) * a.queries.count + query) * a.totals.size();
  const float* rows = weights.weights + column * weights.query_stride;

  Micro micro;
  int loaded = -1;
  float ensemble[ensemble_steps][4] = {};
  float square = 0;
  for_each_stage<Micro, weight_tile_keys, ensemble_threads, 1>(
      a, shared, of, 0, tiling.head_groups,
      [&](const Stage<Micro, weight_tile_keys>& stage, int group) {
        const int first_head = group * tiling.group_heads;
        const int heads = smaller(tiling.group_heads, a.totals.heads - first_head);
        store_weights(a, micro, loaded, place, stage, group, 0, of.first_query, weights);
        synchronise_block();
        if (!active) return;
        for (int h = 0; h < heads; ++h) {
          const auto factor = static_cast<float>(a.queries.weights[first_head + h] /
                                                 sums[a.totals.weight(first_head + h)]);
          HEADLAB_UNROLL
          for (int step = 0; step < ensemble_steps; ++step) {
            const int key = 4 * (split + step * splits);
            if (key >= weight_tile_keys) continue;
            const Four w = *reinterpret_cast<const Four*>(rows + weight_row(h) + key);
            HEADLAB_UNROLL
            for (int c = 0; c < 4; ++c) {
              ensemble[step][c] = math::fused(factor, w.v[c], ensemble[step][c]);
            }
          }
        }
        if (group + 1 < tiling.head_groups) return;
        HEADLAB_UNROLL
        for (int step = 0; step < ensemble_steps; ++step) {
          const int key = 4 * (split + step * splits);
          if (key >= weight_tile_keys) continue;
          HEADLAB_UNROLL
          for (int c = 0; c < 4; ++c) {
            const float noise =
                a.totals.scaled ? ensemble[step][c] * stage.scales()[key + c] : ensemble[step][c];
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
