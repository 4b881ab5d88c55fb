// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/training_set.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <variant>

#include "kernels/design_point.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab {

namespace {

/// Draws design points in their order.
class PointDraws {
 public:
  PointDraws(const Plan& plan, std::uint64_t replicate)
      : plan_(plan),
        seed_(plan.fixed_design_seed.value_or(plan.seed)),
        replicate_(plan.fixed_design_seed ? 0 : replicate),
        size_(static_cast<std::size_t>(point_buffer(plan.d))),
        points_(plan.ar1 ? ar1_tile * size_ : size_),
        last_(size_) {}

  /// Draws point i, one after the one before; returns the row of the data file that it is.
  std::uint32_t draw(std::uint64_t i) {
    return std::visit(
        [&](const auto& sampler) {
          const float* table = plan_.table.design();
          if (!plan_.ar1) {
            at_ = points_.data();
            return draw_design_point(sampler, table, plan_.d, seed_, plan_.streams.design,
                                     plan_.streams.design_choice, replicate_, i, at_);
          }
          if (i % ar1_tile == 0) draw_tile(sampler, i);
          at_ = &points_[i % ar1_tile * size_];
          return finish_design_point(sampler, table, seed_, plan_.streams.design_choice, replicate_,
                                     i, at_);
        },
        *plan_.design);
  }
  const float* point() const { return at_; }

 private:
  template <class Sampler>
  void draw_tile(const Sampler& sampler, std::uint64_t first) {
    for (std::size_t r = 0; r < ar1_tile; ++r) {
      draw_base_point(sampler, plan_.d, seed_, plan_.streams.design, replicate_, first + r,
                      &points_[r * size_]);
    }
    for (std::size_t c = 0; c < size_; ++c) {
      (*plan_.ar1)(&points_[c], static_cast<std::ptrdiff_t>(size_), last_[c], first == 0);
    }
  }

  const Plan& plan_;
  std::uint64_t seed_;
  std::uint64_t replicate_;
  std::size_t size_;           ///< of a point
  std::vector<float> points_;  ///< one, or those of a tile of a sequence
  std::vector<float> last_;    ///< the last point of the tile before
  float* at_ = nullptr;
};

}  // namespace

TrainingSet draw_training_set(const Plan& plan, std::uint64_t replicate) {
  const auto n = static_cast<std::size_t>(plan.n);
  const auto d = static_cast<std::size_t>(plan.d);
  TrainingSet sample;
  sample.x.resize(n * d);
  PointDraws points(plan, replicate);
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 1024 == 0) stop_point();
    const std::uint32_t row = points.draw(i);
    double* x = &sample.x[i * d];
    std::copy_n(points.point(), d, x);
    sample.regression.push_back(std::visit(
        [&](const auto& m) { return m(plan.table.exact(), x, 1, row); }, *plan.regression));
    const Words words = philox(plan.seed, subsequence(plan.streams.noise, replicate), i);
    std::visit(
        [&](const auto& noise) {
          const double sd = noise.scale(plan.table.exact(), x, 1);
          sample.noise_sd.push_back(sd);
          sample.noise.push_back(sd * static_cast<double>(noise.unit(words)));
        },
        *plan.noise);
  }
  return sample;
}

TrainingSet tokens_of(const Plan& plan, TrainingSet sample) {
  const Merge& merge = plan.mechanism.merge;
  if (merge.off()) return sample;
  const auto d = static_cast<std::size_t>(plan.d);
  const auto stride = static_cast<std::size_t>(merge.stride);
  const std::size_t n = sample.regression.size();
  TrainingSet tokens;
  for (std::size_t first = 0; first < n; first += stride) {
    const std::size_t points = std::min(stride, n - first);
    const double v = merge.weight(points);
    double regression = 0;
    double variance = 0;
    double noise = 0;
    std::vector<double> x(d);
    for (std::size_t i = first; i < first + points; ++i) {
      for (std::size_t c = 0; c < d; ++c) x[c] += v * sample.x[i * d + c];
      regression += v * sample.regression[i];
      variance += v * v * sample.noise_sd[i] * sample.noise_sd[i];
      noise += v * sample.noise[i];
    }
    tokens.x.insert(tokens.x.end(), x.begin(), x.end());
    tokens.regression.push_back(regression);
    tokens.noise_sd.push_back(std::sqrt(variance));
    tokens.noise.push_back(noise);
  }
  return tokens;
}

}  // namespace headlab
