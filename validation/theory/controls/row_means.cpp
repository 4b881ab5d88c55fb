// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <variant>
#include <vector>

#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"
#include "validation/theory/controls/point_means.h"

namespace headlab {
namespace {

/// The rows of a data file as one training set without noise.
TrainingSet rows_of(const Plan& plan) {
  const FileRows& rows = plan.table.rows();
  const auto d = static_cast<std::size_t>(plan.d);
  TrainingSet set;
  set.x.assign(rows.numbers().begin(), rows.numbers().end());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::uint32_t>(i);
    const double* x = &set.x[i * d];
    set.regression.push_back(std::visit(
        [&](const auto& m) { return m(plan.table.exact(), x, 1, row); }, *plan.regression));
    set.noise_sd.push_back(std::visit(
        [&](const auto& noise) { return noise.scale(plan.table.exact(), x, 1); }, *plan.noise));
    set.noise.push_back(0);
  }
  return set;
}

class RowMeans : public PointMeans {
 public:
  explicit RowMeans(const Plan& plan) : rows_(rows_of(plan)), whole_(plan), heads_(plan.heads) {
    // Every head weighs every row, whatever it sees of a training set.
    whole_.n = rows_.regression.size();
    whole_.mechanism = {};
    count_ = static_cast<double>(whole_.n);
  }

  void set_query(std::size_t q) override {
    WindowCounts unused;
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      Head& head = heads_[h];
      head.weights = nw_weights(whole_, rows_, static_cast<int>(h), static_cast<int>(q), unused,
                                &head.log_sum);
      head.estimate = 0;
      for (std::size_t i = 0; i < head.weights.size(); ++i) {
        head.estimate += head.weights[i] * rows_.regression[i];
      }
    }
  }
  double log_kernel(std::size_t h) const override { return heads_[h].log_sum - std::log(count_); }
  double estimate(std::size_t h) const override { return heads_[h].estimate; }
  double max_log_factor(std::size_t) const override {
    return std::numeric_limits<double>::infinity();
  }

  Bounded fall(std::size_t h, double log_s) const override {
    const double s = factor(h, log_s);
    return bounded_mean([&](std::size_t i) { return -std::expm1(-s * heads_[h].weights[i]); });
  }
  Bounded away(std::size_t h, double log_s) const override {
    const double s = factor(h, log_s);
    return bounded_mean(
        [&](std::size_t i) {
          const double k = s * heads_[h].weights[i];
          return (rows_.regression[i] - heads_[h].estimate) * k * std::exp(-k);
        },
        std::abs(heads_[h].estimate));
  }
  double noise(std::size_t h, std::size_t l) const override {
    return count_ * count_ * mean([&](std::size_t i) {
             return heads_[h].weights[i] * heads_[l].weights[i] * variance(i);
           });
  }
  double product(std::size_t h, std::size_t l) const override {
    return count_ * count_ * mean([&](std::size_t i) {
             const double m = rows_.regression[i];
             return heads_[h].weights[i] * heads_[l].weights[i] * (m - heads_[h].estimate) *
                    (m - heads_[l].estimate);
           });
  }
  Bounded fall(std::size_t h, std::size_t l, double log_s, double log_t) const override {
    const double s = factor(h, log_s), t = factor(l, log_t);
    return bounded_mean([&](std::size_t i) {
      return -std::expm1(-s * heads_[h].weights[i] - t * heads_[l].weights[i]);
    });
  }
  Bounded noise(std::size_t h, std::size_t l, double log_s, double log_t) const override {
    const double s = factor(h, log_s), t = factor(l, log_t);
    return bounded_mean([&](std::size_t i) {
      const double a = s * heads_[h].weights[i], b = t * heads_[l].weights[i];
      return a * b * variance(i) * std::exp(h == l ? -a : -a - b);
    });
  }

 private:
  struct Head {
    std::vector<double> weights;  ///< of the rows, of sum 1
    double log_sum = 0;           ///< of the kernel values
    double estimate = 0;
  };

  /// Factor of a weight that makes it s times a kernel value.
  double factor(std::size_t h, double log_s) const { return std::exp(log_s + heads_[h].log_sum); }
  double variance(std::size_t i) const { return rows_.noise_sd[i] * rows_.noise_sd[i]; }
  template <class Term>
  double mean(const Term& term) const {
    double sum = 0;
    for (std::size_t i = 0; i < rows_.regression.size(); ++i) sum += term(i);
    return sum / count_;
  }

  /// \param offset what was subtracted from numbers in the terms
  template <class Term>
  Bounded bounded_mean(const Term& term, double offset = 0) const {
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < rows_.regression.size(); ++i) {
      const double one = term(i);
      sum += one;
      size += std::abs(one);
    }
    // Each addition rounds what there is so far; an offset is as exact as the sum it came from.
    const double operations = count_ + 64;
    return {sum / count_,
            operations * std::numeric_limits<double>::epsilon() * (size / count_ + offset)};
  }

  TrainingSet rows_;
  Plan whole_;
  double count_ = 0;
  std::vector<Head> heads_;
};

}  // namespace

std::unique_ptr<PointMeans> row_means(const Plan& plan) {
  return std::make_unique<RowMeans>(plan);
}

}  // namespace headlab
