// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/design_rounding.h"

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "engine/files/document.h"

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

}  // namespace headlab
