// SPDX-License-Identifier: Apache-2.0
/// \file The output of a layer without some heads, when the output maps of the others and a
/// constant are fitted again by least squares.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "validation/heads/layer_sums.h"

namespace headlab {

/// Whether so many tokens do for a refit.
bool can_refit(const LayerActivations& layer, const HeadSetting& setting, std::size_t tokens);

/// Why there is no refit, with the numbers; empty where there is one.
std::string no_refit(const LayerActivations& layer, const LayerSums& sums,
                     const HeadSetting& setting);

/// Fits on the documents of each fold, without one head at a time, and adds the squared errors on
/// those of the other fold to `held_out` of their groups.
void add_held_out(const LayerActivations& layer, const HeadSetting& setting, LayerSums& sums,
                  int threads, const std::function<bool()>& stop);

/// The error of the same in the tokens that were fitted to, which is too small [H].
Eigen::VectorXd refit_errors_in_sample(const LayerActivations& layer, const LayerSums& sums,
                                       const HeadSetting& setting);

/// What plans of removal need of a layer.
struct RemovalMoments {
  double tokens = 0;
  double stream = std::numeric_limits<double>::quiet_NaN();  ///< mean square of the stream
  Eigen::VectorXd mean;                                      ///< [H e] of z
  Eigen::MatrixXd squares;                                   ///< [H e][H e] mean z z^T
  Eigen::MatrixXd losses;       ///< [B][H] u: gradient times z less its mean; or empty
  Eigen::VectorXd sensitivity;  ///< [H] mean size of the gradient by a factor of the head
};
RemovalMoments removal_moments(const LayerActivations& layer, const HeadSetting& setting,
                               int threads, const std::function<bool()>& stop);

/// Mean squared error without all of `heads`, on the fold not fitted to.
double refit_error_of(const LayerActivations& layer, const LayerSums& sums,
                      const HeadSetting& setting, const std::vector<std::size_t>& heads);

}  // namespace headlab
