// SPDX-License-Identifier: Apache-2.0
// Sums over pairs of at most eight heads in one pass: a thread has the kernel values of all heads
// at two queries and two keys in registers, and adds sum w_g w_l, sum w and sum w value there. More
// heads: pair_sums.cu.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/projected_keys.h"
#include "kernels/cuda/weigh.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int register_pair_threads = 128;

/// Sums of one query: w_g w_l for g <= l, row by row, then w and w value.
template <int Heads>
struct QueryPairs {
  static constexpr int triangle = Heads * (Heads + 1) / 2;
  static constexpr int count = triangle + 2 * Heads;
  float sum[count] = {};

  /// Adds one key, w [Heads][2][Keys] of which query i and key c are taken.
  template <int Keys>
  HEADLAB_DEVICE void add(const float (&w)[Heads][2][Keys], int i, int c, float value) {
    int at = 0;
    HEADLAB_UNROLL
    for (int g = 0; g < Heads; ++g) {
      HEADLAB_UNROLL
      for (int l = g; l < Heads; ++l, ++at) {
        sum[at] = math::fused(w[g][i][c], w[l][i][c], sum[at]);
      }
    }
    HEADLAB_UNROLL
    for (int h = 0; h < Heads; ++h) {
      sum[triangle + h] += w[h][i][c];
      sum[triangle + Heads + h] = math::fused(w[h][i][c], value, sum[triangle + Heads + h]);
    }
  }
};

template <class Micro, int Heads, bool projects>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(register_pair_threads, 2)
    register_pairs_kernel(const WeighArguments a) {
  constexpr int tile_keys = pair_tile_keys(Micro::padded_k);
  constexpr int stride = stage_stride(tile_keys);
  constexpr int of_head = head_stride(Micro::padded_k, tile_keys);
  using Pairs = QueryPairs<Heads>;
  // As many as leave no thread idle, where registers suffice.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  constexpr int max_parts = 2;
#else
  constexpr int max_parts = 4;
#endif
  constexpr int all_parts = 4 * register_pair_threads / (Heads * tile_keys);
  constexpr int parts = all_parts > max_parts ? max_parts : all_parts < 1 ? 1 : all_parts;
  auto* shared = reinterpret_cast<float*>(shared_memory());
  Tiling tiling = a.tiling;
  const Assignment of = assignment_of(tiling, 1);
  tiling.group_heads = 1;  // a thread has all heads
  const Place place = Micro::place(tiling, static_cast<int>(thread_index()));
  const int thread = static_cast<int>(thread_index());
  const int heads = a.totals.heads;

  // Heads beyond those of the ensemble have keys without weight.
  for (int buffer = 0; buffer < (projects ? 1 : 2); ++buffer) {
    const Stage<Micro, tile_keys> stage(
        shared + (projects ? projected_front(tile_keys)
                           : buffer * stage_floats(Heads, Micro::padded_k, tile_keys)),
        a, tile_keys);
    for (int h = heads; h < Heads; ++h) {
      for (int at = thread; at < Micro::padded_k * stride; at += register_pair_threads) {
        stage.rows(h)[at] = Micro::norms ? 0 : far_away;
      }
      for (int at = thread; at < stride; at += register_pair_threads) {
        stage.norms(h)[at] = -__builtin_huge_valf();
      }
    }
  }

  Micro micro[Heads];
  HEADLAB_UNROLL
  for (int h = 0; h < Heads; ++h) {
    if (place.active) {
      micro[h].load(a, Micro::halves ? h : smaller(h, heads - 1), place, of.first_query);
    }
  }
  Pairs sums[2];
  constexpr int lanes = Micro::step_keys / Micro::keys;
  constexpr int steps = Micro::halves ? pair_steps(Micro::padded_k, projects) : 1;
  constexpr int keys = steps * Micro::keys;
  const auto key_of = [](int c) { return c / Micro::keys * Micro::step_keys + c % Micro::keys; };
  const auto add_tile = [&](const Stage<Micro, tile_keys>& stage) {
    Tiling of_tile = tiling;
    if (Micro::scarce) of_tile.splits = again(tiling.splits);
    const Place own =
        Micro::scarce ? Micro::place(of_tile, static_cast<int>(thread_index_again())) : place;
    if (!own.active) return;
    const int step = of_tile.splits / lanes * steps * Micro::step_keys;
    const int first = Micro::first_key(own, own.split / lanes * steps);
    const auto* rows = reinterpret_cast<const typename Micro::Number*>(stage.rows(0));
    const float* norms = stage.norms(0);
    const float* values = stage.rows(Heads);
    HEADLAB_NO_UNROLL
    for (int key = first; key < stage.keys; key += step) {
      if constexpr (Micro::halves) {
        // As far as the compiler can know, other ones in each step: else it would read them once,
        // into registers that there are not.
        const FourWords* fragments = micro[0].fragments() + a.zero;
        HEADLAB_UNROLL
        for (int h = 0; h < Heads; ++h) micro[h].read_from(fragments + h * Micro::head_words);
      }
      float w[Heads][2][keys];
      HEADLAB_UNROLL
      for (int h = 0; h < Heads; ++h) {
        constexpr int numbers = Micro::halves ? 2 : 1;  // of a float
        micro[h].template exponents<stride>(a, rows + h * numbers * of_head + key,
                                            norms + h * of_head + key, w[h]);
      }
      to_weights<Micro>(a, w);
      if (a.scaled) {
        HEADLAB_UNROLL
        for (int c = 0; c < keys; ++c) {
          const float scale = values[stride + key + key_of(c)];
          HEADLAB_UNROLL
          for (int h = 0; h < Heads; ++h) {
            HEADLAB_UNROLL
            for (int i = 0; i < 2; ++i) w[h][i][c] *= scale;
          }
        }
      }
      HEADLAB_UNROLL
      for (int c = 0; c < keys; c += 2) {
        const auto y = keys_at<2>(values + key + key_of(c));
        HEADLAB_UNROLL
        for (int i = 0; i < 2; ++i) {
          sums[i].add(w, i, c, y.v[0]);
          sums[i].add(w, i, c + 1, y.v[1]);
        }
      }
    }
  };
  if constexpr (projects) {
    for_each_projected_tile<Micro, tile_keys, register_pair_threads>(a, shared, of, 0, add_tile);
  } else {
    for_each_stage<Micro, tile_keys, register_pair_threads, parts>(
        a, shared, of, 0, 1, [&](const Stage<Micro, tile_keys>& stage, int) { add_tile(stage); });
  }

  // The splits are added in shared memory, in order: [thread][2][count].
  float* out = shared + thread * 2 * Pairs::count;
  HEADLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    HEADLAB_UNROLL
    for (int at = 0; at < Pairs::count; ++at) out[i * Pairs::count + at] = sums[i].sum[at];
  }
  synchronise_block();
  const Assignment result = assignment_of(tiling, 1);
  const int all = tiling.query_columns * 2 * Pairs::count;
  for (int at = thread; at < all; at += register_pair_threads) {
    const int column = at / (2 * Pairs::count);
    const int query = result.first_query + Micro::query_of(tiling, column, at / Pairs::count % 2);
    const int index = at % Pairs::count;
    int g = index;
    int place_in_row = 0;
    if (index < Pairs::triangle) {
      int l = index;
      for (g = 0; l >= Heads - g; ++g) l -= Heads - g;
      l += g;
      if (l >= heads) continue;
      place_in_row = a.totals.square(g, l);
    } else {
      g = (index - Pairs::triangle) % Heads;
      if (g >= heads) continue;
      place_in_row = index < Pairs::triangle + Heads ? a.totals.weight(g) : a.totals.value(g);
    }
    if (query >= a.queries.count) continue;
    double sum = 0;
    for (int split = 0; split < tiling.splits; ++split) {
      const int from = Micro::thread_of(tiling, split, column);
      sum += static_cast<double>(shared[from * 2 * Pairs::count + at % (2 * Pairs::count)]);
    }
    a.partials[partial_row(a, result, query) * a.totals.row() + place_in_row] = sum;
  }
}

}  // namespace

void sum_register_pairs(Stream& stream, Microkernel microkernel, int heads, const WeighArguments& a,
                        std::int64_t replicates) {
  with_microkernel<pair_queries, 2>(microkernel, a.exponent == Exponent::law, [&]<class M>() {
    if constexpr (M::in_registers) {
      const auto run = [&]<bool projects>() {
        launch(stream, "sum_pairs", launch_of(a, replicates, 1),
               heads <= 2   ? register_pairs_kernel<M, 2, projects>
               : heads <= 4 ? register_pairs_kernel<M, 4, projects>
                            : register_pairs_kernel<M, 8, projects>,
               a);
      };
      if constexpr (M::halves) {
        if (a.projects) return run.template operator()<true>();
      }
      run.template operator()<false>();
    }
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
