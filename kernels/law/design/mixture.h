// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/counted.h"
#include "kernels/law/design/design.h"
#include "kernels/linear_algebra.h"

namespace headlab {

/// X ~ sum_c weights_c N(means_c, covariances_c).
struct MixtureDesign {
  static constexpr const char* name = "mixture";
  static constexpr const char* summary = "X ~ sum_c weights_c N(means_c, covariances_c)";
  static constexpr const char* equation = "X ~ sum_c weights_c N(means_c, covariances_c)";
  static constexpr const char* example =
      "weights = [0.5, 0.5], means = [[0, 0, 0, 0], [1, 1, 1, 1]]";

  std::vector<double> weights = {};                                ///< [c], sum 1
  std::vector<std::vector<double>> means = {};                     ///< [c][d]
  std::vector<std::vector<std::vector<double>>> covariances = {};  ///< [c][d][d], empty: I

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("weights", weights, within(0, 1), "[c], sum 1");
    visit.required("means", means, within(-1e6, 1e6), "[c][d]");
    visit.optional("covariances", covariances, within(-1e6, 1e6), "[c][d][d], default I");
  }

  int dimension() const { return means.empty() ? 0 : static_cast<int>(means[0].size()); }

  void check() const {
    const auto count = static_cast<int>(weights.size());
    if (count == 0) throw ParameterError("weights", "is empty, needs one weight a component");
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (!(std::abs(sum - 1) <= 1e-9)) {
      throw ParameterError("weights", "sum to " + std::to_string(sum) + ", must sum to 1");
    }
    if (static_cast<int>(means.size()) != count) {
      throw ParameterError("means", "has " + counted(means.size(), "row") + ", needs " +
                                        std::to_string(count) + ", one a weight");
    }
    if (dimension() == 0) throw ParameterError("means", "rows are empty");
    for (const auto& mean : means) {
      if (mean.size() != means[0].size()) {
        throw ParameterError("means", "rows differ in length");
      }
    }
    require_size("covariances", covariances.size(), count);
    for (const auto& covariance : covariances) {
      require_covariance("covariances", covariance, dimension());
    }
  }

  /// x = mean_c + L_c z with the component c chosen by one more random integer.
  struct Sampler {
    static constexpr BaseDraw base = BaseDraw::normal;
    static constexpr bool chooses = true;
    int d = 0;
    int components = 0;
    std::int64_t cumulative = 0;  ///< [c]
    std::int64_t means = 0;       ///< [c][d]
    std::int64_t factors = 0;     ///< [c][d][d]
    bool operator==(const Sampler&) const = default;

    HEADLAB_HD std::uint32_t operator()(const float* table, std::uint32_t word, float* x,
                                        std::ptrdiff_t stride) const {
      const std::int64_t c = categorical(word, table + cumulative, components);
      affine_in_place(table + means + c * d, table + factors + c * d * d, d, x, stride);
      return 0;
    }
  };

  Sampler sampler(Table& table) const {
    Sampler s{.d = dimension(), .components = static_cast<int>(weights.size())};
    std::vector<double> cumulative(weights.size());
    std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
    cumulative.back() = 1;
    s.cumulative = table.add(cumulative);
    s.means = table.add(means);
    Rows factors;
    for (std::size_t c = 0; c < weights.size(); ++c) {
      const Rows factor =
          cholesky(covariances.empty() ? ar1_covariance(dimension(), 0.0) : covariances[c]);
      factors.insert(factors.end(), factor.begin(), factor.end());
    }
    s.factors = table.add(factors);
    return s;
  }
};

}  // namespace headlab
