// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <vector>

#include "kernels/draws.h"
#include "kernels/law/design/student_t.h"
#include "kernels/law/regression/cosine_sum.h"
#include "kernels/philox.h"

namespace headlab {

/// One draw of a random function of variance 1: m(x) = sum_j sqrt(2/terms) cos(w_j.x + p_j), p_j
/// uniform on a circle. w_j = (1/length_scale) N(0, I) gives the squared-exponential covariance
/// exp(-|x-y|^2/(2 length_scale^2)); with `smoothness` v it is Student t with 2v degrees of
/// freedom, which gives the Matern covariance of that smoothness (Rahimi and Recht 2007).
struct RandomCosinesRegression {
  static constexpr const char* name = "random_cosines";
  static constexpr const char* summary =
      "sum_j sqrt(2/terms) cos(w_j.x + p_j), w_j drawn once: a random function of variance 1";
  static constexpr const char* equation =
      "m(x) = sum_{j = 1}^{terms} sqrt{2 / terms} cos(ν_j · x + φ_j)";
  static constexpr const char* example = "length_scale = 1";

  int terms = 64;
  double length_scale = 1;
  std::optional<double> smoothness =
      {};  ///< v of the Matern covariance, absent: squared exponential
  std::uint64_t seed = 0;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("terms", terms, within(1, 100000), "number of cosines, default 64");
    visit.required("length_scale", length_scale, within(1e-6, 1e6), "in units of the design");
    visit.optional("smoothness", smoothness, within(0.1, 1000),
                   "v of the Matern covariance, default the squared exponential");
    visit.optional("seed", seed, "of the function, default 0");
  }
  void check(int) const {}

  /// The largest |m(x)|.
  double bound() const { return std::sqrt(2.0 * terms); }

  CosineSum function(Table& table, int d) const {
    const int quads = quads_per_point(d);
    std::vector<std::vector<double>> frequency;
    std::vector<double> phase;
    for (int term = 0; term < terms; ++term) {
      std::vector<float> w(static_cast<std::size_t>(4 * quads));
      for (int quad = 0; quad < quads; ++quad) {
        const Words words = philox(seed, subsequence(Purpose::random_cosines, 0),
                                   static_cast<std::uint64_t>(term * quads + quad));
        for (int pair = 0; pair < 2; ++pair) {
          const NormalPair z = normal_pair(words.w[2 * pair], words.w[2 * pair + 1]);
          w[static_cast<std::size_t>(4 * quad + 2 * pair)] = z.first;
          w[static_cast<std::size_t>(4 * quad + 2 * pair + 1)] = z.second;
        }
      }
      if (smoothness) {
        StudentDesign::Sampler{.d = d, .df = static_cast<float>(2 * *smoothness)}(nullptr, 0,
                                                                                  w.data(), 1);
      }
      frequency.emplace_back(w.begin(), w.begin() + d);
      for (auto& u : frequency.back()) u /= length_scale;
      const Words words =
          philox(seed, subsequence(Purpose::random_cosines, 1), static_cast<std::uint64_t>(term));
      phase.push_back(2 * std::numbers::pi * uniform_open(words.w[0]));
    }
    return cosine_sum(table, std::vector<double>(frequency.size(), std::sqrt(2.0 / terms)),
                      frequency, phase);
  }
};

}  // namespace headlab
