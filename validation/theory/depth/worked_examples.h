// SPDX-License-Identifier: Apache-2.0
/// \file Instances that decide statements about stacks without simulation: integers, and recursions
/// that are exact up to rounding. What is random is drawn from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/matrices.h"
#include "validation/theory/depth/graph_fidelity.h"
#include "validation/theory/depth/integer_ranks.h"
#include "validation/theory/depth/subset_sums.h"

namespace headlab {

/// Nullities of (Z_1..Z_H) -> sum_h Z_h W_O^h, d_k = d_v, H d_v = d.
struct HeadChannels {
  int hidden = 0;            ///< n (H-1) d_k
  int read_out = 0;          ///< a d_k-dimensional read-out of the sum
  int shared_row_space = 0;  ///< all blocks with one row space of dimension d_k
  int full_output = 0;       ///< known generic W_O
};
/// Throws InvalidInput unless sizes are at least 1.
HeadChannels head_channels(int n, int heads, int dim, std::uint64_t seed);

/// Ranks around one layer norm of 8 features, epsilon 0 unless said.
struct LayerNormExamples {
  NormedRanks few;             ///< 8 generic tokens
  NormedRanks many;            ///< 12 generic tokens
  NormedRanks shifted;         ///< 4 tokens that differ by multiples of 1_d
  NormedRanks shifted_gently;  ///< the same at a large epsilon
  NormedRanks collinear;       ///< 4 tokens on a line off the origin
};
LayerNormExamples layer_norm_examples(std::uint64_t seed);

/// The simplex with and without post RMS norm: residual shares, layers 0 to L.
struct NormedShares {
  std::vector<double> without;
  std::vector<double> with_norm;
};
/// Without skip, values .1 on the mean and .5 on residuals: the norm keeps tokens apart.
NormedShares norm_protects(int layers);
/// Skip 1, two tokens of squared length 1.05: the norm brings tokens together.
NormedShares norm_contributes(int layers);

/// Dimensions that one layer of causal uniform attention adds to the span of 6 tokens, and ranks
/// before and after an MLP of width 64 without norm and bias, n = d = 8.
struct SpanExamples {
  int identity_values = 0;  ///< V = w I, tokens of rank 2 in 5 features
  int tokens_span_all = 0;  ///< any V, tokens of rank 5
  int general_values = 0;   ///< any V, tokens of rank 2
  int line = 0;             ///< rank of tokens on a line off the origin: 2
  int line_after_mlp = 0;   ///< 8
  int ray = 0;              ///< rank of tokens on a line through the origin: 1
  int ray_after_mlp = 0;    ///< 2
};
SpanExamples span_examples(std::uint64_t seed);

/// Two heads on a line of 2 half + 1 nodes, each with speed 1 on one half and `slow` on the other.
Matrices complementary_walks(int half, double slow);

/// Two heads on four nodes that each reach the sink in two steps, and whose average takes three.
Matrices antagonistic_walks();

/// Two graphs on four nodes of minimax fidelities 1/3 and 3/8, and 37/144 on average.
std::vector<GraphEdges> antagonistic_graphs();

/// Computes how much log error falls per sample between two numbers of samples, a factor sqrt(m)
/// aside, by the median of the random-energy form; log 2 in the limit. Throws InvalidInput unless
/// 1 <= from < to <= 24.
double subset_error_rate(SampleLaw law, double target, int from, int to);

}  // namespace headlab
