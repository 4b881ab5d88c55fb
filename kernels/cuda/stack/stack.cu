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
#include "kernels/cuda/stack/arguments.h"
#include "kernels/cuda/stack/thread_block.h"
#include "kernels/design_point.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using stack::minus_infinity;

/// 1 m^T + e^sigma R as kernels/stack/tokens.h has it; R [n][columns] and, below it, m.
struct Tokens {
  double* rows = nullptr;
  int n = 0;
  int columns = 0;
  double exponent = 0;
  double mean_error = 1e-15;
  double residual_error = 1e-15;
  double mean_rounding = 0;

  HEADLAB_DEVICE int size() const { return n * columns; }
  HEADLAB_DEVICE double* mean() const { return rows + size(); }
  HEADLAB_DEVICE double scale() const { return exp(exponent); }
  HEADLAB_DEVICE bool collapsed() const { return exponent == minus_infinity; }
  HEADLAB_DEVICE InMatrices all() const { return {rows, 0, columns}; }
};

HEADLAB_DEVICE void exchange(Tokens& a, Tokens& b) {
  const Tokens kept = a;
  a = b;
  b = kept;
}

/// One stack on the tokens of one replicate.
class StackOfBlock {
 public:
  HEADLAB_DEVICE StackOfBlock(const StackArguments& a, const ThreadBlock& block,
                              const StackRoom& room, const StackRoom::Own& own,
                              std::uint64_t replicate, bool pruned, bool measured)
      : a_(a),
        s_(a.shape),
        block_(block),
        room_(room),
        kept_(own.kept),
        replicate_(replicate),
        pruned_(pruned),
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
  // ---- Tokens (kernels/stack/tokens.cpp) ----

  HEADLAB_LARGE_DEVICE double size_of(const double* numbers, int count) const {
    return sqrt(block_.total(count, [&](int i) { return numbers[i] * numbers[i]; }));
  }
  HEADLAB_DEVICE double mean_size(const Tokens& t) const { return size_of(t.mean(), t.columns); }
  HEADLAB_DEVICE double residual_size(const Tokens& t) const { return size_of(t.rows, t.size()); }

  HEADLAB_LARGE_DEVICE void copy(const Tokens& from, Tokens& to) const {
    block_.for_each(from.size() + from.columns, [&](int i) { to.rows[i] = from.rows[i]; });
    to.exponent = from.exponent;
    to.mean_error = from.mean_error;
    to.residual_error = from.residual_error;
    to.mean_rounding = from.mean_rounding;
  }

  HEADLAB_LARGE_DEVICE void recentre(Tokens& t) const {
    double* shift = room_.of_columns;
    block_.column_sums(t.n, t.columns, 1 / static_cast<double>(t.n), shift,
                       [&](int i, int j) { return t.rows[i * t.columns + j]; });
    const double largest = block_.largest(t.size(), [&](int i) {
      t.rows[i] -= shift[i % t.columns];
      return math::abs(t.rows[i]);
    });
    if (!t.collapsed()) {
      const double scale = t.scale();
      block_.for_each(t.columns, [&](int j) { t.mean()[j] += scale * shift[j]; });
      t.mean_rounding += stack::token_rounding * scale * size_of(shift, t.columns);
    }
    if (largest > 0) {
      const double factor = 1 / largest;
      block_.for_each(t.size(), [&](int i) { t.rows[i] *= factor; });
    }
    t.exponent = largest == 0 ? minus_infinity : t.exponent + log(largest);
  }

  /// Centres tokens that lie as they are in the rows.
  HEADLAB_LARGE_DEVICE void centre_plain(Tokens& t) const {
    block_.for_each(t.columns, [&](int j) { t.mean()[j] = t.rows[j]; });
    block_.for_each(t.size(), [&](int i) { t.rows[i] -= t.mean()[i % t.columns]; });
    t.exponent = 0;
    t.mean_error = t.residual_error = 1e-15;
    t.mean_rounding = stack::token_rounding * mean_size(t);
    recentre(t);
  }

  /// out = factor x + y, y = 1 mean^T + e^exponent rest, the rest and, below it, the mean.
  HEADLAB_LARGE_DEVICE void add(double factor, const Tokens& x, const double* y, double exponent,
                                Tokens& out) const {
    const bool none = block_.largest(x.size(), [&](int i) { return math::abs(y[i]); }) == 0;
    const stack::Sum sum = stack::sum_at_larger(factor, factor == 0 ? minus_infinity : x.exponent,
                                                none ? minus_infinity : exponent);
    block_.for_each(x.size(),
                    [&](int i) { out.rows[i] = sum.first * x.rows[i] + sum.second * y[i]; });
    block_.for_each(x.columns,
                    [&](int j) { out.mean()[j] = factor * x.mean()[j] + y[x.size() + j]; });
    out.exponent = sum.exponent;
    out.mean_rounding = stack::token_rounding *
                        (math::abs(factor) * mean_size(x) + size_of(y + x.size(), x.columns));
    recentre(out);
  }

  /// Rounding of the mean in units of its size; 0 where the mean is 0.
  HEADLAB_DEVICE double relative_rounding(const Tokens& t) const {
    const double size = mean_size(t);
    return size == 0 ? 0 : t.mean_rounding / size;
  }
  /// Rounding of a mean whose image and sizes of summands are in the room, the latter times factor.
  HEADLAB_LARGE_DEVICE double passed_rounding(const Tokens& z, double factor) const {
    return math::max(relative_rounding(tokens_), relative_rounding(z)) *
               size_of(room_.of_mean, s_.d) +
           stack::token_rounding * math::abs(factor) * size_of(room_.of_mean + s_.d, s_.d);
  }

  /// Errors of factor x + y, given the sizes of the summands of y, each times its error.
  HEADLAB_LARGE_DEVICE void bound_errors(double factor, const Tokens& x, double mean, double rest,
                                         double exponent, Tokens& out) const {
    factor = math::abs(factor);
    out.mean_error = stack::relative(factor * x.mean_error * mean_size(x) + mean, mean_size(out)) +
                     stack::step_error;
    double sizes = 0;
    const double of_x = residual_size(x);
    const double of_out = residual_size(out);
    if (!x.collapsed()) {
      sizes += factor * x.residual_error * of_x * exp(x.exponent - out.exponent);
    }
    if (rest > 0) sizes += rest * exp(exponent - out.exponent);
    out.residual_error = stack::relative(out.collapsed() ? 0 : sizes, of_out) + stack::step_error;
  }

  // ---- Norms ----

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

  /// \return how many of the tokens were 0
  HEADLAB_LARGE_DEVICE int norm(const Tokens& given, NormKind kind, double epsilon,
                                Tokens& out) const {
    Tokens x = given;
    if (kind == NormKind::layer) {
      x.rows = room_.centred;
      block_.for_rows(x.n + 1, [&](int i, int lane) {
        const double* from = given.rows + i * x.columns;
        const double mean =
            ThreadBlock::row_total(x.columns, [&](int j) { return from[j]; }) / x.columns;
        for (int j = lane; j < x.columns; j += static_cast<int>(warp_threads)) {
          x.rows[i * x.columns + j] = from[j] - mean;
        }
      });
      if (s_.records) {
        x.mean_error *= stack::relative(mean_size(given), mean_size(x));
        x.residual_error *= stack::relative(residual_size(given), residual_size(x));
      }
    }
    const int zeros = norm_about(x, given, epsilon, out);
    out.mean_error += stack::step_error;
    out.residual_error += stack::step_error;
    return zeros;
  }

  HEADLAB_LARGE_DEVICE int norm_about(const Tokens& x, const Tokens& given, double epsilon,
                                      Tokens& out) const {
    const double d = x.columns;
    const double of_mean = mean_size(x);
    const double rounding_of_mean =
        math::max(given.mean_rounding, stack::token_rounding * mean_size(given));
    const double mean_square = of_mean * of_mean + d * epsilon;
    if (x.collapsed()) {
      const bool zero = epsilon == 0 && of_mean <= rounding_of_mean;
      copy(x, out);
      const double factor = zero ? 0 : sqrt(d / mean_square);
      block_.for_each(x.columns, [&](int j) { out.mean()[j] *= factor; });
      out.mean_rounding *= factor;
      return zero ? x.n : 0;
    }
    block_.for_rows(x.n, [&](int i, int lane) {
      const double* r = x.rows + i * x.columns;
      const double square = ThreadBlock::row_total(x.columns, [&](int j) { return r[j] * r[j]; });
      if (lane == 0) room_.of_rows[i] = square;
    });
    const double largest = block_.largest(x.n, [&](int i) { return room_.of_rows[i]; });
    const double size = stack::in_units_of(x.scale(), sqrt(mean_square));
    const bool plainly = mean_square == 0 || size <= 1e-3 * sqrt(largest);
    const double rounding_in_units = stack::in_units_of(given.scale(), rounding_of_mean);
    return plainly ? norm_plainly(x, given, epsilon, of_mean, rounding_in_units, out)
                   : norm_by_excess(x, given, epsilon, mean_square, rounding_in_units, out);
  }

  /// Size of a token that is rounding alone, in units of e^sigma; by a warp.
  HEADLAB_DEVICE static double rounding(const Tokens& given, int i, double rounding_of_mean) {
    const double* r = given.rows + i * given.columns;
    const double square = ThreadBlock::row_total(given.columns, [&](int j) { return r[j] * r[j]; });
    return stack::token_rounding * sqrt(square) + rounding_of_mean;
  }

  /// Token by token, where the mean is small against the residual; squares of the residual in
  /// of_rows.
  HEADLAB_LARGE_DEVICE int norm_plainly(const Tokens& x, const Tokens& given, double epsilon,
                                        double of_mean, double rounding_of_mean,
                                        Tokens& out) const {
    const double d = x.columns;
    const double scale = x.scale();
    const double floor = epsilon == 0 ? 0 : d * epsilon / (scale * scale);
    const double mean_in_units = stack::in_units_of(scale, of_mean);
    block_.for_rows(x.n, [&](int i, int lane) {
      const double* r = x.rows + i * x.columns;
      const auto token = [&](int j) { return r[j] + stack::in_units_of(scale, x.mean()[j]); };
      const double square =
          ThreadBlock::row_total(x.columns, [&](int j) { return token(j) * token(j); });
      const double least = rounding(given, i, rounding_of_mean);
      const bool zero = epsilon == 0 && sqrt(square) <= least;
      const double factor = zero ? 0 : sqrt(d / (square + floor));
      for (int j = lane; j < x.columns; j += static_cast<int>(warp_threads)) {
        out.rows[i * x.columns + j] = factor * token(j);
      }
      if (lane == 0) {
        const double summand = factor * (mean_in_units + sqrt(room_.of_rows[i]));
        room_.summands[i] = summand * summand;
        room_.of_roundings[i] = factor * least;
        room_.zero_rows[i] = zero ? 1 : 0;
      }
    });
    const double spread = sqrt(block_.total(x.n, [&](int i) { return room_.summands[i]; }));
    const double zeros = block_.total(x.n, [&](int i) { return room_.zero_rows[i]; });
    const double rounding_of_rows = block_.total(x.n, [&](int i) { return room_.of_roundings[i]; });
    centre_plain(out);
    out.mean_rounding += rounding_of_rows / x.n;
    const double error = math::max(x.mean_error, x.residual_error) * spread;
    out.mean_error = stack::relative(error, sqrt(static_cast<double>(x.n)) * mean_size(out));
    out.residual_error = stack::relative(error, residual_size(out) * out.scale());
    return static_cast<int>(zeros);
  }

  /// By the excess of a token's squared length over that of the mean.
  HEADLAB_LARGE_DEVICE int norm_by_excess(const Tokens& x, const Tokens& given, double epsilon,
                                          double mean_square, double rounding_of_mean,
                                          Tokens& out) const {
    const double d = x.columns;
    const double to_unit = sqrt(d / mean_square);
    const double scale = x.scale();
    const double mean_part = mean_square - d * epsilon;
    block_.for_rows(x.n, [&](int i, int lane) {
      const double* r = x.rows + i * x.columns;
      const double* m = x.mean();
      const double square = room_.of_rows[i];
      const double along = ThreadBlock::row_total(x.columns, [&](int j) { return m[j] * r[j]; });
      const double excess = (2 * along + scale * square) / mean_square;
      bool zero = false;
      stack::NormFactors factors = {0, 0};
      if (stack::knows_length(scale, excess)) {
        factors = stack::factors_of_excess(scale, excess);
      } else {
        const double length = ThreadBlock::row_total(x.columns, [&](int j) {
          const double token = m[j] + scale * r[j];
          return token * token;
        });
        zero = epsilon == 0 && sqrt(length) <= scale * rounding(given, i, rounding_of_mean);
        factors.of_residual = zero ? 0 : sqrt(mean_square / (length + d * epsilon));
        factors.of_mean = (factors.of_residual - 1) / scale;
      }
      const double f = to_unit * factors.of_residual;
      const double g = to_unit * factors.of_mean;
      for (int j = lane; j < x.columns; j += static_cast<int>(warp_threads)) {
        out.rows[i * x.columns + j] = f * r[j] + g * m[j];
      }
      if (lane == 0) {
        room_.summands[i] = factors.of_residual * factors.of_residual * square +
                            factors.of_mean * factors.of_mean * mean_part;
        room_.zero_rows[i] = zero ? 1 : 0;
      }
    });
    const double summands = block_.total(x.n, [&](int i) { return room_.summands[i]; });
    const double zeros = block_.total(x.n, [&](int i) { return room_.zero_rows[i]; });
    block_.for_each(x.columns, [&](int j) { out.mean()[j] = to_unit * x.mean()[j]; });
    out.mean_rounding = to_unit * x.mean_rounding;
    out.exponent = x.exponent;
    recentre(out);
    out.mean_error = x.mean_error;
    out.residual_error = math::max(x.mean_error, x.residual_error) *
                         stack::relative(to_unit * sqrt(summands),
                                         residual_size(out) * exp(out.exponent - x.exponent));
    return static_cast<int>(zeros);
  }

  // ---- Draws (kernels/stack/maps.cpp) ----

  /// Of a head; with shared weights all layers have those of layer 0.
  HEADLAB_DEVICE std::uint64_t place(int head) const {
    return static_cast<std::uint64_t>(s_.shared_weights ? 0 : layer_) *
               static_cast<std::uint64_t>(s_.heads) +
           static_cast<std::uint64_t>(head);
  }

  /// Draws `count` matrices of `size` entries, those of the points from `first` on.
  /// \param distance from one matrix to the next
  HEADLAB_LARGE_DEVICE void draw(Purpose purpose, std::uint64_t first, int count, int size,
                                 double sd, double* out, int distance) const {
    const std::uint64_t stream = subsequence(purpose, replicate_);
    const int quads = (size + 3) / 4;
    block_.for_each(count * quads, [&](int i) {
      const int matrix = i / quads;
      const int quad = i % quads;
      const Words words = philox(a_.seed, stream, first * quads + static_cast<std::uint64_t>(i));
      double* to = out + static_cast<std::int64_t>(matrix) * distance + 4 * quad;
      for (int pair = 0; pair < 4 && 4 * quad + pair < size; pair += 2) {
        const NormalPair z = normal_pair(words.w[pair], words.w[pair + 1]);
        to[pair] = sd * static_cast<double>(z.first);
        if (4 * quad + pair + 1 < size) to[pair + 1] = sd * static_cast<double>(z.second);
      }
    });
  }

  HEADLAB_LARGE_DEVICE void take_maps(int first_scored, int first_used) {
    const int d = s_.d;
    const bool softmax = s_.kernel == AttentionKernel::softmax;
    key_ = nullptr;
    value_ = nullptr;
    query_rank_ = rank_ = d;
    if (!s_.gaussian) {
      query_ = softmax ? a_.query + static_cast<std::int64_t>(first_scored) * d * d : nullptr;
      output_ = a_.value + (s_.averaged ? 0 : static_cast<std::int64_t>(first_used) * d * d);
      return;
    }
    const int k = s_.k;
    const int value_dim = s_.value_dim;
    if (softmax) {
      const std::uint64_t point = place(first_scored);
      const int count = s_.scored();
      const double divisor = pruned_ ? 1 : a_.temperature;
      draw(Purpose::query_weights, point, count, d * k, a_.query_key_sd / divisor, room_.query,
           d * k);
      draw(Purpose::key_weights, point, count, d * k, a_.query_key_sd, room_.key, d * k);
      query_ = room_.query;
      key_ = room_.key;
      query_rank_ = k;
      if (pruned_) {
        block_.product(count, d, k, d, {room_.query, d * k, k}, {room_.key, d * k, 1, k},
                       {room_.pruned_query, d * d, d});
        prune(point, count, 0, a_.temperature, room_.pruned_query);
        query_ = room_.pruned_query;
        key_ = nullptr;
        query_rank_ = d;
      }
    }
    const std::uint64_t point = place(s_.averaged ? 0 : first_used);
    const int count = s_.value_maps();
    draw(Purpose::value_weights, point, count, d * value_dim, a_.value_sd, room_.value,
         d * value_dim);
    draw(Purpose::output_weights, point, count, value_dim * d, a_.output_sd, room_.output,
         value_dim * d);
    value_ = room_.value;
    output_ = room_.output;
    rank_ = value_dim;
    if (pruned_) {
      block_.product(count, d, value_dim, d, {room_.value, d * value_dim, value_dim},
                     {room_.output, value_dim * d, d}, {room_.pruned_value, d * d, d});
      prune(point, count, 1, 1, room_.pruned_value);
      value_ = nullptr;
      output_ = room_.pruned_value;
      rank_ = d;
    }
  }

  /// Sum of the numbers that are chosen by the bits of a mask, in their order.
  HEADLAB_DEVICE static double sum_of(const double* numbers, int count, int mask) {
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      if ((mask >> i & 1) != 0) sum += numbers[i];
    }
    return sum;
  }

  /// Replaces the entries of d x d maps, the first or second of their heads, by the nearest subset
  /// sums over a divisor. A warp an entry: a lane tries some sums of one half of the samples with
  /// all sums of the other.
  HEADLAB_LARGE_DEVICE void prune(std::uint64_t point, int count, int which, double divisor,
                                  double* maps) const {
    const int of_map = s_.d * s_.d;
    const int m = s_.samples;
    const int half = m / 2;
    const int warps = static_cast<int>(ThreadBlock::warps);
    const std::uint64_t quads = static_cast<std::uint64_t>(of_map) * static_cast<std::uint64_t>(m);
    const std::uint64_t stream = subsequence(Purpose::pruning_samples, replicate_);
    double* samples = reinterpret_cast<double*>(shared_memory()) + ThreadBlock::shared_numbers +
                      ThreadBlock::warp() * (m + (1 << (m - half)));
    double* sums = samples + m;
    const int lane = ThreadBlock::lane();
    const int lanes = static_cast<int>(warp_threads);
    for (int base = 0; base < count * of_map; base += warps) {
      const int at = base + ThreadBlock::warp();
      const bool active = at < count * of_map;
      synchronise_block();
      if (active && lane < m) {
        const std::uint64_t entry = static_cast<std::uint64_t>(which * of_map + at % of_map);
        const std::uint64_t first =
            2 * (entry * static_cast<std::uint64_t>(m) + static_cast<std::uint64_t>(lane));
        const Words words = philox(
            a_.seed, stream, (point + static_cast<std::uint64_t>(at / of_map)) * quads + first / 4);
        samples[lane] = static_cast<double>(uniform_symmetric(words.w[first % 4])) *
                        static_cast<double>(uniform_symmetric(words.w[first % 4 + 1]));
      }
      synchronise_block();
      for (int mask = lane; active && mask < 1 << (m - half); mask += lanes) {
        sums[mask] = sum_of(samples + half, m - half, mask);
      }
      synchronise_block();
      if (!active) continue;
      const double target = maps[at];
      double nearest = 0;
      for (int low = lane; low < 1 << half; low += lanes) {
        const double sum = sum_of(samples, half, low);
        for (int mask = 0; mask < 1 << (m - half); ++mask) {
          nearest = stack::nearer_sum(nearest, sum + sums[mask], target);
        }
      }
      for (int mask = 16; mask > 0; mask /= 2) {
        nearest = stack::nearer_sum(nearest, shuffle_xor(nearest, mask), target);
      }
      if (lane == 0) maps[at] = nearest / divisor;
    }
    synchronise_block();
  }

  // ---- Attention (kernels/stack/attention.cpp) ----

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

  // ---- Layers (kernels/stack/layers.cpp) ----

  /// skip tokens + branch sum_h A_h z V_h.
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

  const StackArguments& a_;
  const StackShape& s_;
  const ThreadBlock& block_;
  const StackRoom& room_;
  double* kept_;  ///< scores, where there is a memory
  std::uint64_t replicate_;
  bool pruned_;
  bool measured_;
  int layer_ = 0;  ///< layers passed
  Tokens tokens_, next_, unit_, normed_;
  bool has_unit_ = false;
  int zeros_ = 0;  ///< tokens that are 0 under unit()
  Tokens rollout_, next_rollout_;
  double attention_exponent_ = 0;
  double kept_exponent_ = 0;
  // Maps of the layer; without key or value these are the identity.
  const double* query_ = nullptr;
  const double* key_ = nullptr;
  const double* value_ = nullptr;
  const double* output_ = nullptr;
  int query_rank_ = 0;
  int rank_ = 0;
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
