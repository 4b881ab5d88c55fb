// SPDX-License-Identifier: Apache-2.0
#include "kernels/learning/fit.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include <Eigen/Core>

#include "kernels/decompositions.h"
#include "kernels/draws.h"
#include "kernels/philox.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::RowMajor;
/// W_h among the numbers [H][d][k].
using Matrix = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, RowMajor>>;

Matrix matrix_of(std::vector<double>& numbers, const HeadParameters& shape, int head) {
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(shape.d) * shape.k;
  return {numbers.data() + head * size, shape.d, shape.k};
}

/// Adam on one matrix or vector, with one second moment for all of its elements.
class Adam {
 public:
  /// The step for this gradient, of length about `rate`.
  MatrixXd step(const MatrixXd& gradient, double rate) {
    if (count_ == 0) first_ = MatrixXd::Zero(gradient.rows(), gradient.cols());
    ++count_;
    first_ = first_decay * first_ + (1 - first_decay) * gradient;
    second_ = second_decay * second_ + (1 - second_decay) * gradient.squaredNorm();
    const double size = std::sqrt(second_ / (1 - std::pow(second_decay, count_)));
    return first_ * (rate / (1 - std::pow(first_decay, count_)) / (size + min_size));
  }
  /// Brings the first moment to the tangent space of orthonormal frames at w.
  void transport(const MatrixXd& w) { first_ = tangent(w, first_); }

  /// The part of m along the frames with orthonormal columns at w: m - w sym(w^T m).
  static MatrixXd tangent(const MatrixXd& w, const MatrixXd& m) {
    const MatrixXd inner = w.transpose() * m;
    return m - w * (0.5 * (inner + inner.transpose()));
  }

 private:
  static constexpr double first_decay = 0.9;
  static constexpr double second_decay = 0.999;
  static constexpr double min_size = 1e-8;
  int count_ = 0;
  MatrixXd first_;
  double second_ = 0;
};

/// Training points of one step, drawn with replacement.
class Batches {
 public:
  Batches(const Learning& learning, std::uint64_t number, std::uint32_t points)
      : seed_(learning.seed),
        stream_(subsequence(Purpose::learning_batch, number)),
        size_(static_cast<std::uint64_t>(learning.batch)),
        points_(points) {}

  std::vector<std::int64_t> at(std::uint64_t step) const {
    std::vector<std::int64_t> batch;
    const std::uint64_t quads = (size_ + 3) / 4;
    for (std::uint64_t quad = 0; quad < quads; ++quad) {
      const Words words = philox(seed_, stream_, step * quads + quad);
      for (std::size_t i = 0; i < 4 && batch.size() < size_; ++i) {
        batch.push_back(choose(words.w[i], points_));
      }
    }
    return batch;
  }

 private:
  std::uint64_t seed_, stream_, size_;
  std::uint32_t points_;
};

class Descent {
 public:
  Descent(const Learning& learning, std::uint64_t number, const FitPoints& points,
          HeadGradients& gradients)
      : learning_(learning),
        points_(points),
        gradients_(gradients),
        n_(points.y.size()),
        trained_(n_ - held_out_points(learning, n_)),
        batches_(learning, number, static_cast<std::uint32_t>(trained_)),
        heads_(learning.start),
        of_keys_(count()),
        of_queries_(count()) {
    if (trained_ < 2) throw std::invalid_argument("a fit needs 2 training points");
    gradients_.load(points, trained_);
    held_out_own_.assign(n_ - trained_, -1);
  }

  const HeadParameters& heads() const { return heads_; }

  /// One step; the mean of (Y - f)^2 over its batch.
  double step(std::uint64_t number) {
    const std::vector<std::int64_t> batch = batches_.at(number);
    const auto d = static_cast<std::size_t>(points_.d);
    batch_x_.clear();
    for (const std::int64_t i : batch) {
      const auto x =
          points_.x.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * d);
      batch_x_.insert(batch_x_.end(), x, x + points_.d);
    }
    estimates_.resize(batch.size() * count());
    gradients_.estimate(heads_, {batch_x_, batch}, estimates_);

    // With residuals r_q = f(X_q) - Y_q the error's gradient is 2/B sum_q r_q a_h df_qh in W_h, and
    // 2/B sum_q r_q f_qh in a_h.
    const double share = 2 / static_cast<double>(batch.size());
    factors_.resize(estimates_.size());
    Eigen::VectorXd of_weights = Eigen::VectorXd::Zero(heads_.heads);
    double error = 0;
    for (std::size_t q = 0; q < batch.size(); ++q) {
      const double residual = residual_at(q, points_.y[static_cast<std::size_t>(batch[q])]);
      error += residual * residual;
      for (std::size_t h = 0; h < count(); ++h) {
        factors_[q * count() + h] = share * residual * heads_.weights[h];
        of_weights(static_cast<Eigen::Index>(h)) += share * residual * estimates_[q * count() + h];
      }
    }
    error /= static_cast<double>(batch.size());
    require_finite(error);
    gradients_.gradient(factors_, slope_);
    if (learning_.diversity > 0 && heads_.heads > 1) {
      chordal_gradient(heads_, of_chordal_);
      for (std::size_t i = 0; i < of_chordal_.size(); ++i) {
        slope_.keys[i] -= learning_.diversity * of_chordal_[i];
      }
    }
    move(of_weights, learning_.learning_rate / std::sqrt(1 + static_cast<double>(number) / 100));
    return error;
  }

  /// Mean of (Y - f)^2 over the points held out; none without them.
  std::optional<double> held_out_error() {
    if (held_out_own_.empty()) return std::nullopt;
    const auto d = static_cast<std::size_t>(points_.d);
    estimates_.resize(held_out_own_.size() * count());
    gradients_.estimate(
        heads_, {std::span(points_.x).subspan(trained_ * d, (n_ - trained_) * d), held_out_own_},
        estimates_);
    double error = 0;
    for (std::size_t q = 0; q < held_out_own_.size(); ++q) {
      const double residual = residual_at(q, points_.y[trained_ + q]);
      error += residual * residual;
    }
    return error / static_cast<double>(held_out_own_.size());
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(learning_.start.heads); }

  double residual_at(std::size_t q, double y) const {
    double f = 0;
    for (std::size_t h = 0; h < count(); ++h) f += heads_.weights[h] * estimates_[q * count() + h];
    return f - y;
  }

  static void require_finite(double number) {
    if (!std::isfinite(number)) {
      throw std::invalid_argument(
          "the heads or their error are not finite - use a smaller learning_rate "
          "or diversity");
    }
  }

  void move(const Eigen::VectorXd& of_weights, double rate) {
    for (int h = 0; h < heads_.heads; ++h) {
      const auto at = static_cast<std::size_t>(h);
      auto w = matrix_of(heads_.keys, heads_, h);
      const MatrixXd slope = matrix_of(slope_.keys, heads_, h);
      if (learning_.form == HeadMatrixKind::orthonormal) {
        const MatrixXd step = of_keys_[at].step(Adam::tangent(w, slope), rate);
        w = signed_qr(w - step).q;
        of_keys_[at].transport(w);
      } else {
        w -= of_keys_[at].step(slope, rate);
      }
      if (!heads_.queries.empty()) {
        matrix_of(heads_.queries, heads_, h) -=
            of_queries_[at].step(matrix_of(slope_.queries, heads_, h), rate);
      }
    }
    // A sum is finite where its parts are.
    for (const std::vector<double>* numbers : {&heads_.keys, &heads_.queries}) {
      double size = 0;
      for (const double number : *numbers) size += std::abs(number);
      require_finite(size);
    }
    if (learning_.learns_weights) {
      const MatrixXd step = of_weights_.step(of_weights, rate);
      for (std::size_t h = 0; h < count(); ++h) {
        heads_.weights[h] -= step(static_cast<Eigen::Index>(h), 0);
        require_finite(heads_.weights[h]);
      }
    }
  }

  const Learning& learning_;
  const FitPoints& points_;
  HeadGradients& gradients_;
  std::size_t n_;
  std::size_t trained_;  ///< points that are not held out
  Batches batches_;
  HeadParameters heads_;
  std::vector<Adam> of_keys_, of_queries_;  ///< [H]
  Adam of_weights_;

  std::vector<std::int64_t> held_out_own_;  ///< -1 for each point held out
  std::vector<float> batch_x_;              ///< [B][d]
  std::vector<double> estimates_;           ///< [Q][H]
  std::vector<double> factors_;             ///< [B][H]
  HeadParameters slope_;                    ///< the gradient
  std::vector<double> of_chordal_;          ///< [H][d][k]
};

}  // namespace

std::uint64_t held_out_points(const Learning& learning, std::uint64_t n) {
  return std::min(static_cast<std::uint64_t>(learning.held_out * static_cast<double>(n)),
                  max_held_out);
}

std::optional<double> error_at_fresh_keys(const Learning& learning, const HeadParameters& heads,
                                          const FitPoints& points, const FitPoints& fresh,
                                          HeadGradients& gradients) {
  const std::size_t trained = points.y.size() - held_out_points(learning, points.y.size());
  const auto d = static_cast<std::ptrdiff_t>(points.d);
  const auto place = static_cast<std::ptrdiff_t>(trained);
  FitPoints joined = points;
  std::copy_n(fresh.x.begin(), place * d, joined.x.begin());
  std::copy_n(fresh.y.begin(), place, joined.y.begin());
  Learning as_found = learning;
  as_found.start = heads;
  return Descent(as_found, 0, joined, gradients).held_out_error();
}

double chordal_gradient(const HeadParameters& heads, std::vector<double>& gradient) {
  HeadParameters copy = heads;
  gradient.assign(heads.keys.size(), 0.0);
  std::vector<MatrixXd> w, inverse, projectors;
  MatrixXd sum = MatrixXd::Zero(heads.d, heads.d);
  for (int h = 0; h < heads.heads; ++h) {
    w.push_back(matrix_of(copy.keys, heads, h));
    const MatrixXd gram = w.back().transpose() * w.back();
    inverse.push_back(Cholesky(gram).solve(MatrixXd(MatrixXd::Identity(heads.k, heads.k))));
    projectors.push_back(w.back() * inverse.back() * w.back().transpose());
    sum += projectors.back();
  }
  // index = 1 - sum_{h != l} tr(P_h P_l) / (H (H-1) k), and with A = sum_{l != h} P_l
  // d tr(P_h A)/dW_h = 2 (I - P_h) A W_h (W_h^T W_h)^-1, each pair counted twice.
  const double pairs = static_cast<double>(heads.heads) * (heads.heads - 1) * heads.k;
  double overlap = 0;
  for (int h = 0; h < heads.heads; ++h) {
    const auto at = static_cast<std::size_t>(h);
    const MatrixXd others = sum - projectors[at];
    const MatrixXd along = others * w[at] * inverse[at];
    overlap += (projectors[at].cwiseProduct(others)).sum();
    matrix_of(gradient, heads, h) = -4 / pairs * (along - projectors[at] * along);
  }
  return 1 - overlap / pairs;
}

std::optional<Fit> fit_heads(const Learning& learning, std::uint64_t number,
                             const FitPoints& points, HeadGradients& gradients,
                             const FitHooks& hooks) {
  Descent descent(learning, number, points, gradients);
  Fit fit;
  double error = 0;  // summed since the last check
  int without_progress = 0;
  for (std::uint64_t step = 0;; ++step) {
    const bool last = step == learning.steps;
    if (last || step % check_steps == 0) {
      const std::uint64_t since = step == 0 ? 0 : (step - 1) % check_steps + 1;
      FitCheck check{.step = step,
                     .batch_error = std::nullopt,
                     .held_out_error = descent.held_out_error(),
                     .heads = descent.heads()};
      if (since > 0) check.batch_error = error / static_cast<double>(since);
      error = 0;
      const bool best =
          step == 0 || !check.held_out_error || *check.held_out_error < *fit.held_out_error;
      if (best) {
        fit.heads = check.heads;
        fit.steps = step;
        fit.held_out_error = check.held_out_error;
      }
      without_progress = best ? 0 : without_progress + 1;
      if (hooks.check) hooks.check(check);
      if (hooks.keeps_history) fit.history.push_back(std::move(check));
      if (last || without_progress >= learning.patience) return fit;
    }
    if (hooks.stop && hooks.stop()) return std::nullopt;
    error += descent.step(step);
  }
}

}  // namespace headlab
