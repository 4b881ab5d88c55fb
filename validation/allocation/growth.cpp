// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_chi_squared.hpp>
#include <boost/math/tools/minima.hpp>

namespace headlab {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double least_exponent = -1, most_exponent = 2;

/// Abscissa of the vertex of the parabola through three points, the middle one the lowest.
double vertex(double x0, double x1, double x2, double y0, double y1, double y2) {
  const double left = (y0 - y1) / (x1 - x0), right = (y2 - y1) / (x2 - x1);
  // Slopes of both sides at their middles; the parabola's is linear in between.
  if (!(left + right > 0)) return x1;
  const double m0 = (x0 + x1) / 2, m1 = (x1 + x2) / 2;
  return m0 + (m1 - m0) * left / (left + right);
}

/// Weighted least squares with covariance S.
class Weighting {
 public:
  explicit Weighting(const Eigen::MatrixXd& covariance) : solver_(covariance) {
    if (solver_.info() != Eigen::Success) {
      throw std::domain_error("the covariance of the best dimensions is singular");
    }
  }
  /// r^T S^-1 r.
  double square(const Eigen::VectorXd& residual) const {
    return residual.dot(solver_.solve(residual));
  }
  /// Coefficients of the columns of `design` that come nearest to y.
  Eigen::VectorXd fit(const Eigen::MatrixXd& design, const Eigen::VectorXd& y) const {
    const Eigen::MatrixXd weighted = solver_.solve(design);
    return (weighted.transpose() * design).ldlt().solve(weighted.transpose() * y);
  }
  double misfit(const Eigen::MatrixXd& design, const Eigen::VectorXd& y) const {
    return square(y - design * fit(design, y));
  }

 private:
  Eigen::LLT<Eigen::MatrixXd> solver_;
};

/// The laws over x = log10(n / n_0) [m].
class Laws {
 public:
  Laws(Eigen::VectorXd x, Weighting weighting)
      : x_(std::move(x)), weighting_(std::move(weighting)) {}

  Eigen::MatrixXd constant() const { return Eigen::MatrixXd::Ones(x_.size(), 1); }
  Eigen::MatrixXd log() const {
    Eigen::MatrixXd design = Eigen::MatrixXd::Ones(x_.size(), 2);
    design.col(1) = x_;
    return design;
  }
  Eigen::MatrixXd power(double exponent) const {
    return (x_ * (exponent * std::log(10.0))).array().exp().matrix();
  }
  double best_exponent(const Eigen::VectorXd& y) const {
    constexpr int bits = std::numeric_limits<double>::digits / 2;
    return boost::math::tools::brent_find_minima(
               [&](double p) { return weighting_.misfit(power(p), y); }, least_exponent,
               most_exponent, bits)
        .first;
  }
  const Weighting& weighting() const { return weighting_; }

  /// Level, slope and misfit of one law.
  GrowthFit fit(const std::string& name, const Eigen::VectorXd& y) const {
    GrowthFit one{.name = name};
    if (name == "power") one.slope = best_exponent(y);
    const Eigen::MatrixXd design = name == "constant" ? constant()
                                   : name == "log"    ? log()
                                                      : power(one.slope);
    const Eigen::VectorXd coefficients = weighting_.fit(design, y);
    one.level = coefficients(0);
    if (name == "log") one.slope = coefficients(1);
    return one;
  }
  double misfit(const GrowthFit& fit, const Eigen::VectorXd& y) const {
    if (fit.name == "constant") return weighting_.misfit(constant(), y);
    if (fit.name == "log") return weighting_.misfit(log(), y);
    return weighting_.misfit(power(fit.slope), y);
  }

 private:
  Eigen::VectorXd x_;
  Weighting weighting_;
};

/// P(T^2 > misfit) for `q` dimensions and a covariance on `df` degrees of freedom.
double hotelling_tail(double misfit, double q, double df) {
  const boost::math::fisher_f law(q, df - q + 1);
  return boost::math::cdf(boost::math::complement(law, misfit * (df - q + 1) / (df * q)));
}

/// The least exponent that is told from every log with a chance of 0.9; NaN for none up to 2.
double smallest_exponent(const Laws& laws, double level, double q) {
  const double critical =
      boost::math::quantile(boost::math::complement(boost::math::chi_squared(q), growth_alpha));
  const auto told = [&](double exponent) {
    const double misfit = laws.weighting().misfit(laws.log(), level * laws.power(exponent).col(0));
    if (!(misfit > 0)) return false;
    const boost::math::non_central_chi_squared law(q, misfit);
    return boost::math::cdf(boost::math::complement(law, critical)) >= 0.9;
  };
  // A grid as fine as it is read: the misfit need not grow all the way.
  for (int hundredth = 1; hundredth <= 200; ++hundredth) {
    if (told(hundredth / 100.0)) return hundredth / 100.0;
  }
  return nan;
}

std::string verdict_of(const std::vector<GrowthFit>& fits) {
  const bool constant = !fits[0].rejected, log = !fits[1].rejected, power = !fits[2].rejected;
  if (constant) return "constant";
  if (log && power) return "not distinguishable";
  return log ? "log" : power ? "power" : "none of these laws";
}

/// Means over the blocks listed [K].
std::vector<double> means(const GrowthPoint& point, const std::vector<std::size_t>& blocks) {
  std::vector<double> all;
  for (const std::vector<double>& errors : point.errors) {
    double sum = 0;
    for (const std::size_t b : blocks) sum += errors[b];
    all.push_back(sum / static_cast<double>(blocks.size()));
  }
  return all;
}

}  // namespace

BestDimension interpolated_best(const std::vector<int>& dims, const std::vector<double>& errors) {
  const auto least =
      static_cast<std::size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
  BestDimension best{.value = static_cast<double>(dims.at(least))};
  best.at_end = least == 0 || least + 1 == dims.size();
  if (best.at_end) return best;
  const double k0 = dims[least - 1], k1 = dims[least], k2 = dims[least + 1];
  const double y0 = errors[least - 1], y1 = errors[least], y2 = errors[least + 1];
  best.value = std::exp(vertex(std::log(k0), std::log(k1), std::log(k2), y0, y1, y2));
  best.interpolation = std::abs(best.value - vertex(k0, k1, k2, y0, y1, y2));
  return best;
}

Growth fit_growth(const std::vector<GrowthPoint>& points, std::uint64_t seed,
                  std::size_t resamples) {
  Growth growth;
  std::vector<const GrowthPoint*> inside;
  const std::size_t blocks = points.at(0).errors.at(0).size();
  std::vector<std::size_t> drawn(blocks);
  std::iota(drawn.begin(), drawn.end(), std::size_t{0});
  for (const GrowthPoint& point : points) {
    const BestDimension best = interpolated_best(point.dims, means(point, drawn));
    if (best.at_end) {
      growth.left_out.push_back(point.n);
      continue;
    }
    inside.push_back(&point);
    growth.n.push_back(point.n);
    growth.best.push_back(best);
  }
  const auto m = static_cast<Eigen::Index>(inside.size());

  // The same blocks for every n: training sets at a smaller n are parts of those at a larger one.
  Eigen::MatrixXd sampled(m, static_cast<Eigen::Index>(resamples));
  std::mt19937_64 engine(seed);
  for (std::size_t r = 0; r < resamples; ++r) {
    for (std::size_t& block : drawn) block = ((engine() >> 32) * blocks) >> 32;
    for (std::size_t i = 0; i < inside.size(); ++i) {
      sampled(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(r)) =
          interpolated_best(inside[i]->dims, means(*inside[i], drawn)).value;
    }
  }
  const Eigen::MatrixXd centred = sampled.colwise() - sampled.rowwise().mean();
  Eigen::MatrixXd covariance = centred * centred.transpose() / static_cast<double>(resamples - 1);
  Eigen::VectorXd y(m), x(m);
  for (Eigen::Index i = 0; i < m; ++i) {
    const BestDimension& best = growth.best[static_cast<std::size_t>(i)];
    growth.errors.push_back(std::sqrt(covariance(i, i)));
    covariance(i, i) += best.interpolation * best.interpolation;
    y(i) = best.value;
    x(i) = std::log10(growth.n[static_cast<std::size_t>(i)]);
  }
  growth.smallest_exponent = nan;
  if (m < 4) {
    growth.verdict = m == 0 ? "at an end of the range" : "too few n";
    return growth;
  }
  x.array() -= x.mean();

  // Intervals of the slopes have to cover the interpolation as well.
  std::normal_distribution<double> normal;
  for (Eigen::Index r = 0; r < sampled.cols(); ++r) {
    for (Eigen::Index i = 0; i < m; ++i) {
      sampled(i, r) += growth.best[static_cast<std::size_t>(i)].interpolation * normal(engine);
    }
  }

  const Laws laws(x, Weighting(covariance));
  const double df = static_cast<double>(blocks) - 1;
  for (const char* name : {"constant", "log", "power"}) {
    GrowthFit fit = laws.fit(name, y);
    const double q = static_cast<double>(m) - (fit.name == "constant" ? 1 : 2);
    fit.p_value = hotelling_tail(laws.misfit(fit, y), q, df);
    fit.rejected = fit.p_value < growth_alpha;
    std::vector<double> slopes;
    for (Eigen::Index r = 0; r < sampled.cols(); ++r) {
      slopes.push_back(laws.fit(name, sampled.col(r)).slope);
    }
    std::sort(slopes.begin(), slopes.end());
    const std::size_t tail = slopes.size() / 40;
    fit.interval = {slopes[tail], slopes[slopes.size() - 1 - tail]};
    growth.fits.push_back(fit);
  }
  growth.smallest_exponent =
      smallest_exponent(laws, growth.fits[2].level, static_cast<double>(m) - 2);
  growth.verdict = verdict_of(growth.fits);
  return growth;
}

}  // namespace headlab
