// SPDX-License-Identifier: Apache-2.0
/// \file What takes the time of a stack, which a backend may compute its own
/// way.
#pragma once

#include <cstdint>
#include <span>

#include <Eigen/Core>

namespace headlab {

class StackArithmetic {
 public:
  virtual ~StackArithmetic() = default;
  /// a b
  virtual Eigen::MatrixXd product(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) const = 0;
  /// e^x in place; 0 below -1000, for x <= 700.
  virtual void exp(std::span<double> x) const = 0;
  /// e^x - 1 in place, for x <= 700.
  virtual void expm1(std::span<double> x) const = 0;
  /// Normals 4 quad .. of a stream, as kernels/draws.h makes them: two from
  /// words 0 and 1, two from words 2 and 3 of each counter from `quad` on.
  virtual void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t quad,
                       std::span<float> out) const = 0;

  /// All numbers of a matrix.
  void exp(Eigen::MatrixXd& x) const {
    exp(std::span(x.data(), static_cast<std::size_t>(x.size())));
  }
  void expm1(Eigen::MatrixXd& x) const {
    expm1(std::span(x.data(), static_cast<std::size_t>(x.size())));
  }
};

/// Eigen's products and the C library's functions.
const StackArithmetic& plain_arithmetic();

}  // namespace headlab
