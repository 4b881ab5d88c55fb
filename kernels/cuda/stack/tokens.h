// SPDX-License-Identifier: Apache-2.0
/// \file Tokens of a replicate in the centred arithmetic of kernels/stack/tokens.cpp, by a thread
/// block.
#pragma once

#include <cstdint>

#include "kernels/cuda/stack/arguments.h"
#include "kernels/cuda/stack/thread_block.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

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

class TokensOfBlock {
 protected:
  HEADLAB_DEVICE TokensOfBlock(const StackShape& s, const ThreadBlock& block, const StackRoom& room)
      : s_(s), block_(block), room_(room) {}

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

  const StackShape& s_;
  const ThreadBlock& block_;
  const StackRoom& room_;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
