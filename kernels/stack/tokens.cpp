// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/tokens.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr double step_error = 1e-13;

/// Numerator over denominator; 0 where both are.
double relative(double numerator, double denominator) {
  return numerator == 0 ? 0 : numerator / denominator;
}

/// A size in units of a scale that may have underflowed.
double in_units_of(double scale, double size) {
  return size == 0 ? 0 : size / scale;
}

}  // namespace

ScaledMatrix scaled_sum(std::span<const ScaledMatrix> terms) {
  ScaledMatrix sum{MatrixXd::Zero(terms[0].matrix.rows(), terms[0].matrix.cols()), minus_infinity};
  auto contributes = [](const ScaledMatrix& term) {
    return term.exponent > minus_infinity && !term.matrix.isZero(0);
  };
  for (const ScaledMatrix& term : terms) {
    if (contributes(term)) sum.exponent = std::max(sum.exponent, term.exponent);
  }
  for (const ScaledMatrix& term : terms) {
    if (contributes(term)) sum.matrix += std::exp(term.exponent - sum.exponent) * term.matrix;
  }
  return sum;
}

bool CentredTokens::collapsed() const {
  return exponent == minus_infinity;
}

double CentredTokens::scale() const {
  return std::exp(exponent);
}

CentredTokens centred(RowVectorXd mean, ScaledMatrix residual) {
  CentredTokens out;
  out.residual = std::move(residual.matrix);
  out.exponent = residual.exponent;
  if (out.count() > 0) {
    const RowVectorXd shift = out.residual.colwise().mean();
    out.residual.rowwise() -= shift;
    if (!out.collapsed()) mean += out.scale() * shift;
  }
  out.mean = std::move(mean);
  const double largest = out.residual.size() == 0 ? 0 : out.residual.cwiseAbs().maxCoeff();
  if (largest == 0) {
    out.exponent = minus_infinity;
    return out;
  }
  out.residual /= largest;
  out.exponent += std::log(largest);
  return out;
}

CentredTokens centred(const MatrixXd& x) {
  return centred(x.row(0), {x.rowwise() - x.row(0), 0});
}

MatrixXd plain(const CentredTokens& tokens) {
  return (tokens.scale() * tokens.residual).rowwise() + tokens.mean;
}

namespace {

/// Token by token, where the mean is small against the residual.
NormedTokens normed_plainly(const CentredTokens& x, const Eigen::VectorXd& rounding,
                            double epsilon) {
  // In units of e^sigma.
  const auto d = static_cast<double>(x.dim());
  const RowVectorXd mean = x.mean.unaryExpr([&](double m) { return in_units_of(x.scale(), m); });
  const MatrixXd tokens = x.residual.rowwise() + mean;
  const double floor = epsilon == 0 ? 0 : d * epsilon / (x.scale() * x.scale());
  MatrixXd y(x.count(), x.dim());
  NormedTokens out;
  double spread = 0;
  for (Index i = 0; i < x.count(); ++i) {
    const double size = tokens.row(i).norm();
    const bool zero = epsilon == 0 && size <= rounding(i);
    out.zeros += zero ? 1 : 0;
    const double factor = zero ? 0 : std::sqrt(d / (size * size + floor));
    y.row(i) = factor * tokens.row(i);
    spread = std::hypot(spread, factor * (mean.norm() + x.residual.row(i).norm()));
  }
  out.tokens = centred(y);
  const double error = std::max(x.mean_error, x.residual_error) * spread;
  out.tokens.mean_error =
      relative(error, std::sqrt(static_cast<double>(x.count())) * out.tokens.mean.norm());
  out.tokens.residual_error = relative(error, out.tokens.residual.norm() * out.tokens.scale());
  return out;
}

/// By the excess of a token's squared length over that of the mean.
/// \param mean_square |m|^2 + d epsilon
NormedTokens normed_by_excess(const CentredTokens& x, const Eigen::VectorXd& rounding,
                              double epsilon, double mean_square) {
  const auto d = static_cast<double>(x.dim());
  const double to_unit = std::sqrt(d / mean_square);
  const double scale = x.scale();
  NormedTokens out;
  MatrixXd residual(x.count(), x.dim());
  double summands = 0;
  for (Index i = 0; i < x.count(); ++i) {
    const RowVectorXd r = x.residual.row(i);
    const double excess = (2 * x.mean.dot(r) + scale * r.squaredNorm()) / mean_square;
    double factor = 0;  // 1 + e^sigma g
    double g = 0;
    if (scale * excess > -0.99) {
      g = scale < 1e-150 ? -excess / 2 : std::expm1(-std::log1p(scale * excess) / 2) / scale;
      factor = 1 + scale * g;
    } else {
      // The token is small: its squared length would lose digits as a
      // difference.
      const RowVectorXd token = x.mean + scale * r;
      const bool zero = epsilon == 0 && token.norm() <= scale * rounding(i);
      out.zeros += zero ? 1 : 0;
      factor = zero ? 0 : std::sqrt(mean_square / (token.squaredNorm() + d * epsilon));
      g = (factor - 1) / scale;
    }
    residual.row(i) = to_unit * (factor * r + g * x.mean);
    summands = std::hypot(summands, factor * r.norm(), g * x.mean.norm());
  }
  out.tokens = centred(to_unit * x.mean, {std::move(residual), x.exponent});
  out.tokens.mean_error = x.mean_error;
  out.tokens.residual_error =
      std::max(x.mean_error, x.residual_error) *
      relative(to_unit * summands,
               out.tokens.residual.norm() * std::exp(out.tokens.exponent - x.exponent));
  return out;
}

}  // namespace

NormedTokens normed(const CentredTokens& tokens, NormKind kind, double epsilon) {
  CentredTokens x = tokens;
  if (kind == NormKind::layer) {
    x.mean.array() -= x.mean.mean();
    x.residual.colwise() -= x.residual.rowwise().mean().eval();
    x.mean_error *= relative(tokens.mean.norm(), x.mean.norm());
    x.residual_error *= relative(tokens.residual.norm(), x.residual.norm());
  }
  constexpr double eps = 16 * 0x1p-52;
  const double floor = static_cast<double>(x.dim()) * epsilon;
  const double mean_square = x.mean.squaredNorm() + floor;
  NormedTokens out;
  if (x.collapsed()) {
    const bool zero = epsilon == 0 && x.mean.norm() <= eps * tokens.mean.norm();
    out.tokens = x;
    out.tokens.mean *= zero ? 0 : std::sqrt(static_cast<double>(x.dim()) / mean_square);
    out.zeros = zero ? static_cast<int>(x.count()) : 0;
  } else {
    // In units of e^sigma, which may be far below the smallest number.
    const Eigen::VectorXd rounding = eps * (tokens.residual.rowwise().norm().array() +
                                            in_units_of(x.scale(), tokens.mean.norm()));
    const double mean_size = in_units_of(x.scale(), std::sqrt(mean_square));
    const double largest = x.residual.rowwise().norm().maxCoeff();
    const bool small_mean = mean_square == 0 || mean_size <= 1e-3 * largest;
    out = small_mean ? normed_plainly(x, rounding, epsilon)
                     : normed_by_excess(x, rounding, epsilon, mean_square);
  }
  out.tokens.mean_error += step_error;
  out.tokens.residual_error += step_error;
  return out;
}

CentredTokens apply_norm(const TokenNorm& norm, const CentredTokens& tokens) {
  if (norm.kind == NormKind::none) return tokens;
  CentredTokens y = normed(tokens, norm.kind, norm.epsilon).tokens;
  if (norm.gain.size() > 0) {
    y.mean.array() *= norm.gain.array();
    y.residual.array().rowwise() *= norm.gain.array();
  }
  if (norm.bias.size() > 0) y.mean += norm.bias;
  if (norm.gain.size() == 0) return y;
  CentredTokens out = centred(y.mean, {y.residual, y.exponent});
  out.mean_error = y.mean_error;
  out.residual_error = y.residual_error;
  return out;
}

CentredTokens add_mlp(const Mlp& mlp, const CentredTokens& x, const CentredTokens& z) {
  const RowVectorXd at_mean = z.mean * mlp.input + mlp.bias;
  MatrixXd hidden = z.residual * mlp.input;
  const double scale = z.scale();
  for (Index j = 0; j < hidden.cols(); ++j) {
    const double u = at_mean(j);
    for (Index i = 0; i < hidden.rows(); ++i) {
      const double v = scale * hidden(i, j);
      if (u == 0) {
        hidden(i, j) = std::max(hidden(i, j), 0.0);
      } else if (u < 0 && u + v <= 0) {
        hidden(i, j) = 0;
      } else if (!(u > 0 && u + v > 0)) {
        hidden(i, j) = (std::max(u + v, 0.0) - std::max(u, 0.0)) / scale;
      }
    }
  }
  const RowVectorXd shift = at_mean.cwiseMax(0) * mlp.output;
  const ScaledMatrix branch{hidden * mlp.output, z.exponent};
  const std::array<ScaledMatrix, 2> terms = {ScaledMatrix{x.residual, x.exponent}, branch};
  CentredTokens out = centred(x.mean + shift, scaled_sum(terms));
  const double from_branch = std::max(z.mean_error, z.residual_error);
  out.mean_error =
      relative(x.mean_error * x.mean.norm() + from_branch * shift.norm(), out.mean.norm()) +
      step_error;
  double sizes = 0;
  if (!x.collapsed()) {
    sizes += x.residual_error * x.residual.norm() * std::exp(x.exponent - out.exponent);
  }
  if (!z.collapsed()) {
    sizes += from_branch * branch.matrix.norm() * std::exp(z.exponent - out.exponent);
  }
  out.residual_error = relative(out.collapsed() ? 0 : sizes, out.residual.norm()) + step_error;
  return out;
}

}  // namespace headlab
