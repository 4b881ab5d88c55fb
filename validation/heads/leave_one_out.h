// SPDX-License-Identifier: Apache-2.0
/// \file Each head as a predictor of what follows a token: the mean of what followed the keys that
/// it attends to, its own key left out. Exactly (Krogh and Vedelsby 1995)
///
///     |y - mean f_h|^2 = mean |y - f_h|^2 - mean |f_h - mean f|^2
#pragma once

#include <functional>
#include <vector>

#include "validation/heads/head_figures.h"

namespace headlab {

/// Sums over queries of some documents.
struct PredictionSums {
  double queries = 0;
  Eigen::MatrixXd errors;  ///< [H][H] sum (y - f_h).(y - f_l)
  double uniform = 0;      ///< squared error of equal weights on the keys that are seen

  PredictionSums() = default;
  explicit PredictionSums(std::size_t heads);
  /// A query: predictions of the heads, below them that of equal weights [H + 1][p], and the
  /// target.
  void add(const TokenRows& predictions, const Eigen::RowVectorXd& target);
  void add(const PredictionSums& other, double sign = 1);
};

/// Figures of sums by group of documents; groups 1, 3, .. are of documents 1, 3, .. in their order.
std::vector<HeadFigure> prediction_figures(const std::vector<PredictionSums>& groups, bool errors);

/// Of the targets of a layer, over queries from the ninth on. Throws InvalidInput, also Stopped.
std::vector<HeadFigure> leave_one_out_figures(const LayerActivations& layer, const LayerSums& sums,
                                              const HeadSetting& setting, int threads,
                                              const std::function<bool()>& stop);

}  // namespace headlab
