// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include <Eigen/Core>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_chi_squared.hpp>
#include <boost/math/tools/minima.hpp>

#include "kernels/decompositions.h"

namespace headlab {
namespace {

constexpr double min_exponent = -1, max_exponent = 2;

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
    if (!solver_.succeeded()) {
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
    return solve_semidefinite(weighted.transpose() * design, weighted.transpose() * y);
  }
  double misfit(const Eigen::MatrixXd& design, const Eigen::VectorXd& y) const {
    return square(y - design * fit(design, y));
  }

 private:
  Cholesky solver_;
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
               [&](double p) { return weighting_.misfit(power(p), y); }, min_exponent, max_exponent,
               bits)
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
  return std::numeric_limits<double>::quiet_NaN();
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

/// The best dimensions of all points, and of all resamples of their blocks.
struct Resampled {
  std::vector<BestDimension> best;  ///< [points]
  Eigen::MatrixXd values;           ///< [points][resamples]
};

/// The same blocks for every point: training sets at a smaller n are parts of those at a larger
/// one.
Resampled resampled(const std::vector<GrowthPoint>& points, std::size_t resamples,
                    std::mt19937_64& engine) {
  const std::size_t blocks = points.at(0).errors.at(0).size();
  std::vector<std::size_t> drawn(blocks);
  std::iota(drawn.begin(), drawn.end(), std::size_t{0});
  Resampled all{.best = {},
                .values = Eigen::MatrixXd(static_cast<Eigen::Index>(points.size()),
                                          static_cast<Eigen::Index>(resamples))};
  for (const GrowthPoint& point : points) {
    all.best.push_back(interpolated_best(point.dims, means(point, drawn)));
  }
  for (std::size_t r = 0; r < resamples; ++r) {
    for (std::size_t& block : drawn) block = ((engine() >> 32) * blocks) >> 32;
    for (std::size_t i = 0; i < points.size(); ++i) {
      all.values(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(r)) =
          interpolated_best(points[i].dims, means(points[i], drawn)).value;
    }
  }
  return all;
}

std::string trend_of(const Resampled& all) {
  const Eigen::VectorXd change =
      all.values.bottomRows(1).transpose() - all.values.topRows(1).transpose();
  const double few = 0.005 * static_cast<double>(change.size());
  if (static_cast<double>((change.array() <= 0).count()) <= few) return "rises";
  if (static_cast<double>((change.array() >= 0).count()) <= few) return "falls";
  return "none seen";
}

/// Of rows over columns.
Eigen::MatrixXd covariance_of(const Eigen::MatrixXd& sampled) {
  const Eigen::MatrixXd rest = sampled.colwise() - sampled.rowwise().mean();
  return rest * rest.transpose() / static_cast<double>(sampled.cols() - 1);
}

Eigen::MatrixXd with_interpolation(Eigen::MatrixXd covariance,
                                   const Eigen::VectorXd& interpolation) {
  covariance.diagonal() += interpolation.cwiseAbs2();
  return covariance;
}

/// Intervals of the slopes have to cover the interpolation as well.
Eigen::MatrixXd interpolated_anew(Eigen::MatrixXd sampled, const Eigen::VectorXd& interpolation,
                                  std::mt19937_64& engine) {
  std::normal_distribution<double> normal;
  for (Eigen::Index r = 0; r < sampled.cols(); ++r) {
    for (Eigen::Index i = 0; i < sampled.rows(); ++i) {
      sampled(i, r) += interpolation(i) * normal(engine);
    }
  }
  return sampled;
}

Eigen::VectorXd centred(const Eigen::VectorXd& x) {
  return x.array() - x.mean();
}

/// A law fitted to y [m], the interval of its slope from `sampled` [m][resamples].
GrowthFit fit_law(const Laws& laws, const std::string& name, const Eigen::VectorXd& y,
                  const Eigen::MatrixXd& sampled, double blocks) {
  GrowthFit fit = laws.fit(name, y);
  const double q = static_cast<double>(y.size()) - (fit.name == "constant" ? 1 : 2);
  fit.p_value = hotelling_tail(laws.misfit(fit, y), q, blocks - 1);
  fit.rejected = fit.p_value < growth_alpha;
  std::vector<double> slopes;
  for (Eigen::Index r = 0; r < sampled.cols(); ++r) {
    slopes.push_back(laws.fit(name, sampled.col(r)).slope);
  }
  std::sort(slopes.begin(), slopes.end());
  const std::size_t tail = slopes.size() / 40;
  fit.interval = {slopes[tail], slopes[slopes.size() - 1 - tail]};
  return fit;
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
  std::mt19937_64 engine(seed);
  const Resampled all = resampled(points, resamples, engine);
  growth.trend = trend_of(all);
  std::vector<Eigen::Index> inside;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (all.best[i].at_end) {
      growth.left_out.push_back(points[i].n);
      growth.ends.push_back(all.best[i].value);
      continue;
    }
    inside.push_back(static_cast<Eigen::Index>(i));
    growth.n.push_back(points[i].n);
    growth.best.push_back(all.best[i]);
  }
  const auto m = static_cast<Eigen::Index>(inside.size());
  const Eigen::MatrixXd sampled = all.values(inside, Eigen::all);
  Eigen::VectorXd y(m), x(m), interpolation(m);
  for (Eigen::Index i = 0; i < m; ++i) {
    const BestDimension& best = growth.best[static_cast<std::size_t>(i)];
    y(i) = best.value;
    x(i) = std::log10(growth.n[static_cast<std::size_t>(i)]);
    interpolation(i) = best.interpolation;
  }
  const Eigen::MatrixXd covariance = covariance_of(sampled);
  for (Eigen::Index i = 0; i < m; ++i) growth.errors.push_back(std::sqrt(covariance(i, i)));
  growth.smallest_exponent = std::numeric_limits<double>::quiet_NaN();
  if (m < 4) {
    growth.verdict = m == 0 ? "at an end of the range" : "too few n";
    return growth;
  }
  const Laws laws(centred(x), Weighting(with_interpolation(covariance, interpolation)));
  const Eigen::MatrixXd disturbed = interpolated_anew(sampled, interpolation, engine);
  const double blocks = static_cast<double>(points[0].errors[0].size());
  for (const char* name : {"constant", "log", "power"}) {
    growth.fits.push_back(fit_law(laws, name, y, disturbed, blocks));
  }
  growth.smallest_exponent =
      smallest_exponent(laws, growth.fits[2].level, static_cast<double>(m) - 2);
  growth.verdict = verdict_of(growth.fits);
  return growth;
}

HeadGrowth fit_head_growth(const std::vector<GrowthPoint>& points, const std::vector<int>& budgets,
                           std::uint64_t seed, std::size_t resamples) {
  HeadGrowth growth;
  std::mt19937_64 engine(seed);
  const Resampled all = resampled(points, resamples, engine);
  std::vector<Eigen::Index> inside;
  std::vector<double> log_budgets, log_heads, log_interpolations;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const BestDimension& best = all.best[i];
    if (best.at_end) {
      growth.left_out.push_back(budgets.at(i));
      continue;
    }
    inside.push_back(static_cast<Eigen::Index>(i));
    growth.budgets.push_back(budgets.at(i));
    growth.heads.push_back(budgets[i] / best.value);
    growth.interpolation.push_back(growth.heads.back() * best.interpolation / best.value);
    log_budgets.push_back(std::log10(budgets[i]));
    log_heads.push_back(std::log10(growth.heads.back()));
    log_interpolations.push_back(best.interpolation / best.value / std::log(10.0));
  }
  const auto m = static_cast<Eigen::Index>(inside.size());
  const Eigen::Map<const Eigen::VectorXd> x(log_budgets.data(), m), y(log_heads.data(), m),
      interpolation(log_interpolations.data(), m);
  Eigen::MatrixXd sampled = -(all.values(inside, Eigen::all).array().log10().matrix());
  sampled.colwise() += x;
  const Eigen::MatrixXd covariance = covariance_of(sampled);
  for (std::size_t i = 0; i < growth.heads.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    growth.errors.push_back(std::sqrt(covariance(at, at)) * growth.heads[i] * std::log(10.0));
  }
  if (m < 3) {
    growth.verdict = m == 0 ? "at an end of the range" : "too few D";
    return growth;
  }
  // On logarithms the power law is the log law, and the linear one the constant of H*/D.
  const Laws laws(centred(x), Weighting(with_interpolation(covariance, interpolation)));
  const Eigen::MatrixXd disturbed = interpolated_anew(sampled, interpolation, engine);
  const double blocks = static_cast<double>(points[0].errors[0].size());
  GrowthFit linear =
      fit_law(laws, "constant", y - centred(x), disturbed.colwise() - centred(x), blocks);
  linear.name = "linear";
  linear.slope = 1;
  linear.interval = {1, 1};
  GrowthFit power = fit_law(laws, "log", y, disturbed, blocks);
  power.name = "power";
  for (GrowthFit* fit : {&linear, &power}) fit->level = std::pow(10, fit->level);
  growth.fits = {linear, power};
  growth.verdict = !linear.rejected ? "linear" : !power.rejected ? "power" : "neither";
  return growth;
}

}  // namespace headlab
