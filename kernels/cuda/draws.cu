// SPDX-License-Identifier: Apache-2.0
// Draws of training sets, one thread per point: cuRAND's Philox for the integers and the shared
// functors for everything after them, with the bits that the CPU draws. In a sequence base draws
// come first, a thread for each coordinate of a replicate makes a sequence of them, and the rest
// follows.
//
// A thread draws its point in place in global memory, neighbours side by side, so that every access
// of a warp is contiguous. X stays as drawn: the projection centres it as it reads it.
#include "kernels/cuda/draw_arguments.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/design_point.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

enum class DrawStep { all, base, rest };

template <DrawStep step>
HEADLAB_KERNEL void draw_kernel(const DrawArguments a) {
  const TrainingSets& sets = a.sets;
  const std::int64_t at =
      static_cast<std::int64_t>(block_index_x()) * block_threads() + thread_index();
  if (at >= a.replicates * sets.padded_n) return;
  const std::int64_t in_batch = at / sets.padded_n;
  const auto position = static_cast<std::uint64_t>(at % sets.padded_n);
  const std::uint64_t replicate = a.first_replicate + static_cast<std::uint64_t>(in_batch);

  float* x = sets.x_of(in_batch) + position;
  const std::ptrdiff_t stride = sets.padded_n;
  float* value = sets.values_of(in_batch) + position;
  float* scale = sets.scales_of(in_batch) + position;
  if (position >= sets.n) {
    // Padding: the kernels that weigh keys take it out, so that any finite key will do.
    for (int j = 0; j < sets.d; ++j) x[j * stride] = 0;
    *value = 0;
    *scale = 0;
    return;
  }

  const std::uint64_t point =
      a.tokens.count == 0 ? position
                          : a.tokens.of(position / a.stride) * a.stride + position % a.stride;
  std::uint32_t row = 0;
  a.design.visit([&](const auto& sampler) {
    const std::uint64_t of_design = a.fixed_design ? 0 : replicate;
    if constexpr (step != DrawStep::rest) {
      draw_base_point(sampler, sets.d, a.design_seed, a.design_purpose, of_design, point, x,
                      stride);
    }
    if constexpr (step != DrawStep::base) {
      row = finish_design_point(sampler, a.design_table, a.design_seed, a.choice_purpose, of_design,
                                point, x, stride);
    }
  });
  if constexpr (step == DrawStep::base) return;
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
}

HEADLAB_KERNEL void sequence_kernel(const SequenceArguments a) {
  const TrainingSets& sets = a.sets;
  const std::int64_t at =
      static_cast<std::int64_t>(block_index_x()) * block_threads() + thread_index();
  if (at >= a.replicates * sets.d) return;
  const std::int64_t in_batch = at / sets.d;
  const std::int64_t coordinate = at % sets.d;
  float* x = sets.x_of(in_batch) + coordinate * sets.padded_n;
  float last = 0;
  // The last tile reaches into the padding.
  for (std::uint64_t first = 0; first < sets.n; first += ar1_tile) {
    a.ar1(x + first, 1, last, first == 0);
  }
}

}  // namespace

void draw(Stream& stream, const DrawArguments& a) {
  constexpr unsigned threads = 128;
  const std::int64_t points = a.replicates * a.sets.padded_n;
  const Launch grid = {.blocks_x = (points + threads - 1) / threads, .threads = threads};
  if (!a.sequence) {
    launch(stream, "draw", grid, draw_kernel<DrawStep::all>, a);
    return;
  }
  launch(stream, "draw", grid, draw_kernel<DrawStep::base>, a);
  constexpr unsigned chains = 32;
  const std::int64_t coordinates = a.replicates * a.sets.d;
  launch(stream, "sequence", {.blocks_x = (coordinates + chains - 1) / chains, .threads = chains},
         sequence_kernel,
         SequenceArguments{.sets = a.sets, .ar1 = a.ar1, .replicates = a.replicates});
  launch(stream, "draw", grid, draw_kernel<DrawStep::rest>, a);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
