// SPDX-License-Identifier: Apache-2.0
// Stacks of attention layers: a thread block passes the tokens of one replicate through all layers,
// in the centred arithmetic of kernels/stack. Nothing leaves the device but the metrics.
//
// Products are not those of cuBLAS, which may choose its algorithm by the number of matrices: the
// bits would depend on the size of a batch. A replicate also stays in one kernel, without a launch
// for each of its small products.
//
// Ladder (not timed on a GPU yet):
//   v1  this: 128 threads a replicate, matrices in global memory, 4 x 4 sums a thread
#include "kernels/cuda/launch.h"
#include "kernels/cuda/stack/attention.h"
#include "kernels/design_point.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// One stack on the tokens of one replicate.
class StackOfBlock : AttentionOfBlock {
 public:
  HEADLAB_DEVICE StackOfBlock(const StackArguments& a, const ThreadBlock& block,
                              const StackRoom& room, const StackRoom::Own& own,
                              std::uint64_t replicate, bool pruned, bool measured)
      : AttentionOfBlock(a, block, room, own.kept, replicate, pruned),
        measured_(measured),
        tokens_{own.tokens, s_.n, s_.d},
        next_{own.next, s_.n, s_.d},
        unit_{own.unit, s_.n, s_.d},
        normed_{room.normed, s_.n, s_.d},
        rollout_{room.rollout, s_.n, s_.n},
        next_rollout_{room.next_rollout, s_.n, s_.n} {}

  /// \param from [n][d], in float64 or float32
  template <class Number>
  HEADLAB_DEVICE void begin(const Number* from, int stride) {
    block_.for_each(tokens_.size(), [&](int i) {
      tokens_.rows[i] =
          static_cast<double>(from[static_cast<std::int64_t>(i / s_.d) * stride + i % s_.d]);
    });
    centre_plain(tokens_);
    if (!measured_) return;
    block_.for_each(rollout_.size(), [&](int i) { rollout_.rows[i] = i / s_.n == i % s_.n; });
    centre_plain(rollout_);
    block_.for_each(s_.n, [&](int j) { room_.largest_to_sink[j] = minus_infinity; });
  }

  HEADLAB_DEVICE const Tokens& tokens() const { return tokens_; }

  /// Passes the tokens through the next layer.
  HEADLAB_LARGE_DEVICE void advance() {
    const Tokens z = s_.pre() ? normed_tokens() : tokens_;
    const int first_used = s_.alternating ? layer_ % s_.heads : 0;
    const int first_scored = s_.memory > 0 ? 0 : first_used;
    if (layer_ == 0 || s_.alternating || (s_.gaussian && !s_.shared_weights)) {
      take_maps(first_scored, first_used);
    }
    attend(z, first_scored, first_used);
    if (measured_ || s_.averaged) average_heads();
    add_values(z);
    if (s_.post()) replace(normed_tokens());
    if (s_.mlp) {
      add_mlp(s_.pre() ? normed_tokens() : tokens_);
      if (s_.post()) replace(normed_tokens());
    }
    if (measured_) roll_out();
    ++layer_;
  }

  HEADLAB_LARGE_DEVICE LayerMetrics metrics() {
    LayerMetrics out;
    measure_tokens(out);
    if (layer_ > 0) measure_attention(out);
    if (s_.n > 1 && a_.skip + a_.branch != 0) {
      out.rollout_dobrushin = dobrushin(rollout_.rows, rollout_.exponent);
      double least = HUGE_VAL;
      for (int j = 0; j < s_.n - 1; ++j) least = math::min(least, room_.largest_to_sink[j]);
      out.sink_fidelity = layer_ == 0 ? 0 : least;
    }
    return out;
  }

  /// Largest distance to the tokens of the target.
  HEADLAB_LARGE_DEVICE double target_distance(const Tokens& target) const {
    const double here = tokens_.scale();
    const double there = target.scale();
    block_.for_rows(s_.n, [&](int i, int) {
      room_.of_rows[i] = ThreadBlock::row_total(s_.d, [&](int j) {
        const double x = tokens_.mean()[j] + here * tokens_.rows[i * s_.d + j];
        const double difference = x - (target.mean()[j] + there * target.rows[i * s_.d + j]);
        return difference * difference;
      });
    });
    return sqrt(block_.largest(s_.n, [&](int i) { return room_.of_rows[i]; }));
  }

  HEADLAB_LARGE_DEVICE void record(double* to) const {
    const int size = (s_.n + 1) * s_.d;
    const int weights = s_.used() * (s_.n + 1) * s_.n;
    block_.for_each(size, [&](int i) { to[i] = tokens_.rows[i]; });
    to += size;
    if (ThreadBlock::thread() == 0) {
      to[0] = tokens_.exponent;
      to[1] = tokens_.mean_error;
      to[2] = tokens_.residual_error;
      to[3 + weights] = attention_exponent_;
    }
    if (layer_ == 0) return;
    block_.for_each(weights, [&](int i) { to[3 + i] = room_.attention[i]; });
  }

 private:
  /// Rounding of a mean whose image and sizes of summands are in the room, the latter times factor.
  HEADLAB_LARGE_DEVICE double passed_rounding(const Tokens& z, double factor) const {
    return math::max(relative_rounding(tokens_), relative_rounding(z)) *
               size_of(room_.of_mean, s_.d) +
           stack::token_rounding * math::abs(factor) * size_of(room_.of_mean + s_.d, s_.d);
  }

  /// The tokens under an rms norm with epsilon 0, once for each layer.
  HEADLAB_DEVICE const Tokens& unit() {
    if (!has_unit_) zeros_ = norm(tokens_, NormKind::rms, 0, unit_);
    has_unit_ = true;
    return unit_;
  }

  /// The tokens under the stack's norm.
  HEADLAB_LARGE_DEVICE Tokens normed_tokens() {
    if (s_.norm == NormKind::rms && a_.epsilon == 0) {
      copy(unit(), normed_);
    } else {
      norm(tokens_, s_.norm, a_.epsilon, normed_);
    }
    if (a_.gain != nullptr) {
      block_.for_each(normed_.size() + s_.d, [&](int i) { normed_.rows[i] *= a_.gain[i % s_.d]; });
      normed_.mean_rounding *= block_.largest(s_.d, [&](int j) { return math::abs(a_.gain[j]); });
      recentre(normed_);
    }
    if (a_.bias != nullptr) {
      block_.for_each(s_.d, [&](int j) { normed_.mean()[j] += a_.bias[j]; });
      normed_.mean_rounding += stack::token_rounding * size_of(a_.bias, s_.d);
    }
    return normed_;
  }

  HEADLAB_DEVICE void replace(const Tokens& by) {
    copy(by, tokens_);
    has_unit_ = false;
  }

  // ---- Layers (kernels/stack/layers.cpp) ----

  /// Image of the mean and sizes of the summands of the new one, as kernels/stack/layers.cpp.
  HEADLAB_LARGE_DEVICE void follow_mean(const Tokens& z, const double* weights,
                                        const InMatrices& values) const {
    const int n = s_.n;
    const int d = s_.d;
    double* image = room_.of_mean;
    double* sizes = image + d;
    double* of_head = sizes + d;
    double* summands = of_head + d;
    const double scale = z.scale();
    block_.for_each(d, [&](int j) {
      image[j] = a_.skip * tokens_.mean()[j];
      sizes[j] = 0;
    });
    for (int h = 0; h < s_.value_maps(); ++h) {
      const double* a = weights + h * square() + n * n;
      block_.for_each(d, [&](int j) {
        double sum = 0;
        for (int i = 0; i < n; ++i) sum += math::abs(a[i]) * math::abs(z.rows[i * d + j]);
        of_head[j] = math::abs(z.mean()[j]) + scale * sum;
      });
      block_.for_each(rank_, [&](int r) {
        if (value_ == nullptr) {
          summands[r] = of_head[r];
          return;
        }
        const double* value = value_ + h * d * rank_ + r;
        double sum = 0;
        for (int j = 0; j < d; ++j) sum += of_head[j] * math::abs(value[j * rank_]);
        summands[r] = sum;
      });
      block_.for_each(d, [&](int j) {
        const double* output = output_ + h * rank_ * d + j;
        for (int r = 0; r < rank_; ++r) {
          image[j] += a_.branch * *values.at(h, n, r) * output[r * d];
          sizes[j] += summands[r] * math::abs(output[r * d]);
        }
      });
    }
  }

  /// skip tokens + branch sum_h A_h z V_h.
  HEADLAB_LARGE_DEVICE void add_values(const Tokens& z) {
    const int n = s_.n;
    const int d = s_.d;
    const int count = s_.value_maps();
    const int inner = count * rank_;
    const double scale = z.scale();
    InMatrices values = z.all();
    if (value_ != nullptr) {
      block_.product(count, n + 1, d, rank_, z.all(), {value_, d * rank_, rank_},
                     {room_.values, (n + 1) * rank_, rank_});
      values = {room_.values, (n + 1) * rank_, rank_};
    }
    const double* weights = s_.averaged ? room_.mean : room_.attention;
    // Of all heads side by side B R value and, below it, e^sigma a R value.
    block_.product(count, n + 1, n, rank_, {weights, square(), n}, values,
                   {room_.mixed, rank_, inner});
    block_.for_each(inner, [&](int j) { room_.mixed[n * inner + j] *= scale; });
    follow_mean(z, weights, values);
    double of_mean = 0;
    double of_rest = 0;
    if (s_.records) {
      const double branch = math::abs(a_.branch);
      for (int h = 0; h < count; ++h) {
        const InMatrices output = {output_ + h * rank_ * d, 0, d};
        block_.product(1, n + 1, rank_, d, {room_.mixed + h * rank_, 0, inner}, output,
                       {room_.spare, 0, d});
        of_rest += branch * z.residual_error * size_of(room_.spare, n * d);
        of_mean += branch * z.residual_error * size_of(room_.spare + n * d, d);
        block_.product(1, 1, rank_, d, {values.at(h, n, 0), 0, rank_}, output, {room_.spare, 0, d});
        of_mean += branch * z.mean_error * size_of(room_.spare, d);
      }
    }
    block_.for_each(
        inner, [&](int j) { room_.mixed[n * inner + j] += *values.at(j / rank_, n, j % rank_); });
    block_.product(1, n + 1, inner, d, {room_.mixed, 0, inner}, {output_, 0, d},
                   {room_.branch, 0, d});
    if (a_.branch != 1) {
      block_.for_each((n + 1) * d, [&](int i) { room_.branch[i] *= a_.branch; });
    }
    const double exponent = z.exponent + attention_exponent_;
    add(a_.skip, tokens_, room_.branch, exponent, next_);
    next_.mean_rounding += passed_rounding(z, a_.branch);
    if (s_.records) {
      // What the residual gives to the mean counts with the residual's error.
      of_mean += z.residual_error * sqrt(block_.total(d, [&](int j) {
                   const double shift =
                       next_.mean()[j] - a_.skip * tokens_.mean()[j] - room_.branch[n * d + j];
                   return shift * shift;
                 }));
      bound_errors(a_.skip, tokens_, of_mean, of_rest, exponent, next_);
    }
    exchange(tokens_, next_);
    has_unit_ = false;
  }

  /// tokens + f(z), from differences of relu at the mean.
  HEADLAB_LARGE_DEVICE void add_mlp(const Tokens& z) {
    const int n = s_.n;
    const int d = s_.d;
    const int width = s_.width;
    const double* input = a_.input;
    const double* bias = a_.mlp_bias;
    const double* output = a_.mlp_output;
    if (s_.mlp_drawn) {
      const std::uint64_t point = place(0);
      draw(Purpose::mlp_input, point, 1, d * width, a_.input_sd, room_.input, 0);
      draw(Purpose::mlp_bias, point, 1, width, a_.bias_sd, room_.bias, 0);
      draw(Purpose::mlp_output, point, 1, width * d, a_.mlp_output_sd, room_.mlp_output, 0);
      input = room_.input;
      bias = room_.bias;
      output = room_.mlp_output;
    }
    block_.product(1, n + 1, d, width, z.all(), {input, 0, width}, {room_.hidden, 0, width});
    block_.for_each(width, [&](int j) { room_.hidden[n * width + j] += bias[j]; });
    const double scale = z.scale();
    const double* at_mean = room_.hidden + n * width;
    block_.for_each(n * width, [&](int i) {
      room_.hidden[i] = stack::relu_difference(at_mean[i % width], room_.hidden[i], scale);
    });
    block_.for_each(width, [&](int j) {
      double& u = room_.hidden[n * width + j];
      u = u > 0 ? u : 0;
    });
    double* sizes = room_.of_mean + 3 * d;
    block_.for_each(width, [&](int w) {
      double sum = math::abs(bias[w]);
      for (int j = 0; j < d; ++j) sum += math::abs(z.mean()[j]) * math::abs(input[j * width + w]);
      sizes[w] = at_mean[w] > 0 ? sum : 0;
    });
    block_.for_each(d, [&](int j) {
      double image = tokens_.mean()[j];
      double of_summands = 0;
      for (int w = 0; w < width; ++w) {
        image += at_mean[w] > 0 ? (at_mean[w] - bias[w]) * output[w * d + j] : 0;
        of_summands += sizes[w] * math::abs(output[w * d + j]);
      }
      room_.of_mean[j] = image;
      room_.of_mean[d + j] = of_summands;
    });
    block_.product(1, n + 1, width, d, {room_.hidden, 0, width}, {output, 0, d},
                   {room_.branch, 0, d});
    add(1, tokens_, room_.branch, z.exponent, next_);
    next_.mean_rounding += passed_rounding(z, 1);
    if (s_.records) {
      const double error = math::max(z.mean_error, z.residual_error);
      bound_errors(1, tokens_, error * size_of(room_.branch + n * d, d),
                   error * size_of(room_.branch, n * d), z.exponent, next_);
    }
    exchange(tokens_, next_);
    has_unit_ = false;
  }

  /// Passes the rollout through the layer.
  HEADLAB_LARGE_DEVICE void roll_out() {
    const int n = s_.n;
    const double sum = a_.skip + a_.branch;
    if (sum == 0) return;
    const double share = a_.branch / sum;
    const double scale = rollout_.scale();
    block_.product(1, n + 1, n, n, {room_.mean, 0, n}, rollout_.all(), {room_.branch, 0, n});
    block_.for_each(square(), [&](int i) {
      const double x = room_.branch[i];
      room_.branch[i] = share * (i < n * n ? x : scale * x + rollout_.mean()[i - n * n]);
    });
    add(a_.skip / sum, rollout_, room_.branch, rollout_.exponent + attention_exponent_,
        next_rollout_);
    exchange(rollout_, next_rollout_);
    const double after = rollout_.scale();
    block_.for_each(n, [&](int j) {
      const double weight = rollout_.mean()[j] + after * rollout_.rows[(n - 1) * n + j];
      room_.largest_to_sink[j] = math::max(room_.largest_to_sink[j], weight);
    });
  }

  // ---- Metrics (kernels/stack/metrics.cpp) ----

  HEADLAB_LARGE_DEVICE double dobrushin(const double* rest, double exponent) const {
    if (s_.n == 1 || s_.n > stack::max_tokens_of_dobrushin) return LayerMetrics::undefined;
    return exp(exponent) / 2 * block_.max_of_pairs(s_.n, s_.n, rest, DifferenceTerm());
  }

  HEADLAB_LARGE_DEVICE void measure_tokens(LayerMetrics& out) {
    const int n = s_.n;
    const int d = s_.d;
    const double* r = tokens_.rows;
    const double sigma = tokens_.exponent;
    const double scale = tokens_.scale();
    const double squared = block_.total(n * d, [&](int i) { return r[i] * r[i]; });
    const double of_mean = mean_size(tokens_);
    out.collapsed = tokens_.collapsed() ? 1 : 0;
    if (!tokens_.collapsed()) out.log_residual = sigma + log(squared) / 2;
    out.residual_squared = scale * scale * squared;
    out.mean_squared = of_mean * of_mean;
    // X over max(|m|, e^sigma); none where X is 0.
    const double exponent = math::max(log(of_mean), sigma);
    if (exponent != minus_infinity) {
      double* x = room_.branch;
      const double of_residual = exp(sigma - exponent);
      const double mean_factor = exp(-exponent);
      block_.for_each(
          n * d, [&](int i) { x[i] = of_residual * r[i] + mean_factor * tokens_.mean()[i % d]; });
      const double total = block_.total(n * d, [&](int i) { return x[i] * x[i]; });
      out.residual_share =
          tokens_.collapsed() ? 0 : stack::residual_share(n, out.mean_squared, sigma, squared);
      const bool by_tokens = d > n;
      const int side = by_tokens ? n : d;
      const InMatrices across = {x, 0, by_tokens ? d : 1, by_tokens ? 1 : d};
      const InMatrices along = {x, 0, across.column, across.row};
      block_.product(1, side, by_tokens ? d : n, side, across, along, {room_.spare, 0, side});
      out.participation = total * total / block_.total(side * side, [&](int i) {
        return room_.spare[i] * room_.spare[i];
      });
    }
    block_.column_sums(n, d, 1, room_.of_columns,
                       [&](int i, int j) { return math::abs(r[i * d + j]); });
    block_.for_rows(n, [&](int i, int lane) {
      const double sum = ThreadBlock::row_total(d, [&](int j) { return math::abs(r[i * d + j]); });
      if (lane == 0) room_.of_rows[i] = sum;
    });
    const double of_column = block_.largest(d, [&](int j) { return room_.of_columns[j]; });
    const double of_row = block_.largest(n, [&](int i) { return room_.of_rows[i]; });
    out.dong = scale * sqrt(of_column * of_row);
    if (n == 1) return;
    if (n <= stack::max_tokens_of_diameter) {
      out.diameter = scale * sqrt(block_.max_of_pairs(n, d, r, SquareDistanceTerm()));
    }
    const Tokens& u = unit();  // of squared length d
    if (zeros_ > 0) return;
    const double pairs = static_cast<double>(d) * (n - 1);
    const double spread = block_.total(n * d, [&](int i) { return u.rows[i] * u.rows[i]; });
    out.cosine = u.collapsed() ? 1 : 1 - exp(2 * u.exponent) * spread / pairs;
  }

  HEADLAB_LARGE_DEVICE void measure_attention(LayerMetrics& out) const {
    const int n = s_.n;
    const int heads = s_.used();
    const double count = heads;
    const double scale = exp(attention_exponent_);
    out.entropy = block_.total(heads * n, [&](int i) { return room_.entropies[i]; }) / (n * count);
    double tau = 0;
    double factor = 0;
    double own = 0;
    for (int h = 0; h < heads; ++h) {
      const double* b = room_.attention + h * square();
      own += block_.total(n, [&](int j) { return b[n * n + j] + scale * b[j * n + j]; });
      if (n == 1) continue;
      tau += dobrushin(b, attention_exponent_);
      block_.column_sums(n, n, 1 / static_cast<double>(n), room_.of_columns,
                         [&](int i, int j) { return b[i * n + j]; });
      factor += block_.total(n * n, [&](int i) {
        const double rest = b[i] - room_.of_columns[i % n];
        return rest * rest;
      });
    }
    out.self_weight = own / (n * count);
    if (n == 1) return;
    out.dobrushin = tau / count;
    out.residual_factor = exp(2 * attention_exponent_) * factor / ((n - 1) * count);
  }

  bool measured_;
  Tokens tokens_, next_, unit_, normed_;
  bool has_unit_ = false;
  int zeros_ = 0;  ///< tokens that are 0 under unit()
  Tokens rollout_, next_rollout_;
};

HEADLAB_KERNEL void points_kernel(const StackArguments a) {
  const std::int64_t at =
      static_cast<std::int64_t>(block_index_x()) * block_threads() + thread_index();
  const StackShape& s = a.shape;
  if (at >= a.replicates * s.n) return;
  const std::uint64_t replicate = a.first_replicate + static_cast<std::uint64_t>(at / s.n);
  float* x = a.points + at * point_buffer(s.d);
  a.design.visit([&](const auto& sampler) {
    draw_design_point(sampler, a.design_table, s.d, a.design_seed, a.design_purpose,
                      a.choice_purpose, a.fixed_design ? 0 : replicate,
                      static_cast<std::uint64_t>(at % s.n), x);
  });
}

/// A thread block is a replicate.
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(ThreadBlock::threads, 4)
    stack_kernel(const StackArguments a) {
  const StackShape& s = a.shape;
  const std::int64_t at = block_index_x();
  const ThreadBlock block(reinterpret_cast<double*>(shared_memory()));
  const StackRoom room(s, a.room + at * a.room_size);
  const std::uint64_t replicate = a.first_replicate + static_cast<std::uint64_t>(at);
  const bool pruned = s.samples > 0;
  StackOfBlock run(a, block, room, room.own, replicate, pruned, true);
  // What pruned maps are measured against; within a layer it uses the same room.
  StackOfBlock target(a, block, room, room.of_target, replicate, false, false);
  const auto begin = [&](StackOfBlock& one) {
    if (a.given_tokens != nullptr) {
      one.begin(a.given_tokens, s.d);
    } else {
      const int size = point_buffer(s.d);
      one.begin(a.points + at * s.n * size, size);
    }
  };
  begin(run);
  if (pruned) begin(target);
  const std::int64_t row = at * (s.layers + 1);
  for (int l = 0; l <= s.layers; ++l) {
    if (l > 0) run.advance();
    LayerMetrics metrics = run.metrics();
    if (s.records) run.record(a.records + (row + l) * s.record());
    if (pruned) {
      if (l > 0) target.advance();
      metrics.target_distance = run.target_distance(target.tokens());
    }
    if (thread_index() == 0) a.metrics[row + l] = metrics;
  }
}

}  // namespace

std::uint64_t stack_local_memory() {
  return local_memory_of(reinterpret_cast<const void*>(stack_kernel));
}

void run_stacks(Stream& stream, const StackArguments& a) {
  const StackShape& s = a.shape;
  if (a.given_tokens == nullptr) {
    const std::int64_t points = a.replicates * s.n;
    launch(stream, "stack points", {.blocks_x = (points + 127) / 128, .threads = 128},
           points_kernel, a);
  }
  std::uint64_t numbers = ThreadBlock::shared_numbers;
  if (s.samples > 0) {
    numbers +=
        ThreadBlock::warps * static_cast<unsigned>(s.samples + (1 << (s.samples - s.samples / 2)));
  }
  launch(stream, "stack",
         {.blocks_x = a.replicates,
          .threads = ThreadBlock::threads,
          .shared_bytes = numbers * sizeof(double)},
         stack_kernel, a);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
