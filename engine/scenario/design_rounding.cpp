// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/design_rounding.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "engine/files/document.h"
#include "engine/files/words.h"
#include "kernels/decompositions.h"
#include "kernels/laws.h"

namespace headlab {
namespace {

/// \param where "coordinate 0", or what else has this mean and sd
void require_near(const std::string& key, const std::string& where, double mean, double sd,
                  const DesignPrecision& precision, const std::string& advice) {
  if (!(sd > 0) || std::abs(mean) <= precision.max_mean_over_sd * sd) return;
  throw ParameterError(
      key, where + " has mean " + number_text(mean) + " and standard deviation " + number_text(sd) +
               ", a ratio of " + number_text(std::round(std::abs(mean) / sd)) + " (allowed: " +
               number_text(precision.max_mean_over_sd) + ", " + precision.name + ") - " + advice);
}

void require_normal(const std::string& key, const std::string& where,
                    const std::vector<double>& mean,
                    const std::vector<std::vector<double>>& covariance,
                    const DesignPrecision& precision) {
  for (std::size_t j = 0; j < mean.size(); ++j) {
    const double sd = covariance.empty() ? 1 : std::sqrt(covariance[j][j]);
    require_near(key, where + "coordinate " + std::to_string(j), mean[j], sd, precision,
                 "subtract the mean from the design and the queries");
  }
}

// Directions

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Products that the covariance of a file may cost, and the rows that it has in any case for each
/// column.
constexpr double max_products = 2e9;
constexpr std::size_t min_rows_of_column = 2;

/// The square of the largest ratio, of a root mean square in place of a mean. A coordinate at the
/// bound is allowed, and what is compared with it is rounded.
constexpr double max_squared_ratio =
    (drawn_points.max_mean_over_sd * drawn_points.max_mean_over_sd + 1) * (1 + 1e-9);

/// True where no direction has a larger ratio: S - D / max_squared_ratio is positive definite, S
/// the covariance and D the mean squares, both in some directions.
bool is_precise(const MatrixXd& covariance, const MatrixXd& sizes) {
  return Cholesky(covariance - sizes / max_squared_ratio).succeeded();
}

void find_if_everywhere(DesignSpread& spread) {
  spread.precise_everywhere =
      is_precise(spread.covariance, MatrixXd(spread.mean_square.asDiagonal()));
}

DesignSpread spread_of(std::string where, const std::vector<double>& mean, const Rows& covariance) {
  const auto d = static_cast<Index>(covariance.size());
  DesignSpread spread{
      .where = std::move(where), .mean_square = VectorXd(d), .covariance = MatrixXd(d, d)};
  for (Index i = 0; i < d; ++i) {
    const std::vector<double>& row = covariance[static_cast<std::size_t>(i)];
    for (Index j = 0; j < d; ++j) spread.covariance(i, j) = row[static_cast<std::size_t>(j)];
    const double centre = mean.empty() ? 0 : mean[static_cast<std::size_t>(i)];
    spread.mean_square(i) = centre * centre + spread.covariance(i, i);
  }
  find_if_everywhere(spread);
  return spread;
}

/// Of rows that are evenly spaced.
DesignSpread spread_of(const FileRows& rows) {
  const auto d = static_cast<Index>(rows.columns());
  const double within_cost = max_products / static_cast<double>(d * d);
  const std::size_t most =
      std::max(static_cast<std::size_t>(within_cost), min_rows_of_column * rows.columns());
  const std::size_t step = (rows.size() + most - 1) / most;
  const auto count = static_cast<Index>((rows.size() + step - 1) / step);
  MatrixXd points(d, count);
  for (Index i = 0; i < count; ++i) {
    const auto row = rows[static_cast<std::size_t>(i) * step];
    for (Index j = 0; j < d; ++j) {
      points(j, i) = static_cast<double>(row[static_cast<std::size_t>(j)]);
    }
  }
  const auto size = static_cast<double>(count);
  // Numbers of one size have 2^-46 / 12 of its square for their rounding in float32, and
  // eigenvalues one in float64.
  DesignSpread spread{.mean_square = points.rowwise().squaredNorm() / size,
                      .covariance = MatrixXd::Zero(d, d),
                      .no_variance = 0x1p-49 + static_cast<double>(d) * 0x1p-53};
  const VectorXd mean = points.rowwise().mean();
  points.colwise() -= mean;
  spread.covariance.selfadjointView<Eigen::Lower>().rankUpdate(points, 1 / size);
  spread.covariance.triangularView<Eigen::StrictlyUpper>() = spread.covariance.transpose();
  find_if_everywhere(spread);
  return spread;
}

/// Where the points vary the least for their size.
struct Direction {
  double root_mean_square;
  double sd;
};

/// The worst direction within `basis` [d][k] where it is not precise enough.
std::optional<Direction> imprecise(const DesignSpread& spread, const MatrixXd& basis) {
  if (basis.cols() == 0) return std::nullopt;
  const MatrixXd s = basis.transpose() * spread.covariance * basis;
  const MatrixXd size = basis.transpose() * spread.mean_square.asDiagonal() * basis;
  if (is_precise(s, size)) return std::nullopt;
  // The variance in units of the mean square. Directions in which every point is 0 are left out.
  const SymmetricEigen sizes = symmetric_eigen(size);
  const Index used = (sizes.values.array() > sizes.values.maxCoeff() * 1e-15).count();
  if (used == 0) return std::nullopt;
  const MatrixXd scaled = sizes.vectors.rightCols(used) *
                          sizes.values.tail(used).cwiseSqrt().cwiseInverse().asDiagonal();
  const SymmetricEigen shares = symmetric_eigen(scaled.transpose() * s * scaled);
  for (Index i = 0; i < shares.values.size(); ++i) {
    const double share = shares.values(i);
    if (spread.no_variance > 0 && share <= spread.no_variance) continue;
    if (share * max_squared_ratio >= 1) return std::nullopt;
    const VectorXd direction = (scaled * shares.vectors.col(i)).normalized();
    return Direction{.root_mean_square = std::sqrt(direction.dot(size * direction)),
                     .sd = std::sqrt(std::max(0.0, direction.dot(s * direction)))};
  }
  return std::nullopt;
}

std::string brief(double number) {
  return formatted("%.4g", number);
}

/// True where the bounds of the eigenvalues of an AR(1) covariance say so, whatever d is.
bool is_precise(const NormalDesign& design) {
  double largest = 1;
  for (const double mean : design.mean) largest = std::max(largest, mean * mean + 1);
  const double phi = std::abs(design.ar1.value_or(0));
  return largest <= max_squared_ratio * (1 - phi) / (1 + phi);
}

/// The parameter that makes coordinates of a design alike.
std::string key_of_spread(const DesignLaw& design) {
  if (const auto* normal = std::get_if<NormalDesign>(&design)) {
    return normal->covariance.empty() ? "ar1" : "covariance";
  }
  return std::holds_alternative<MixtureDesign>(design) ? "covariances" : "path";
}

}  // namespace

void require_precision(const DesignLaw& design, const DesignPrecision& precision) {
  if (const auto* normal = std::get_if<NormalDesign>(&design)) {
    require_normal("mean", "", normal->mean, normal->covariance, precision);
  } else if (const auto* mixture = std::get_if<MixtureDesign>(&design)) {
    for (std::size_t c = 0; c < mixture->means.size(); ++c) {
      require_normal("means", "component " + std::to_string(c) + ", ", mixture->means[c],
                     mixture->covariances.empty() ? std::vector<std::vector<double>>()
                                                  : mixture->covariances[c],
                     precision);
    }
  }
}

void require_column_precision(std::size_t column, double mean, double sd) {
  require_near("path", "column " + std::to_string(column), mean, sd, drawn_points,
               "write standardise = true, or subtract the mean in the file");
}

std::vector<DesignSpread> spreads_of(const DesignLaw& design) {
  std::vector<DesignSpread> spreads;
  if (const auto* normal = std::get_if<NormalDesign>(&design)) {
    if (!normal->covariance.empty()) {
      spreads.push_back(spread_of("", normal->mean, normal->covariance));
    } else if (normal->ar1 && !is_precise(*normal)) {
      spreads.push_back(
          spread_of("", normal->mean, ar1_covariance(normal->dimension(), *normal->ar1)));
    }
  } else if (const auto* mixture = std::get_if<MixtureDesign>(&design)) {
    for (std::size_t c = 0; c < mixture->covariances.size(); ++c) {
      spreads.push_back(spread_of("in component " + std::to_string(c) + ", ", mixture->means[c],
                                  mixture->covariances[c]));
    }
  } else if (const auto* file = std::get_if<FileDesign>(&design)) {
    spreads.push_back(spread_of(file->rows));
  }
  return spreads;
}

void require_head_precision(const DesignLaw& design, const std::vector<DesignSpread>& spreads,
                            const std::vector<MatrixXd>& bases) {
  for (const DesignSpread& spread : spreads) {
    if (spread.precise_everywhere) continue;
    const Index d = spread.mean_square.size();
    const auto reject_if = [&](const std::optional<Direction>& found, const std::string& head) {
      if (!found) return;
      throw ParameterError(
          key_of_spread(design),
          spread.where + head + " in which points have root mean square " +
              brief(found->root_mean_square) + " and standard deviation " + brief(found->sd) +
              ", a ratio of " + brief(found->root_mean_square / found->sd) + " (allowed: " +
              number_text(drawn_points.max_mean_over_sd) + ", " + drawn_points.name +
              ") - bring the means nearer to 0, or use coordinates that are less alike");
    };
    if (bases.empty()) {
      reject_if(imprecise(spread, MatrixXd::Identity(d, d)), "heads may see a direction");
    }
    for (std::size_t h = 0; h < bases.size(); ++h) {
      reject_if(imprecise(spread, bases[h]), "head " + std::to_string(h) + " sees a direction");
    }
  }
}

}  // namespace headlab
