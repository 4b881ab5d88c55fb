// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/control_fit.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Core>

#include "kernels/decompositions.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// 99 % quantile of the standard normal law.
constexpr double quantile_99 = 2.3263478740408408;
/// Controls whose correlation is nearer to 1 than the square of this are one control.
constexpr double rank_threshold = 1e-5;

ArrayXd centred(const ArrayXd& x) {
  return x - x.mean();
}

/// Least standard deviation of a control, in scales and in errors of its mean.
constexpr double min_spread = 1e-5, min_errors = 1e3;
/// Largest |mean| in the pilot of what is subtracted, in standard errors: what is further off has
/// much of its mean in replicates so rare that the pilot has none, and coefficients that do not
/// know them.
constexpr double max_mean_errors = 3.5;

/// True where a control varies by more than rounding, and no more wildly than its mean can bear.
bool is_usable(const ControlSample& control) {
  const ArrayXd x =
      Eigen::Map<const ArrayXd>(control.numbers.data(), static_cast<Index>(control.numbers.size()));
  if (!x.allFinite()) return false;
  const ArrayXd squares = centred(x).square();
  const double variance = squares.mean();
  // An error that is not known, NaN, does not pass.
  if (!(variance > 0 && std::sqrt(variance) >= min_spread * control.scale &&
        std::sqrt(variance) >= min_errors * control.error)) {
    return false;
  }
  return squares.square().mean() <= control.max_kurtosis * variance * variance;
}

/// True where numbers of mean 0 have one that is no further from it than chance takes it.
/// \param error bound of that of their exact mean
bool shows_mean(const ArrayXd& numbers, double error) {
  const double sd = std::sqrt(centred(numbers).square().mean());
  return std::abs(numbers.mean()) <=
         max_mean_errors * sd / std::sqrt(static_cast<double>(numbers.size())) + error;
}

/// Least squares, on rows [from, from + size) of controls [N][C], about their means there.
VectorXd fitted_coefficients(const ArrayXd& y, const MatrixXd& controls, Index from, Index size) {
  MatrixXd x = controls.middleRows(from, size);
  x.rowwise() -= x.colwise().mean().eval();
  const VectorXd scale = x.colwise().norm().cwiseMax(1e-300).cwiseInverse();
  return scale.cwiseProduct(shortest_solution(
      x * scale.asDiagonal(), centred(y.segment(from, size)).matrix(), rank_threshold));
}

/// True where the coefficients divide the variance of y on the rows by more than
/// min_control_gain: by the delta method for the logarithm of a ratio of two means.
bool pays(const ArrayXd& y, const MatrixXd& controls, const VectorXd& coefficients,
          double max_rest_kurtosis, Index from, Index size) {
  const ArrayXd before = centred(y.segment(from, size)).square();
  const ArrayXd after =
      centred(y.segment(from, size) - (controls.middleRows(from, size) * coefficients).array())
          .square();
  if (!(before.mean() > 0) || !after.allFinite()) return false;
  // Without any variance left the gain has no bound.
  if (after.mean() == 0) return true;
  // What is left may be too wild for a standard error, where rare replicates make all of it.
  const auto kurtosis = [](const ArrayXd& squares) {
    return squares.square().mean() / (squares.mean() * squares.mean());
  };
  if (kurtosis(after) > std::max(max_rest_kurtosis, kurtosis(before))) return false;
  const ArrayXd influence = before / before.mean() - after / after.mean();
  const double error = std::sqrt(influence.square().mean() / static_cast<double>(size));
  return std::log(before.mean() / after.mean()) - quantile_99 * error > std::log(min_control_gain);
}

}  // namespace

std::vector<double> fit_controls(std::span<const double> y, std::span<const ControlSample> controls,
                                 double max_rest_kurtosis,
                                 std::span<const std::vector<std::size_t>> choices) {
  const auto size = static_cast<Index>(y.size());
  const ArrayXd target = Eigen::Map<const ArrayXd>(y.data(), size);
  std::vector<double> coefficients(controls.size(), 0.0);
  if (size < 4 || !target.allFinite()) return coefficients;
  std::vector<bool> usable;
  for (const ControlSample& control : controls) usable.push_back(is_usable(control));
  const Index half = size / 2;
  std::vector<std::vector<std::size_t>> tried;
  for (const std::vector<std::size_t>& choice : choices) {
    std::vector<std::size_t> used;
    for (const std::size_t c : choice) {
      if (usable[c]) used.push_back(c);
    }
    if (used.empty() || std::ranges::find(tried, used) != tried.end()) continue;
    tried.push_back(used);
    MatrixXd x(size, static_cast<Index>(used.size()));
    for (std::size_t i = 0; i < used.size(); ++i) {
      x.col(static_cast<Index>(i)) =
          Eigen::Map<const VectorXd>(controls[used[i]].numbers.data(), size);
    }
    if (!pays(target, x, fitted_coefficients(target, x, 0, half), max_rest_kurtosis, half,
              size - half) ||
        !pays(target, x, fitted_coefficients(target, x, half, size - half), max_rest_kurtosis, 0,
              half)) {
      continue;
    }
    const VectorXd all = fitted_coefficients(target, x, 0, size);
    double error = 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
      error += std::abs(all(static_cast<Index>(i))) * controls[used[i]].error;
    }
    if (!shows_mean((x * all).array(), error)) continue;
    for (std::size_t i = 0; i < used.size(); ++i) {
      coefficients[used[i]] = all(static_cast<Index>(i));
    }
    break;
  }
  return coefficients;
}

Spread spread_of(std::span<const double> numbers) {
  const ArrayXd x =
      centred(Eigen::Map<const ArrayXd>(numbers.data(), static_cast<Index>(numbers.size())));
  const double variance = x.square().mean();
  if (!(variance > 0)) return {};
  return {std::sqrt(variance), x.cube().mean() / (variance * std::sqrt(variance))};
}

}  // namespace headlab
