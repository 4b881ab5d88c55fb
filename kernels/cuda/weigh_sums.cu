// SPDX-License-Identifier: Apache-2.0
// Sums of the plain estimator, and the first pass of the aggregate moments of many heads: sum w,
// sum w value and sum w^2 for every head and query, in registers.
//
// Slots of a kernel value beside weigh-inl.h's: an addition and two multiply-adds (of which sum
// w^2, the effective sample size, is the third).
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/weigh-inl.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int sums_of_query = 3;

template <class Form>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(128, (Form::keys == 2 ? 3 : 4))
    weigh_sums_kernel(const WeighArguments a) {
  auto* shared = reinterpret_cast<float*>(shared_memory());
  const Part part = part_of(a.tiling, a.tiling.head_groups);
  const Place place = Form::place(a.tiling);
  const int first_head = part.head_group * a.tiling.group_heads;
  const int head = first_head + place.head;
  const bool active = place.active && head < a.totals.heads;

  Form form;
  if (active) form.load(a, head, place, part.first_query);
  float weight[Form::queries] = {};
  float value[Form::queries] = {};
  float square[Form::queries] = {};
  for_each_stage<Form>(a, shared, part, part.head_group, 1, [&](const Stage& stage, int, int) {
    if (!active) return;
    const float* rows = stage.rows(place.head);
    const float* norms = stage.norms(place.head);
    const int lanes = Form::step_keys / Form::keys;
    for (int step = place.split / lanes; step < tile_keys / Form::step_keys;
         step += a.tiling.splits / lanes) {
      const int key = Form::first_key(place, step);
      float w[Form::queries][Form::keys];
      form.exponents(a, rows, norms, key, w);
      to_weights<Form>(a, w);
      if (a.scaled) {
        HEADLAB_UNROLL
        for (int c = 0; c < Form::keys; ++c) {
          HEADLAB_UNROLL
          for (int i = 0; i < Form::queries; ++i) w[i][c] *= stage.scales[key + c];
        }
      }
      HEADLAB_UNROLL
      for (int c = 0; c < Form::keys; ++c) {
        const float y = stage.values[key + c];
        HEADLAB_UNROLL
        for (int i = 0; i < Form::queries; ++i) {
          weight[i] += w[i][c];
          value[i] = math::fused(w[i][c], y, value[i]);
          square[i] = math::fused(w[i][c], w[i][c], square[i]);
        }
      }
    }
  });

  // The splits of a slot meet in shared memory, in their order: [splits][slots][queries][3].
  const int slots = a.tiling.group_heads * a.tiling.query_blocks;
  const int width = Form::queries * sums_of_query;
  if (place.active) {
    float* out = shared + (place.split * slots + place.slot) * width;
    HEADLAB_UNROLL
    for (int i = 0; i < Form::queries; ++i) {
      out[i * sums_of_query] = weight[i];
      out[i * sums_of_query + 1] = value[i];
      out[i * sums_of_query + 2] = square[i];
    }
  }
  synchronise_block();
  for (int at = static_cast<int>(thread_index()); at < slots * width;
       at += static_cast<int>(block_threads())) {
    const int slot = at / width;
    const int query = part.first_query + slot % a.tiling.query_blocks +
                      at % width / sums_of_query * a.tiling.query_blocks;
    const int of_head = first_head + slot / a.tiling.query_blocks;
    if (query >= a.queries.count || of_head >= a.totals.heads) continue;
    double sum = 0;
    for (int split = 0; split < a.tiling.splits; ++split) {
      sum += static_cast<double>(shared[split * slots * width + at]);
    }
    const std::int64_t row =
        (part.replicate * a.tiling.chunks + part.chunk) * a.queries.count + query;
    a.partials[row * 3 * a.totals.heads + at % sums_of_query * a.totals.heads + of_head] = sum;
  }
}

}  // namespace

void weigh_sums(Stream& stream, Form form, const WeighArguments& a, std::int64_t replicates) {
  with_form(form, [&]<class F>() {
    launch(stream, "weigh_sums", launch_of(a, replicates, a.tiling.head_groups),
           weigh_sums_kernel<F>, a);
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
