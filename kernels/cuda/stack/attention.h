// SPDX-License-Identifier: Apache-2.0
/// \file Attention weights of a layer (kernels/stack/attention.cpp), by a thread block.
#pragma once

#include <cstdint>

#include "kernels/cuda/stack/maps.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

class AttentionOfBlock : protected MapsOfBlock {
 protected:
  HEADLAB_DEVICE AttentionOfBlock(const StackArguments& a, const ThreadBlock& block,
                                  const StackRoom& room, double* kept, std::uint64_t replicate,
                                  bool pruned)
      : MapsOfBlock(a, block, room, replicate, pruned), kept_(kept) {}

  HEADLAB_DEVICE int square() const { return (s_.n + 1) * s_.n; }

  HEADLAB_LARGE_DEVICE void attend(const Tokens& z, int first_scored, int first_used) {
    const int n = s_.n;
    const int used = s_.used();
    attention_exponent_ = 0;
    if (!s_.has_scores()) {
      const double* given = s_.kernel == AttentionKernel::fixed
                                ? a_.fixed + static_cast<std::int64_t>(first_used) * n * n
                                : nullptr;
      block_.for_each(used * n * n, [&](int at) {
        const int h = at / (n * n);
        const int i = at / n % n;
        const int keys = s_.causal ? i + 1 : n;
        const double equal = at % n < keys ? 1 / static_cast<double>(keys) : 0;
        room_.attention[h * square() + at % (n * n)] = given != nullptr ? given[at] : equal;
      });
      return split_weights();
    }
    double exponent = 0;
    if (s_.kernel == AttentionKernel::softmax) {
      score(z);
      exponent = 2 * z.exponent;
    } else {
      draw_logits(first_scored);
    }
    double* scores = room_.scores;
    if (s_.memory > 0) {
      exponent = mix_scores(exponent);
      scores = kept_;
    }
    scores += (first_used - first_scored) * square();
    if (s_.causal) {
      masked_softmax(scores, exponent);
      return split_weights();
    }
    softmax(scores, exponent);
    attention_exponent_ = math::min(exponent, 0.0);
  }

  /// E = R query key^T R^T of all heads and, below it, b = e^sigma m query key^T R^T.
  HEADLAB_LARGE_DEVICE void score(const Tokens& z) const {
    const int n = s_.n;
    const int d = s_.d;
    const int k = query_rank_;
    const int heads = s_.scored();
    block_.product(heads, n + 1, d, k, z.all(), {query_, d * k, k},
                   {room_.queries, (n + 1) * k, k});
    InMatrices keys = {z.rows, 0, 1, d};
    if (key_ != nullptr) {
      block_.product(heads, n, d, k, z.all(), {key_, d * k, k}, {room_.keys, n * k, k});
      keys = {room_.keys, n * k, 1, k};
    }
    const double scale = z.scale();
    block_.product(heads, n + 1, k, n, {room_.queries, (n + 1) * k, k}, keys,
                   {room_.scores, square(), n});
    block_.for_each(heads * n,
                    [&](int at) { room_.scores[at / n * square() + n * n + at % n] *= scale; });
  }

  HEADLAB_LARGE_DEVICE void draw_logits(int first_scored) const {
    const int size = s_.n * s_.n;
    const auto point = [&](int layer, int head) {
      return static_cast<std::uint64_t>(layer) * static_cast<std::uint64_t>(s_.heads) +
             static_cast<std::uint64_t>(head);
    };
    draw(Purpose::logits, point(layer_, first_scored), s_.scored(), size, a_.logit_sd, room_.scores,
         square());
    if (a_.shared_logit_sd > 0) {
      draw(Purpose::logits, point(stack::max_layers + layer_, 0), 1, size, a_.shared_logit_sd,
           room_.spare, size);
    }
    block_.for_each(s_.scored() * square(), [&](int at) {
      const int i = at % square();
      if (i >= size) {
        room_.scores[at] = 0;
      } else if (a_.shared_logit_sd > 0) {
        room_.scores[at] += room_.spare[i];
      }
    });
  }

  /// Mixes the scores with those kept; returns their exponent.
  HEADLAB_LARGE_DEVICE double mix_scores(double exponent) {
    const double a = s_.memory;
    const bool first = layer_ == 0;
    const stack::Sum sum = stack::sum_at_larger(1, kept_exponent_ + log(a), exponent + log1p(-a));
    block_.for_each(s_.scored() * square(), [&](int at) {
      const double now = room_.scores[at];
      double& kept = kept_[at];
      if (first) {
        kept = now;
      } else if (at % square() < s_.n * s_.n) {
        kept = sum.first * kept + sum.second * now;
      } else {
        kept = a * kept + (1 - a) * now;
      }
    });
    kept_exponent_ = first ? exponent : sum.exponent;
    return kept_exponent_;
  }

  /// Sum of w log w over a row; 0 at 0.
  template <class Weight, class Log>
  HEADLAB_DEVICE static double weighted(int n, const Weight& weight, const Log& log_weight) {
    return ThreadBlock::row_total(
        n, [&](int j) { return weight(j) > 0 ? weight(j) * log_weight(j) : 0.0; });
  }

  /// Softmax of the rows e^w E_ij + b_j as 1 a^T + e^v B, a = softmax(b), v = min(w, 0).
  HEADLAB_LARGE_DEVICE void softmax(const double* scores, double w) const {
    const int n = s_.n;
    const int lanes = static_cast<int>(warp_threads);
    block_.for_rows(s_.used(), [&](int h, int lane) {
      const double* b = scores + h * square() + n * n;
      double* logs = room_.log_common + h * n;
      double top = minus_infinity;
      for (int j = lane; j < n; j += lanes) top = math::max(top, b[j]);
      top = ThreadBlock::warp_largest(top);
      const double log_sum = log(ThreadBlock::row_total(n, [&](int j) { return exp(b[j] - top); }));
      for (int j = lane; j < n; j += lanes) {
        logs[j] = b[j] - top - log_sum;
        room_.attention[h * square() + n * n + j] = exp(logs[j]);
      }
    });
    const double scale = exp(w);
    const double to_rest = exp(-math::min(w, 0.0));
    block_.for_rows(s_.used() * n, [&](int row, int lane) {
      const int h = row / n;
      const double* e = scores + h * square() + row % n * n;
      const double* a = room_.attention + h * square() + n * n;
      const double* logs = room_.log_common + h * n;
      double* out = room_.attention + h * square() + row % n * n;
      const double mean = ThreadBlock::row_total(n, [&](int j) { return a[j] * e[j]; });
      double entropy = 0;
      if (w < stack::min_exponent) {  // e^x = 1 + x
        for (int j = lane; j < n; j += lanes) out[j] = a[j] * (e[j] - mean);
        entropy = -weighted(
            n, [&](int j) { return a[j]; }, [&](int j) { return logs[j]; });
      } else {
        // Differences to the mean logit, so that the sum below is not negative.
        const auto x = [&](int j) { return scale * e[j] - scale * mean; };
        double top = minus_infinity;
        for (int j = lane; j < n; j += lanes) top = math::max(top, x(j));
        if (ThreadBlock::warp_largest(top) > stack::max_spread) {
          top = minus_infinity;
          for (int j = lane; j < n; j += lanes) top = math::max(top, x(j) + logs[j]);
          top = ThreadBlock::warp_largest(top);
          const double log_sum =
              log(ThreadBlock::row_total(n, [&](int j) { return exp(x(j) + logs[j] - top); }));
          const auto log_weight = [&](int j) { return x(j) + logs[j] - top - log_sum; };
          for (int j = lane; j < n; j += lanes) out[j] = (exp(log_weight(j)) - a[j]) * to_rest;
          entropy = -weighted(
              n, [&](int j) { return exp(log_weight(j)); }, log_weight);
        } else {
          const double sum = ThreadBlock::row_total(n, [&](int j) {
            out[j] = expm1(x(j));
            return a[j] * out[j];
          });  // of a_j e^x_j, less 1
          const double share = 1 / (1 + sum);
          entropy = log1p(sum) - weighted(
                                     n, [&](int j) { return a[j] * (out[j] + 1) * share; },
                                     [&](int j) { return logs[j] + x(j); });
          for (int j = lane; j < n; j += lanes) out[j] = a[j] * (out[j] - sum) * (to_rest * share);
        }
      }
      if (lane == 0) room_.entropies[row] = entropy;
    });
  }

  /// Weights of keys j <= i.
  HEADLAB_LARGE_DEVICE void masked_softmax(const double* scores, double w) const {
    const int n = s_.n;
    const int lanes = static_cast<int>(warp_threads);
    const double scale = exp(w);
    block_.for_rows(s_.used() * n, [&](int row, int lane) {
      const int h = row / n;
      const int keys = row % n + 1;
      const double* e = scores + h * square() + row % n * n;
      const double* b = scores + h * square() + n * n;
      double* out = room_.attention + h * square() + row % n * n;
      const auto logit = [&](int j) { return b[j] + scale * e[j]; };
      double top = minus_infinity;
      for (int j = lane; j < keys; j += lanes) top = math::max(top, logit(j));
      top = ThreadBlock::warp_largest(top);
      const double sum = ThreadBlock::row_total(keys, [&](int j) { return exp(logit(j) - top); });
      for (int j = lane; j < n; j += lanes) out[j] = j < keys ? exp(logit(j) - top) / sum : 0;
    });
  }

  /// Splits weights into a, the mean of their rows, and B; v = 0.
  HEADLAB_LARGE_DEVICE void split_weights() const {
    const int n = s_.n;
    block_.for_rows(s_.used() * n, [&](int row, int lane) {
      const double* weights = room_.attention + row / n * square() + row % n * n;
      const double entropy = -weighted(
          n, [&](int j) { return weights[j]; }, [&](int j) { return log(weights[j]); });
      if (lane == 0) room_.entropies[row] = entropy;
    });
    block_.for_each(s_.used() * n, [&](int at) {
      double* column = room_.attention + at / n * square() + at % n;
      const double first = column[0];
      double sum = 0;
      for (int i = 0; i < n; ++i) sum += column[i * n] - first;
      const double shift = sum / n;
      for (int i = 0; i < n; ++i) column[i * n] = column[i * n] - first - shift;
      column[n * n] = first + shift;
    });
  }

  HEADLAB_LARGE_DEVICE void average_heads() const {
    const double share = 1 / static_cast<double>(s_.used());
    block_.for_each(square(), [&](int i) {
      double sum = 0;
      for (int h = 0; h < s_.used(); ++h) sum += share * room_.attention[h * square() + i];
      room_.mean[i] = sum;
    });
  }

  double* kept_;  ///< scores, where there is a memory
  double attention_exponent_ = 0;
  double kept_exponent_ = 0;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
