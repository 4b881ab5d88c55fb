// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/design_rounding.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "engine/files/document.h"

namespace headlab {
namespace {

/// \param where "coordinate 0", or what else has this mean and sd
void require_near(const std::string& key, const std::string& where, double mean, double sd,
                  const std::string& advice) {
  if (!(sd > 0) || std::abs(mean) <= max_mean_over_sd * sd) return;
  throw ParameterError(
      key, where + " has mean " + number_text(mean) + " and standard deviation " + number_text(sd) +
               ", a ratio of " + number_text(std::round(std::abs(mean) / sd)) +
               " (allowed: " + number_text(max_mean_over_sd) + ", points are float32) - " + advice);
}

void require_normal(const std::string& key, const std::string& where,
                    const std::vector<double>& mean,
                    const std::vector<std::vector<double>>& covariance) {
  for (std::size_t j = 0; j < mean.size(); ++j) {
    const double sd = covariance.empty() ? 1 : std::sqrt(covariance[j][j]);
    require_near(key, where + "coordinate " + std::to_string(j), mean[j], sd,
                 "subtract the mean from the design and the queries");
  }
}

void require_columns(const FileDesign& design) {
  const auto count = static_cast<double>(design.rows.size());
  for (std::size_t j = 0; j < design.rows.columns(); ++j) {
    // About the first row, so that nothing cancels.
    const double origin = design.rows[0][j];
    double shift = 0, square = 0;
    for (std::size_t i = 0; i < design.rows.size(); ++i) {
      shift += (design.rows[i][j] - origin) / count;
    }
    for (std::size_t i = 0; i < design.rows.size(); ++i) {
      square += std::pow(design.rows[i][j] - origin - shift, 2) / count;
    }
    require_near("path", "coordinate " + std::to_string(j), origin + shift, std::sqrt(square),
                 "try standardise = true, or subtract the mean in the file");
  }
}

}  // namespace

void require_float32_design(const DesignLaw& design) {
  if (const auto* normal = std::get_if<NormalDesign>(&design)) {
    require_normal("mean", "", normal->mean, normal->covariance);
  } else if (const auto* mixture = std::get_if<MixtureDesign>(&design)) {
    for (std::size_t c = 0; c < mixture->means.size(); ++c) {
      require_normal("means", "component " + std::to_string(c) + ", ", mixture->means[c],
                     mixture->covariances.empty() ? std::vector<std::vector<double>>()
                                                  : mixture->covariances[c]);
    }
  } else if (const auto* file = std::get_if<FileDesign>(&design)) {
    require_columns(*file);
  }
}

}  // namespace headlab
