// SPDX-License-Identifier: Apache-2.0
/// \file Single replicates: histograms, and zip plots (Morris, White and Crowther 2019, Statistics
/// in Medicine 38:2074) of the intervals that groups of them give.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tools/report/figure.h"

namespace headlab::tools {

/// A figure of the replicates of a condition, at a query.
struct ReplicateSample {
  std::string title;
  std::vector<double> values;                               ///< in the order of the replicates
  double truth = std::numeric_limits<double>::quiet_NaN();  ///< NaN where the figure has none
};

/// A histogram for each sample, with its mean and the truth.
/// \param figure  in words
Picture histogram_picture(const std::string& figure, const std::vector<ReplicateSample>& samples);

/// Replicates of which the picture makes a group, of so many; 0 where there are too few.
std::size_t zip_group(std::size_t replicates);

/// 95 % intervals for the mean, each from a group of consecutive replicates, by the centile of |t|;
/// those that miss the mean of all replicates stand out. All samples are of zip_group() > 0.
Picture zip_picture(const std::string& figure, const std::vector<ReplicateSample>& samples);

}  // namespace headlab::tools
