// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/tokens.h"

#include <algorithm>
#include <cmath>

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

namespace {

using stack::in_units_of;
using stack::minus_infinity;
using stack::relative;
using stack::step_error;
using stack::token_rounding;

}  // namespace

double scaled_sum(double f, double p, const RowsView& a, double q, const RowsView& b, RowsOut out,
                  const StackArithmetic& arithmetic) {
  const double first = f == 0 || a.isZero(0) ? minus_infinity : p;
  const double second = b.isZero(0) ? minus_infinity : q;
  const stack::Sum at = stack::sum_at_larger(f, first, second);
  arithmetic.sum(at.first, a, at.second, b, out);
  return at.exponent;
}

bool CentredTokens::collapsed() const {
  return exponent == minus_infinity;
}

double CentredTokens::scale() const {
  return std::exp(exponent);
}

double CentredTokens::relative_rounding() const {
  const double size = mean.norm();
  return size == 0 ? 0 : mean_rounding / size;
}

void recentre(CentredTokens& tokens, const StackArithmetic& arithmetic) {
  RowVectorXd shift;
  const double largest = arithmetic.centre(tokens.residual, shift);
  if (!tokens.collapsed()) {
    tokens.mean += tokens.scale() * shift;
    tokens.mean_rounding += token_rounding * tokens.scale() * shift.norm();
  }
  tokens.exponent = largest == 0 ? minus_infinity : tokens.exponent + std::log(largest);
}

CentredTokens centred(const MatrixXd& x, const StackArithmetic& arithmetic) {
  CentredTokens out;
  out.mean = x.row(0);
  out.mean_rounding = token_rounding * out.mean.norm();
  out.residual = x.rowwise() - x.row(0);
  recentre(out, arithmetic);
  return out;
}

MatrixXd plain(const CentredTokens& tokens) {
  return (tokens.scale() * tokens.residual).rowwise() + tokens.mean;
}

void add(double factor, const CentredTokens& x, const RowsView& rest_and_mean, double exponent,
         const StackArithmetic& arithmetic, CentredTokens& out) {
  const Index n = x.count();
  out.mean = factor * x.mean + rest_and_mean.row(n);
  out.mean_rounding =
      token_rounding * (std::abs(factor) * x.mean.norm() + rest_and_mean.row(n).norm());
  out.residual.resize(n, x.dim());
  out.exponent = scaled_sum(factor, x.exponent, x.residual, exponent, rest_and_mean.topRows(n),
                            out.residual, arithmetic);
  recentre(out, arithmetic);
}

void bound_errors(double factor, const CentredTokens& x, const SummandSizes& y, double exponent,
                  CentredTokens& out) {
  factor = std::abs(factor);
  out.mean_error =
      relative(factor * x.mean_error * x.mean.norm() + y.mean, out.mean.norm()) + step_error;
  double sizes = 0;
  if (!x.collapsed()) {
    sizes += factor * x.residual_error * x.residual.norm() * std::exp(x.exponent - out.exponent);
  }
  if (y.rest > 0) sizes += y.rest * std::exp(exponent - out.exponent);
  out.residual_error = relative(out.collapsed() ? 0 : sizes, out.residual.norm()) + step_error;
}

namespace {

/// Of the tokens to be normed.
struct Lengths {
  VectorXd with_mean;          ///< [n], m.r_i
  VectorXd squares;            ///< [n], |r_i|^2
  const CentredTokens& given;  ///< before their features were centred

  /// Size of a mean that is rounding alone.
  double of_mean() const {
    return std::max(given.mean_rounding, token_rounding * given.mean.norm());
  }

  /// Size of a token that is rounding alone, in units of e^sigma, which may be far below the
  /// smallest number.
  double rounding(Index i) const {
    return token_rounding * given.residual.row(i).norm() + in_units_of(given.scale(), of_mean());
  }
};

/// Token by token, where the mean is small against the residual.
NormedTokens normed_plainly(const CentredTokens& x, const Lengths& of, double epsilon,
                            const StackArithmetic& arithmetic) {
  // In units of e^sigma.
  const auto d = static_cast<double>(x.dim());
  const RowVectorXd mean = x.mean.unaryExpr([&](double m) { return in_units_of(x.scale(), m); });
  const MatrixXd tokens = x.residual.rowwise() + mean;
  const double floor = epsilon == 0 ? 0 : d * epsilon / (x.scale() * x.scale());
  MatrixXd y(x.count(), x.dim());
  NormedTokens out;
  double spread = 0;
  double rounding = 0;
  for (Index i = 0; i < x.count(); ++i) {
    const double size = tokens.row(i).norm();
    const bool zero = epsilon == 0 && size <= of.rounding(i);
    out.zeros += zero ? 1 : 0;
    const double factor = zero ? 0 : std::sqrt(d / (size * size + floor));
    y.row(i) = factor * tokens.row(i);
    spread = std::hypot(spread, factor * (mean.norm() + std::sqrt(of.squares(i))));
    rounding += factor * of.rounding(i) / static_cast<double>(x.count());
  }
  out.tokens = centred(y, arithmetic);
  out.tokens.mean_rounding += rounding;
  const double error = std::max(x.mean_error, x.residual_error) * spread;
  out.tokens.mean_error =
      relative(error, std::sqrt(static_cast<double>(x.count())) * out.tokens.mean.norm());
  out.tokens.residual_error = relative(error, out.tokens.residual.norm() * out.tokens.scale());
  return out;
}

/// By the excess of a token's squared length over that of the mean.
/// \param mean_square |m|^2 + d epsilon
NormedTokens normed_by_excess(const CentredTokens& x, const Lengths& of, double epsilon,
                              double mean_square, const StackArithmetic& arithmetic) {
  const auto d = static_cast<double>(x.dim());
  const double to_unit = std::sqrt(d / mean_square);
  const double scale = x.scale();
  const double mean_part = x.mean.squaredNorm();
  NormedTokens out;
  VectorXd of_residual(x.count());  // factors of r_i and of m
  VectorXd of_mean(x.count());
  double summands = 0;
  for (Index i = 0; i < x.count(); ++i) {
    const double excess = (2 * of.with_mean(i) + scale * of.squares(i)) / mean_square;
    stack::NormFactors factors = {0, 0};
    if (stack::knows_length(scale, excess)) {
      factors = stack::factors_of_excess(scale, excess);
    } else {
      const RowVectorXd token = x.mean + scale * x.residual.row(i);
      const bool zero = epsilon == 0 && token.norm() <= scale * of.rounding(i);
      out.zeros += zero ? 1 : 0;
      const double factor = zero ? 0 : std::sqrt(mean_square / (token.squaredNorm() + d * epsilon));
      factors = {factor, (factor - 1) / scale};
    }
    const auto [f, g] = factors;
    of_residual(i) = to_unit * f;
    of_mean(i) = to_unit * g;
    summands += f * f * of.squares(i) + g * g * mean_part;
  }
  CentredTokens& y = out.tokens;
  y.mean = to_unit * x.mean;
  y.mean_rounding = to_unit * x.mean_rounding;
  y.exponent = x.exponent;
  y.residual.resize(x.count(), x.dim());
  arithmetic.combine(x.residual, of_residual, of_mean, x.mean, y.residual);
  recentre(y, arithmetic);
  y.mean_error = x.mean_error;
  y.residual_error = std::max(x.mean_error, x.residual_error) *
                     relative(to_unit * std::sqrt(summands),
                              y.residual.norm() * std::exp(y.exponent - x.exponent));
  return out;
}

NormedTokens normed_about(const CentredTokens& x, const CentredTokens& given, double epsilon,
                          const StackArithmetic& arithmetic) {
  const double mean_square = x.mean.squaredNorm() + static_cast<double>(x.dim()) * epsilon;
  Lengths of = {.with_mean = {}, .squares = {}, .given = given};
  if (x.collapsed()) {
    const bool zero = epsilon == 0 && x.mean.norm() <= of.of_mean();
    NormedTokens out = {.tokens = x, .zeros = zero ? static_cast<int>(x.count()) : 0};
    const double factor = zero ? 0 : std::sqrt(static_cast<double>(x.dim()) / mean_square);
    out.tokens.mean *= factor;
    out.tokens.mean_rounding *= factor;
    return out;
  }
  arithmetic.row_products(x.residual, x.mean, of.with_mean, of.squares);
  const double mean_size = in_units_of(x.scale(), std::sqrt(mean_square));
  const bool small_mean = mean_square == 0 || mean_size <= 1e-3 * std::sqrt(of.squares.maxCoeff());
  return small_mean ? normed_plainly(x, of, epsilon, arithmetic)
                    : normed_by_excess(x, of, epsilon, mean_square, arithmetic);
}

}  // namespace

NormedTokens normed(const CentredTokens& tokens, NormKind kind, double epsilon,
                    const StackArithmetic& arithmetic) {
  NormedTokens out;
  if (kind == NormKind::layer) {
    CentredTokens x = tokens;
    x.mean.array() -= x.mean.mean();
    x.residual.colwise() -= x.residual.rowwise().mean().eval();
    x.mean_error *= relative(tokens.mean.norm(), x.mean.norm());
    x.residual_error *= relative(tokens.residual.norm(), x.residual.norm());
    out = normed_about(x, tokens, epsilon, arithmetic);
  } else {
    out = normed_about(tokens, tokens, epsilon, arithmetic);
  }
  out.tokens.mean_error += step_error;
  out.tokens.residual_error += step_error;
  return out;
}

CentredTokens with_gain(const TokenNorm& norm, CentredTokens tokens,
                        const StackArithmetic& arithmetic) {
  if (norm.gain.size() > 0) {
    tokens.mean.array() *= norm.gain.array();
    tokens.mean_rounding *= norm.gain.cwiseAbs().maxCoeff();
    tokens.residual.array().rowwise() *= norm.gain.array();
    recentre(tokens, arithmetic);
  }
  if (norm.bias.size() > 0) {
    tokens.mean += norm.bias;
    tokens.mean_rounding += token_rounding * norm.bias.norm();
  }
  return tokens;
}

CentredTokens apply_norm(const TokenNorm& norm, const CentredTokens& tokens,
                         const StackArithmetic& arithmetic) {
  if (norm.kind == NormKind::none) return tokens;
  return with_gain(norm, normed(tokens, norm.kind, norm.epsilon, arithmetic).tokens, arithmetic);
}

CentredTokens add_mlp(const Mlp& mlp, const CentredTokens& x, const CentredTokens& z,
                      const StackArithmetic& arithmetic) {
  const Index n = x.count();
  const RowVectorXd of_mean = z.mean * mlp.input;
  const RowVectorXd at_mean = of_mean + mlp.bias;
  MatrixXd hidden = z.residual * mlp.input;
  const double scale = z.scale();
  for (Index j = 0; j < hidden.cols(); ++j) {
    for (Index i = 0; i < hidden.rows(); ++i) {
      hidden(i, j) = stack::relu_difference(at_mean(j), hidden(i, j), scale);
    }
  }
  RowMatrix branch(n + 1, x.dim());
  branch.topRows(n) = hidden * mlp.output;
  branch.row(n) = at_mean.cwiseMax(0) * mlp.output;
  CentredTokens out;
  add(1, x, branch, z.exponent, arithmetic, out);
  const RowVectorXd active = (at_mean.array() > 0).cast<double>();
  const RowVectorXd sizes = z.mean.cwiseAbs() * mlp.input.cwiseAbs() + mlp.bias.cwiseAbs();
  const RowVectorXd image = x.mean + of_mean.cwiseProduct(active) * mlp.output;
  out.mean_rounding += std::max(x.relative_rounding(), z.relative_rounding()) * image.norm() +
                       token_rounding * (sizes.cwiseProduct(active) * mlp.output.cwiseAbs()).norm();
  const double error = std::max(z.mean_error, z.residual_error);
  bound_errors(1, x, {error * branch.row(n).norm(), error * branch.topRows(n).norm()}, z.exponent,
               out);
  return out;
}

}  // namespace headlab
