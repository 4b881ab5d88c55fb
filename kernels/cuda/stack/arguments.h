// SPDX-License-Identifier: Apache-2.0
/// \file What the kernels of a stack of attention layers take (stack.cu).
#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/device_variant.h"
#include "kernels/cuda/runtime.h"
#include "kernels/laws.h"
#include "kernels/philox.h"
#include "kernels/stack/formulas.h"
#include "kernels/stack/layer_metrics.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Sizes and switches of a stack (kernels/stack/stack.h).
struct StackShape {
  int n = 1, d = 1, layers = 1, heads = 1;
  AttentionKernel kernel = AttentionKernel::softmax;
  bool gaussian = false;  ///< maps are drawn
  int samples = 0;        ///< of a pruned entry; 0: maps are not pruned
  int k = 1, value_dim = 1;
  bool averaged = false, alternating = false, causal = false, shared_weights = false;
  NormKind norm = NormKind::none;
  NormPlace place = NormPlace::pre;
  bool mlp = false;
  bool mlp_drawn = false;
  int width = 0;
  double memory = 0;
  /// Keeps tokens and attention of every layer, with bounds of their errors.
  bool records = false;

  HEADLAB_HD bool pre() const { return norm != NormKind::none && place == NormPlace::pre; }
  HEADLAB_HD bool post() const { return norm != NormKind::none && place == NormPlace::post; }
  HEADLAB_HD bool has_scores() const {
    return kernel == AttentionKernel::softmax || kernel == AttentionKernel::independent_logits;
  }
  HEADLAB_HD int used() const { return alternating ? 1 : heads; }
  HEADLAB_HD int scored() const { return memory > 0 ? heads : used(); }
  HEADLAB_HD int value_maps() const { return averaged ? 1 : used(); }

  /// Numbers of a layer's record: tokens [n + 1][d], the mean last, their exponent and errors of
  /// mean and residual, and of the heads in use the rows [n + 1][n] and their exponent.
  HEADLAB_HD std::int64_t record_tokens() const {
    return (static_cast<std::int64_t>(n) + 1) * d + 3;
  }
  HEADLAB_HD std::int64_t record() const {
    return record_tokens() + static_cast<std::int64_t>(used()) * (n + 1) * n + 1;
  }
};

/// Scratch memory of the replicate of a thread block, in float64; from null the size alone counts.
struct StackRoom {
  double* base;
  std::int64_t size = 0;

  /// What lasts from layer to layer: tokens [n + 1][d], the mean below the residual, and scores
  /// where there is a memory [scored][n + 1][n].
  struct Own {
    double *tokens, *next, *unit, *kept;
  };
  Own own, of_target;
  double *normed, *centred;
  double *rollout, *next_rollout, *largest_to_sink;
  double *query, *key, *value, *output;  ///< factors of the maps of heads, one below the other
  double *queries, *keys;                ///< [scored][n + 1][k]
  double* scores;                        ///< [scored][n + 1][n]: E and, below it, b
  double *attention, *mean;              ///< [used][n + 1][n]: B and, below it, a; their mean
  double *log_common, *entropies;        ///< [used][n]
  double *values, *mixed, *branch, *hidden;
  double* of_mean;  ///< image of the mean [d], sizes of summands [d], and of a head [d] and [rank]
  double *input, *bias, *mlp_output;
  double *of_rows, *summands, *of_roundings, *zero_rows, *of_columns;
  double *spare, *pruned_query, *pruned_value;

  HEADLAB_HD StackRoom(const StackShape& s, double* memory) : base(memory) {
    const std::int64_t n = s.n, d = s.d, rows = n + 1, used = s.used(), scored = s.scored();
    const bool softmax = s.kernel == AttentionKernel::softmax;
    const bool pruned = s.samples > 0;
    const std::int64_t larger = n < d ? d : n;
    const std::int64_t k = s.gaussian ? s.k : d;
    const std::int64_t value_dim = s.gaussian ? s.value_dim : d;
    const std::int64_t full_k = k < d ? d : k;
    const std::int64_t rank = pruned ? (value_dim < d ? d : value_dim) : value_dim;
    own = take_own(rows * d, s.memory > 0 ? scored * rows * n : 0);
    of_target = take_own(pruned ? rows * d : 0, pruned && s.memory > 0 ? scored * rows * n : 0);
    normed = take(rows * d);
    centred = take(s.norm == NormKind::layer ? rows * d : 0);
    rollout = take(rows * n);
    next_rollout = take(rows * n);
    largest_to_sink = take(n);
    query = take(s.gaussian && softmax ? scored * d * k : 0);
    key = take(s.gaussian && softmax ? scored * d * k : 0);
    value = take(s.gaussian ? s.value_maps() * d * value_dim : 0);
    output = take(s.gaussian ? s.value_maps() * d * value_dim : 0);
    queries = take(softmax ? scored * rows * full_k : 0);
    keys = take(softmax && s.gaussian ? scored * n * k : 0);
    scores = take(s.has_scores() ? scored * rows * n : 0);
    attention = take(used * rows * n);
    mean = take(rows * n);
    log_common = take(used * n);
    entropies = take(used * n);
    values = take(s.gaussian ? s.value_maps() * rows * value_dim : 0);
    mixed = take(s.value_maps() * rows * rank);
    branch = take(rows * larger);
    hidden = take(s.mlp ? rows * s.width : 0);
    of_mean = take(3 * d + (rank < s.width ? s.width : rank));
    input = take(s.mlp_drawn ? d * s.width : 0);
    bias = take(s.mlp_drawn ? s.width : 0);
    mlp_output = take(s.mlp_drawn ? s.width * d : 0);
    of_rows = take(n);
    summands = take(n);
    of_roundings = take(n);
    zero_rows = take(n);
    of_columns = take(larger < s.width ? s.width : larger);
    spare = take(rows * larger);
    pruned_query = take(pruned ? scored * d * d : 0);
    pruned_value = take(pruned ? s.value_maps() * d * d : 0);
  }

 private:
  HEADLAB_HD Own take_own(std::int64_t tokens, std::int64_t scores_kept) {
    // In the order of the braces.
    return {take(tokens), take(tokens), take(tokens), take(scores_kept)};
  }
  HEADLAB_HD double* take(std::int64_t count) {
    double* first = base == nullptr ? nullptr : base + size;
    size += count;
    return first;
  }
};

struct StackArguments {
  StackShape shape;
  std::uint64_t seed = 0;
  std::uint64_t first_replicate = 0;
  std::int64_t replicates = 0;

  // Numbers given, on the device; null where they are drawn or there are none.
  const double* given_tokens = nullptr;  ///< [n][d]
  const double* fixed = nullptr;         ///< [H][n][n]
  const double* query = nullptr;         ///< [H][d][d], M_h / t
  const double* value = nullptr;         ///< [H][d][d], or one with averaged values
  const double* gain = nullptr;          ///< [d]
  const double* bias = nullptr;          ///< [d]
  const double* input = nullptr;         ///< [d][width]
  const double* mlp_bias = nullptr;      ///< [width]
  const double* mlp_output = nullptr;    ///< [width][d]

  // Design of tokens that are drawn.
  DeviceVariant<DesignSampler::variant> design;
  const float* design_table = nullptr;
  std::uint64_t design_seed = 0;
  bool fixed_design = false;
  Purpose design_purpose = Purpose::design;
  Purpose choice_purpose = Purpose::design_choice;

  // Standard deviations of what is drawn.
  double query_key_sd = 0, value_sd = 0, output_sd = 0;
  double logit_sd = 0, shared_logit_sd = 0;
  double input_sd = 0, bias_sd = 0, mlp_output_sd = 0;

  double temperature = 1;
  double skip = 0, branch = 1;
  double epsilon = 0;

  // Memory of a batch.
  float* points = nullptr;  ///< [replicates][n][point_buffer(d)]
  double* room = nullptr;   ///< [replicates][room_size]
  std::int64_t room_size = 0;
  LayerMetrics* metrics = nullptr;  ///< [replicates][L + 1]
  double* records = nullptr;        ///< [replicates][L + 1][shape.record()]
};

/// Memory that the local variables of the kernel take, see local_memory_of [bytes].
std::uint64_t stack_local_memory();

/// Draws the tokens of a batch, and passes them through the layers.
void run_stacks(Stream& stream, const StackArguments& arguments);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
