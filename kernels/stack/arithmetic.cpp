// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/draws.h"
#include "kernels/philox.h"
#include "kernels/stack/formulas.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

/// Largest of distance(r_i - r_j) over pairs of rows.
template <class Distance>
double largest_between_rows(const RowsView& rows, const Distance& distance) {
  double largest = 0;
  for (Index i = 1; i < rows.rows(); ++i) {
    stop_point();
    for (Index j = 0; j < i; ++j) largest = std::max(largest, distance(rows.row(i) - rows.row(j)));
  }
  return largest;
}

/// Sum of w (log w), 0 at 0.
double weighted(const RowVectorXd& weights, const RowVectorXd& logs) {
  double sum = 0;
  for (Index j = 0; j < weights.size(); ++j) sum += weights(j) > 0 ? weights(j) * logs(j) : 0;
  return sum;
}

class PlainArithmetic : public StackArithmetic {
 public:
  void product(const RowsView& a, const RowsView& b, RowsOut out) const override {
    out.noalias() = a * b;
  }
  void product_transposed(const RowsView& a, const RowsView& b, RowsOut out) const override {
    out.noalias() = a * b.transpose();
  }

  double softmax(const RowsView& scores, double w, RowsOut out) const override {
    const Index n = scores.cols();
    const auto b = scores.row(n);
    RowVectorXd log_common = b.array() - b.maxCoeff();
    log_common.array() -= std::log(log_common.array().exp().sum());
    const RowVectorXd common = log_common.array().exp();
    out.row(n) = common;
    const double to_rest = std::exp(-std::min(w, 0.0));
    double entropy = 0;
    for (Index i = 0; i < n; ++i) {
      const auto e = scores.row(i);
      if (w < stack::min_exponent) {  // e^x = 1 + x
        out.row(i) = common.array() * (e.array() - e.dot(common));
        entropy -= weighted(common, log_common);
        continue;
      }
      // Differences to the mean logit, so that the sum below is not negative.
      RowVectorXd x = std::exp(w) * e;
      x.array() -= x.dot(common);
      if (x.maxCoeff() > stack::max_spread) {
        x += log_common;
        x.array() -= x.maxCoeff();
        x.array() -= std::log(x.array().exp().sum());
        const RowVectorXd weights = x.array().exp();
        out.row(i) = (weights - common) * to_rest;
        entropy -= weighted(weights, x);
        continue;
      }
      const RowVectorXd u = x.unaryExpr([](double one) { return std::expm1(one); });
      const double sum = u.dot(common);  // of a_j e^x_j, less 1
      out.row(i) = common.array() * (u.array() - sum) * (to_rest / (1 + sum));
      const RowVectorXd weights = common.array() * (u.array() + 1) / (1 + sum);
      entropy += std::log1p(sum) - weighted(weights, log_common + x);
    }
    return entropy / static_cast<double>(n);
  }

  double centre(RowsOut rows, RowVectorXd& mean) const override {
    mean = rows.colwise().mean();
    rows.rowwise() -= mean;
    const double largest = rows.size() == 0 ? 0 : rows.cwiseAbs().maxCoeff();
    if (largest > 0) rows *= 1 / largest;
    return largest;
  }
  void row_products(const RowsView& rows, const RowVectorXd& m, VectorXd& products,
                    VectorXd& squares) const override {
    products = rows * m.transpose();
    squares = rows.rowwise().squaredNorm();
  }
  void combine(const RowsView& rows, const VectorXd& f, const VectorXd& g, const RowVectorXd& m,
               RowsOut out) const override {
    for (Index i = 0; i < rows.rows(); ++i) out.row(i) = f(i) * rows.row(i) + g(i) * m;
  }
  void sum(double f, const RowsView& a, double g, const RowsView& b, RowsOut out) const override {
    out = f * a + g * b;
  }

  double spread(const RowsView& rows) const override {
    return (rows.rowwise() - rows.colwise().mean()).squaredNorm();
  }
  double largest_difference(const RowsView& rows) const override {
    return largest_between_rows(rows, [](const auto& row) { return row.cwiseAbs().sum(); });
  }
  double largest_square_distance(const RowsView& rows) const override {
    return largest_between_rows(rows, [](const auto& row) { return row.squaredNorm(); });
  }

  void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t quad, double sd,
               std::span<double> out) const override {
    for (std::size_t i = 0; i < out.size(); i += 4, ++quad) {
      const Words words = philox(seed, stream, quad);
      const NormalPair a = normal_pair(words.w[0], words.w[1]);
      const NormalPair b = normal_pair(words.w[2], words.w[3]);
      const std::array<float, 4> four = {a.first, a.second, b.first, b.second};
      for (std::size_t j = 0; j < 4 && i + j < out.size(); ++j) {
        out[i + j] = sd * static_cast<double>(four[j]);
      }
    }
  }
};

}  // namespace

const StackArithmetic& plain_arithmetic() {
  static const PlainArithmetic plain;
  return plain;
}

}  // namespace headlab
