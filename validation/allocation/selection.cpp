// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/selection.h"

#include <algorithm>

#include "validation/allocation/block_runs.h"
#include "validation/statistics/intervals.h"

namespace headlab {

std::vector<std::uint64_t> selection_looks(std::uint64_t replicates) {
  std::vector<std::uint64_t> looks;
  for (const std::uint64_t part : {64, 16, 4, 1}) {
    const std::uint64_t at_least = std::max(min_selection_look, replicates / part);
    const std::uint64_t look =
        (at_least + block_replicates - 1) / block_replicates * block_replicates;
    if (looks.empty() || look > looks.back()) looks.push_back(look);
  }
  return looks;
}

double comparison_level(double alpha, std::size_t candidates, std::size_t looks) {
  const std::size_t rivals = std::max<std::size_t>(candidates, 2) - 1;
  return alpha / static_cast<double>(looks * rivals);
}

Screening screen(std::span<const Jackknifed> errors, std::span<const double> node_counts,
                 double level, double zone) {
  const std::size_t count = errors.size();
  const double t = student_quantile(1 - level, static_cast<double>(node_counts.size()) - 1);
  const auto half_width = [&](std::size_t i, std::size_t j) {
    return t * (errors[i] - errors[j]).figure(node_counts).mcse;
  };
  Screening result;
  result.kept.assign(count, true);
  for (std::size_t i = 0; i < count; ++i) {
    if (errors[i].value < errors[result.least].value) result.least = i;
    for (std::size_t j = 0; j < count && result.kept[i]; ++j) {
      const double difference = errors[i].value - errors[j].value;
      if (difference > 0 && difference > half_width(i, j)) result.kept[i] = false;
    }
  }
  const std::size_t c = result.least;
  const double scale = errors[c].value;
  for (std::size_t j = 0; j < count; ++j) {
    if (j == c || !result.kept[j]) continue;
    const double width = half_width(c, j);
    const double lead = errors[j].value - scale;
    if (width > lead) result.largest_loss = std::max(result.largest_loss, (width - lead) / scale);
    // Either bound closes once the half width has fallen to the zone and the lead together.
    const double room = zone * scale + lead;
    const double ratio = width > 0 ? width / room : 0;
    result.growth = std::max(result.growth, ratio * ratio);
  }
  return result;
}

}  // namespace headlab
