// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/arithmetic.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/draws.h"
#include "kernels/philox.h"

namespace headlab {
namespace {

class PlainArithmetic : public StackArithmetic {
 public:
  Eigen::MatrixXd product(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) const override {
    return a * b;
  }
  void exp(std::span<double> x) const override {
    for (double& one : x) one = std::exp(one);
  }
  void expm1(std::span<double> x) const override {
    for (double& one : x) one = std::expm1(one);
  }
  void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t quad,
               std::span<float> out) const override {
    for (std::size_t i = 0; i < out.size(); i += 4, ++quad) {
      const Words words = philox(seed, stream, quad);
      const NormalPair a = normal_pair(words.w[0], words.w[1]);
      const NormalPair b = normal_pair(words.w[2], words.w[3]);
      const std::array<float, 4> four = {a.first, a.second, b.first, b.second};
      for (std::size_t j = 0; j < 4 && i + j < out.size(); ++j) out[i + j] = four[j];
    }
  }
};

}  // namespace

const StackArithmetic& plain_arithmetic() {
  static const PlainArithmetic plain;
  return plain;
}

}  // namespace headlab
