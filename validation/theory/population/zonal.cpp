// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/population/zonal.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;

/// Orders from which Debye's expansion has double precision with the terms below.
constexpr double debye_order = 60;
/// Most terms of a series over degrees.
constexpr int max_degrees = 4096;
/// Terms smaller than this share of a series are left out.
constexpr double negligible_term = 1e-16;

/// log(exp(-z) I_order(z)) by Debye's uniform expansion (Abramowitz and Stegun 9.7.7).
double log_scaled_bessel(double order, double z) {
  const double hypotenuse = std::hypot(order, z);
  const double p = order / hypotenuse;
  const double p2 = p * p;
  const double u1 = p * (3 - 5 * p2) / 24;
  const double u2 = p2 * (81 + p2 * (-462 + 385 * p2)) / 1152;
  const double u3 = p * p2 * (30375 + p2 * (-369603 + p2 * (765765 - 425425 * p2))) / 414720;
  const double u4 =
      p2 * p2 *
      (4465125 + p2 * (-94121676 + p2 * (349922430 + p2 * (-446185740 + 185910725 * p2)))) /
      39813120;
  const double series = (((u4 / order + u3) / order + u2) / order + u1) / order;
  // sqrt(order^2 + z^2) - z, without a difference of large numbers.
  return order * order / (hypotenuse + z) + order * std::log(z / (order + hypotenuse)) -
         0.5 * std::log(2 * std::numbers::pi * hypotenuse) + std::log1p(series);
}

/// Degrees until terms built of ratios at their largest arguments are negligible.
int degrees_for(int k, double q, double largest, double z) {
  for (int degrees = 64; degrees < max_degrees; degrees *= 2) {
    const ArrayXd of_query = zonal_factors(k, degrees, q * largest).ratios;
    const ArrayXd steps =
        harmonic_ratios(k, degrees) * of_query.square() * zonal_factors(k, degrees, z).ratios;
    double term = 1, sum = 1;
    for (Index j = 0; j < degrees; ++j) {
      term *= steps(j);
      sum += term;
      if (steps(j) < 1 && term < negligible_term * sum) return static_cast<int>(j) + 1;
    }
  }
  return max_degrees;
}

MatrixXd gaussian_correlation(double length, int k, double q, const ArrayXd& radius) {
  const double largest = radius.maxCoeff();
  const int degrees = degrees_for(k, q, largest, largest * largest / (length * length));
  const ArrayXd harmonics = harmonic_ratios(k, degrees);
  Eigen::ArrayXXd of_query(degrees, radius.size());
  for (Index a = 0; a < radius.size(); ++a) {
    of_query.col(a) = zonal_factors(k, degrees, q * radius(a)).ratios;
  }
  MatrixXd mean(radius.size(), radius.size());
  for (Index a = 0; a < radius.size(); ++a) {
    const ArrayXd steps = harmonics * of_query.col(a);
    for (Index b = 0; b <= a; ++b) {
      const double apart = (radius(a) - radius(b)) / length;
      const double decay = -apart * apart / 2;
      if (decay < -60) {
        mean(a, b) = mean(b, a) = 0;
        continue;
      }
      const ZonalFactors both =
          zonal_factors(k, degrees, radius(a) * radius(b) / (length * length));
      double term = 1, sum = 1;
      for (Index j = 0; j < degrees; ++j) {
        const double step = steps(j) * of_query(j, b) * both.ratios(j);
        term *= step;
        sum += term;
        if (step < 1 && term < negligible_term * sum) break;
      }
      mean(a, b) = mean(b, a) = std::exp(decay + both.log_scaled + std::log(sum));
    }
  }
  return mean;
}

MatrixXd wave_correlation(double frequency, int k, double q, const ArrayXd& radius) {
  const double largest = radius.maxCoeff();
  const int degrees = static_cast<int>(frequency * largest * 1.5) + 40;
  MatrixXd table(radius.size(), degrees);
  for (Index a = 0; a < radius.size(); ++a) {
    const ArrayXd of_query = zonal_factors(k, degrees, q * radius(a)).ratios;
    const ArrayXd waves = zonal_waves(k, degrees, frequency * radius(a));
    double product = 1;
    for (Index j = 0; j < degrees; ++j) {
      table(a, j) = waves(j) * product;
      product *= of_query(j);
    }
  }
  return table * table.transpose();
}

}  // namespace

ZonalFactors zonal_factors(int k, int degrees, double z) {
  const double nu = 0.5 * k - 1;
  ZonalFactors factors = {.log_scaled = 0, .ratios = ArrayXd::Zero(degrees)};
  if (!(z > 0)) return factors;
  const int top = std::max(degrees, static_cast<int>(std::max(0.0, debye_order - nu)) + 1);
  const double order = nu + top;
  const double log_top = log_scaled_bessel(order, z);
  double ratio = std::exp(log_scaled_bessel(order + 1, z) - log_top);
  // I_{v-1} = I_{v+1} + (2v/z) I_v, downwards, where it is stable.
  double log_product = 0, product = 1;
  for (int j = top - 1; j >= 0; --j) {
    ratio = z / (2 * (nu + j + 1) + z * ratio);
    if (j < degrees) factors.ratios(j) = ratio;
    product *= ratio;
    if (product < 1e-200) {
      log_product += std::log(product);
      product = 1;
    }
  }
  log_product += std::log(product);
  factors.log_scaled = std::lgamma(nu + 1) + nu * std::log(2 / z) + log_top - log_product;
  return factors;
}

ArrayXd harmonic_ratios(int k, int degrees) {
  ArrayXd ratios(degrees);
  ratios(0) = k;
  for (int j = 1; j < degrees; ++j) {
    ratios(j) = (2.0 * j + k) * (j + k - 2.0) / ((2.0 * j + k - 2.0) * (j + 1.0));
  }
  return ratios;
}

ArrayXd zonal_waves(int k, int degrees, double x) {
  ArrayXd waves = ArrayXd::Zero(degrees);
  waves(0) = 1;
  if (!(x > 0)) return waves;
  // Miller's recurrence downwards for sqrt(d_j) J_{nu+j}, from an order where J is positive and
  // falls; sum_j d_j c_j^2 = 1, the correlation at distance 0, gives the scale.
  const int top = std::max(degrees, static_cast<int>(x + 12 * std::cbrt(x)) + 40);
  const double nu = 0.5 * k - 1;
  const ArrayXd roots = harmonic_ratios(k, top + 1).sqrt();
  const int last = k == 1 ? 1 : top;
  std::vector<double> values(static_cast<std::size_t>(top) + 2, 0.0);
  if (k == 1) {
    values[0] = std::cos(x);
    values[1] = std::sin(x);
  } else {
    values[static_cast<std::size_t>(last)] = 1e-150;
    for (int j = last; j > 0; --j) {
      const auto at = static_cast<std::size_t>(j);
      const double above = values[at + 1] / roots(j);
      values[at - 1] = (2 * (nu + j) / x * values[at] - above) / roots(j - 1);
      if (std::abs(values[at - 1]) > 1e100) {
        for (std::size_t i = at - 1; i <= static_cast<std::size_t>(last); ++i) values[i] *= 1e-100;
      }
    }
  }
  double square = 0;
  for (const double value : values) square += value * value;
  for (int j = 0; j < degrees; ++j) {
    waves(j) = values[static_cast<std::size_t>(j)] / std::sqrt(square);
  }
  return waves;
}

double noncentral_chi_density(int k, double q, double r) {
  const double half = 0.5 * k;
  return std::exp((k - 1) * std::log(r) - (r - q) * (r - q) / 2 +
                  zonal_factors(k, 1, r * q).log_scaled + (1 - half) * std::numbers::ln2 -
                  std::lgamma(half));
}

ArrayXd Correlation::operator()(int k, const ArrayXd& distance) const {
  if (kind == Kind::gaussian) return (-(distance / scale).square() / 2).exp();
  return distance.unaryExpr([&](double r) { return zonal_waves(k, 1, scale * r)(0); });
}

double Correlation::mean(int k) const {
  if (kind == Kind::gaussian) return std::pow(1 + 2 / (scale * scale), -0.5 * k);
  return std::exp(-scale * scale);
}

MatrixXd conditional_correlation(const Correlation& correlation, int k, double q,
                                 const ArrayXd& radius) {
  if (correlation.kind == Correlation::Kind::gaussian) {
    return gaussian_correlation(correlation.scale, k, q, radius);
  }
  return wave_correlation(correlation.scale, k, q, radius);
}

}  // namespace headlab
