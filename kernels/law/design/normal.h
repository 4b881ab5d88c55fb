// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "kernels/law/design/design.h"
#include "kernels/linear_algebra.h"

namespace headlab {

/// X ~ N(mean, S). S is the identity, a full matrix, or S_ij = ar1^|i-j|.
struct NormalDesign {
  static constexpr const char* name = "normal";
  static constexpr const char* summary = "X ~ N(mean, covariance), by default N(0, I)";
  static constexpr const char* equation = "X ~ N(mean, Σ)";
  static constexpr const char* example = "dim = 4";

  int dim = 1;
  std::vector<double> mean = {};                     ///< [d], empty: 0
  std::vector<std::vector<double>> covariance = {};  ///< [d][d], empty: I
  std::optional<double> ar1 = {};                    ///< correlation of neighbouring coordinates

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("dim", dim, within(1, 4096), "d");
    visit.optional("mean", mean, within(-1e6, 1e6), "[d], default 0");
    visit.optional("covariance", covariance, within(-1e6, 1e6), "[d][d], default I");
    visit.optional("ar1", ar1, inside(-1, 1), "covariance ar1^|i-j|");
  }

  int dimension() const { return dim; }

  void check() const {
    require_size("mean", mean.size(), dim);
    if (!covariance.empty()) {
      if (ar1) throw ParameterError("ar1", "cannot be given with covariance - give one of the two");
      require_covariance("covariance", covariance, dim);
    }
  }

  /// x = mean + L z, L the lower Cholesky factor of S.
  struct Sampler {
    static constexpr BaseDraw base = BaseDraw::normal;
    static constexpr bool chooses = false;
    int d = 0;
    bool standard = true;
    std::int64_t mean = 0;    ///< [d]
    std::int64_t factor = 0;  ///< [d][d]
    bool operator==(const Sampler&) const = default;

    template <class T>
    HEADLAB_HD std::uint32_t operator()(const float* table, std::uint32_t, T* x,
                                        std::ptrdiff_t stride) const {
      if (!standard) affine_in_place(table + mean, table + factor, d, x, stride);
      return 0;
    }
  };

  Sampler sampler(Table& table) const {
    Sampler s{.d = dim, .standard = mean.empty() && covariance.empty() && !ar1};
    if (s.standard) return s;
    s.mean = table.add(mean.empty() ? std::vector<double>(dim, 0.0) : mean);
    s.factor = table.add(!covariance.empty() ? cholesky(covariance)
                                             : cholesky(ar1_covariance(dim, ar1.value_or(0.0))));
    return s;
  }
};

}  // namespace headlab
