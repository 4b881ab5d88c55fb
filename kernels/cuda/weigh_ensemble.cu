// SPDX-License-Identifier: Apache-2.0
// Second pass of the aggregate moments of many heads: sum_i s_i^2 (sum_h a_h w_hi / W_h)^2, once
// every head's W_h = sum_i w_hi is known. The kernel values are computed again: kept, they would
// need H n numbers a query. For few heads the sums of all pairs in one pass cost less: shape.cpp.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/weigh-inl.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

template <class Form>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(128, (Form::keys == 2 ? 2 : 3))
    weigh_ensemble_kernel(const WeighArguments a) {
  auto* shared = reinterpret_cast<float*>(shared_memory());
  const Tiling& tiling = a.tiling;
  const Part part = part_of(tiling, 1);
  const Place place = Form::place(tiling);
  const int thread = static_cast<int>(thread_index());
  const WeightTile weights = {shared + 2 * stage_floats(tiling.group_heads, a.padded_k),
                              weight_query_stride(tiling.group_heads)};

  // Second role of a thread: a query, and every splits-th four keys.
  const int splits = static_cast<int>(block_threads()) / tiling.block_queries;
  const int column = thread % tiling.block_queries;
  const int split = thread / tiling.block_queries;
  const int query = part.first_query + column;
  const bool active = query < a.queries.count && split < splits;
  const double* sums = a.sums + (part.replicate * a.queries.count + query) * a.totals.size();
  const float* rows = weights.weights + column * weights.query_stride;

  Form form;
  int loaded = -1;
  float ensemble[ensemble_steps][4] = {};
  float square = 0;
  for_each_stage<Form>(
      a, shared, part, 0, tiling.head_groups, [&](const Stage& stage, int group, int) {
        const int first_head = group * tiling.group_heads;
        const int heads = smaller(tiling.group_heads, a.totals.heads - first_head);
        store_weights(a, form, loaded, place, stage, group, 0, part.first_query, weights);
        synchronise_block();
        if (!active) return;
        for (int h = 0; h < heads; ++h) {
          const auto factor = static_cast<float>(a.queries.weights[first_head + h] /
                                                 sums[a.totals.weight(first_head + h)]);
          HEADLAB_UNROLL
          for (int step = 0; step < ensemble_steps; ++step) {
            const int key = 4 * (split + step * splits);
            if (key >= tile_keys) continue;
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
          if (key >= tile_keys) continue;
          HEADLAB_UNROLL
          for (int c = 0; c < 4; ++c) {
            const float noise =
                a.totals.scaled ? ensemble[step][c] * stage.scales[key + c] : ensemble[step][c];
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
  a.partials[(part.replicate * tiling.chunks + part.chunk) * a.queries.count + query] = sum;
}

}  // namespace

void weigh_ensemble(Stream& stream, Form form, const WeighArguments& a, std::int64_t replicates) {
  with_form(form, [&]<class F>() {
    launch(stream, "weigh_ensemble", launch_of(a, replicates, 1), weigh_ensemble_kernel<F>, a);
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
