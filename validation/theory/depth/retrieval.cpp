// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/retrieval.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <Eigen/Core>

#include "engine/files/error.h"
#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/exact/scalar_tables.h"

namespace headlab {
namespace {

void require_retrieval(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("retrieval: ") + message);
}

}  // namespace

Retrieval retrieval_self_weight(int patterns, double beta, double query_squared) {
  require_retrieval(patterns >= 1, "patterns must be at least 1");
  require_retrieval(std::isfinite(beta) && beta >= 0, "beta must be finite and not negative");
  require_retrieval(std::isfinite(query_squared) && query_squared >= 0,
                    "query_squared must be finite and not negative");
  if (patterns == 1) return {1, 0};
  const double rate = beta * std::sqrt(query_squared);
  if (rate == 0) return {1.0 / patterns, 0};

  constexpr Resolution resolution = {30, 25000};
  ScalarHead others;
  others.softmax = true;
  others.rate = rate;
  others.weights = {1};
  others.laws = {{0, 1}};
  const double count = patterns - 1;
  const SigmaRange range =
      sigma_range(others, static_cast<std::uint64_t>(patterns - 1), resolution);
  // Own kernel e^(beta q): it ends every integral where s times it is digits + 10.
  const double own_log = beta * query_squared;
  const double from = std::min(range.from, -resolution.digits - 7 - own_log);
  const double to = std::log(resolution.digits + 10) - own_log;
  const double knee = std::min(range.knee, -5 - own_log);
  const double unit = panel_width(resolution.digits);
  const Nodes sigma =
      panel_nodes(from, to, {knee}, [&](double at) { return at < knee ? 3 * unit : unit; });
  const DesignNodes design = noise_nodes(others, range, 1, resolution).at(0);
  const KernelTable table = kernel_table(design.level, sigma.points);

  // In d sigma = ds/s, with u = s e^(beta q).
  const Eigen::ArrayXd u = (sigma.points + own_log).exp();
  const Eigen::ArrayXd fall = (table.fall.transpose() * design.probability).array();
  const Eigen::ArrayXd first = (table.first.transpose() * design.probability).array();
  const Eigen::ArrayXd weight = sigma.weights * (-u).exp();
  Retrieval result;
  result.self_weight = (weight * u * power_of_phi(fall, count).col(0)).sum();
  const double rest = count * (weight * first * power_of_phi(fall, count - 1).col(0)).sum();
  result.normalisation_error = result.self_weight + rest - 1;
  require_normalisation(result.normalisation_error, "retrieval");
  return result;
}

}  // namespace headlab
