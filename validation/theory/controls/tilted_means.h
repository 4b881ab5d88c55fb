// SPDX-License-Identifier: Apache-2.0
/// \file What the closed forms of both kernels take from products of two kernel values.
#pragma once

#include <cstddef>
#include <vector>

#include "validation/theory/controls/point_means.h"
#include "validation/theory/first_order/tilted_design.h"

namespace headlab {

/// Expectations without exponentials, by validation/theory/first_order/tilted_design.h.
class TiltedMeans : public PointMeans {
 public:
  explicit TiltedMeans(const TheoryModel& model);

  void set_query(std::size_t q) override { query_ = q; }
  double log_kernel(std::size_t h) const override { return head(h).log_mass; }
  double estimate(std::size_t h) const override { return head(h).regression.mean; }
  double noise(std::size_t h, std::size_t l) const override;
  double product(std::size_t h, std::size_t l) const override;

 protected:
  const TheoryModel& model() const { return model_; }
  std::size_t query() const { return query_; }

 private:
  const TiltedMoments& head(std::size_t h) const { return heads_[h][query_]; }
  const TiltedMoments& pair(std::size_t h, std::size_t l) const;
  /// E[K_h K_l]/(D_h D_l).
  double ratio(std::size_t h, std::size_t l) const;

  const TheoryModel& model_;
  std::size_t query_ = 0;
  std::vector<std::vector<TiltedMoments>> heads_;  ///< [H][Q]
  std::vector<std::vector<TiltedMoments>> pairs_;  ///< [H][H] of [Q], h <= l
};

}  // namespace headlab
