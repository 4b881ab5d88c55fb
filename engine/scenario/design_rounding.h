// SPDX-License-Identifier: Apache-2.0
/// \file Whether the numbers in use can hold the points of a design.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <Eigen/Core>

namespace headlab {

struct DesignLaw;

/// A type of numbers and the standard deviations that the mean of a coordinate may lie away from 0
/// in it.
struct DesignPrecision {
  const char* name;
  double max_mean_over_sd;
};

/// Of points that are drawn. Near the mean they are rounded by up to 2^-24 |mean|, which at this
/// distance is 2^-10 of the standard deviation.
inline constexpr DesignPrecision drawn_points = {"points are float32", 0x1p14};

/// Of closed forms, which no standard error hides: 2^-20 of the standard deviation.
inline constexpr DesignPrecision closed_forms = {"closed forms are float64", 0x1p33};

/// Throws ParameterError, with the coordinate and its ratio, where the mean of a coordinate that
/// varies is too far from 0: of normal designs and of each component of a mixture. Other laws are
/// centred at 0, except data files.
void require_precision(const DesignLaw& design, const DesignPrecision& precision);

/// The same for a column of a data file, whose rows are drawn.
void require_column_precision(std::size_t column, double mean, double sd);

/// Second moments of a design, or of a component of one: in a direction u points have variance
/// u' covariance u, and rounding one that is proportional to u' diag(mean_square) u.
struct DesignSpread {
  std::string where = {};       ///< "component 0, ", or empty
  Eigen::VectorXd mean_square;  ///< [d], E x_j^2
  Eigen::MatrixXd covariance;   ///< [d][d]
  /// A share of the mean square up to which the variance is 0, as that of a column that does not
  /// vary is.
  double no_variance = 0;
  bool precise_everywhere = false;  ///< whatever a head sees
};

/// Those of designs whose coordinates are correlated; of the others require_precision() says all.
/// Of a data file from at most a few thousand rows where it has many columns.
std::vector<DesignSpread> spreads_of(const DesignLaw& design);

/// Throws ParameterError where a head sees a direction in which rounding of the points counts for
/// more, relative to their standard deviation, than require_precision() allows in a coordinate.
/// \param bases orthonormal, of the subspaces of the heads [H] of d x k; empty: any direction
void require_head_precision(const DesignLaw& design, const std::vector<DesignSpread>& spreads,
                            const std::vector<Eigen::MatrixXd>& bases);

}  // namespace headlab
