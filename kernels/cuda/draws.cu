// SPDX-License-Identifier: Apache-2.0
// Draws of training sets, one thread per point: cuRAND's Philox for the integers and the shared
// functors for everything after them, with the bits that the CPU draws.
//
// Ladder: v1, this one: a thread draws its point in place in global memory, neighbours side by
// side, so that every access of a warp is contiguous; 14 slots and 2 of the exponential unit per
// normal. Not timed on a GPU yet.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/design_point.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

HEADLAB_KERNEL void draw_kernel(const DrawArguments a) {
  const TrainingSets& sets = a.sets;
  const std::int64_t at =
      static_cast<std::int64_t>(block_index_x()) * block_threads() + thread_index();
  if (at >= a.replicates * sets.padded_n) return;
  const std::int64_t in_batch = at / sets.padded_n;
  const auto point = static_cast<std::uint64_t>(at % sets.padded_n);
  const std::uint64_t replicate = a.first_replicate + static_cast<std::uint64_t>(in_batch);

  const std::int64_t slice = sets.slice(in_batch);
  const std::int64_t column = sets.in_slice(in_batch) + static_cast<std::int64_t>(point);
  float* x = sets.x + slice * sets.draw_rows * sets.slice_points + column;
  const std::ptrdiff_t stride = sets.slice_points;
  float* value = sets.values + slice * sets.slice_points + column;
  float* scale = sets.scales + slice * sets.slice_points + column;
  if (point >= sets.n) {
    // Padding: the kernels that weigh keys take it out, so that any finite key will do.
    for (int j = 0; j < sets.d; ++j) x[j * stride] = 0;
    *value = 0;
    *scale = 0;
    return;
  }

  std::uint32_t row = 0;
  a.design.visit([&](const auto& sampler) {
    row = draw_design_point(sampler, a.design_table, sets.d, a.design_seed, a.design_purpose,
                            a.choice_purpose, a.fixed_design ? 0 : replicate, point, x, stride);
  });
  const float* drawn = x;
  float y = 0;
  a.regression.visit([&](const auto& m) { y = m(a.table, drawn, stride, row) - a.value_centre; });
  float sd = 0;
  a.noise.visit([&](const auto& noise) {
    sd = noise.scale(a.table, drawn, stride);
    if (!a.draws_noise) return;
    const Words words = philox(a.seed, subsequence(a.noise_purpose, replicate), point);
    y = math::fused(sd, noise.unit(words), y);
  });
  *value = y;
  *scale = sd * a.scale_factor;
  for (int j = 0; j < sets.d; ++j) x[j * stride] -= a.centre[j];
}

}  // namespace

void draw(Stream& stream, const DrawArguments& a) {
  constexpr unsigned threads = 128;
  const std::int64_t points = a.replicates * a.sets.padded_n;
  launch(stream, "draw",
         {.blocks_x = static_cast<unsigned>((points + threads - 1) / threads), .threads = threads},
         draw_kernel, a);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
