// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/contraction_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/files/error.h"

namespace headlab {
namespace {

void require_bound(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("bounds on the diameter: ") + message);
}

bool is_size(double x) {
  return std::isfinite(x) && x >= 0;
}

void require_start(double diameter, int layers) {
  require_bound(is_size(diameter), "the diameter must be finite and not negative");
  require_bound(layers >= 0, "layers must not be negative");
}

/// log(e^a + e^b).
double log_sum(double a, double b) {
  const double larger = std::max(a, b);
  if (std::isinf(larger)) return larger;
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

double log_tanh(double log_x) {
  // tanh x = x to the last digit.
  return log_x < -20 ? log_x : std::log(std::tanh(std::exp(log_x)));
}

}  // namespace

double contraction_constant(std::span<const HeadNorms> heads, double branch, double temperature) {
  require_bound(std::isfinite(branch), "branch must be finite");
  require_bound(std::isfinite(temperature) && temperature > 0,
                "temperature must be finite and positive");
  double sum = 0;
  for (const HeadNorms& head : heads) {
    require_bound(is_size(head.query_key) && is_size(head.value),
                  "norms must be finite and not negative");
    sum += head.query_key * head.value;
  }
  return std::abs(branch) * sum / (4 * temperature);
}

std::vector<double> log_diameter_upper_bounds(double constant, double diameter, int layers) {
  require_start(diameter, layers);
  require_bound(is_size(constant), "the constant must be finite and not negative");
  const double log_start = std::log(diameter);
  const double half = std::log(constant) / 2;
  std::vector<double> bounds = {log_start};
  double power = 1;
  for (int l = 1; l <= layers; ++l) {
    power *= 3;
    const double excess = half + log_start;
    if (std::isinf(excess)) {
      bounds.push_back(-std::numeric_limits<double>::infinity());
    } else {
      bounds.push_back(excess == 0 ? -half : power * excess - half);
    }
  }
  return bounds;
}

std::vector<double> log_diameter_upper_bounds(const RememberingHead& head, double diameter,
                                              int layers) {
  require_start(diameter, layers);
  require_bound(head.memory >= 0 && head.memory <= 1, "memory must be in [0, 1]");
  // Four times c of this head, without its value map.
  const HeadNorms scores = {head.norms.query_key, 1};
  const double log_scores = std::log(4 * contraction_constant({&scores, 1}, 1, head.temperature));
  require_bound(is_size(head.norms.value) && std::isfinite(head.branch),
                "norms must be finite and not negative");
  const double log_value = std::log(std::abs(head.branch) * head.norms.value);
  std::vector<double> bounds = {std::log(diameter)};
  double log_spread = 0;
  for (int l = 1; l <= layers; ++l) {
    const double now = log_scores + 2 * bounds.back();
    log_spread =
        l == 1 ? now : log_sum(std::log(head.memory) + log_spread, std::log1p(-head.memory) + now);
    const double next = log_value + log_tanh(log_spread - std::log(4.0)) + bounds.back();
    bounds.push_back(next);
  }
  return bounds;
}

}  // namespace headlab
