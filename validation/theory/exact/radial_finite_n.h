// SPDX-License-Identifier: Apache-2.0
/// \file Exact finite-n moments of Gaussian heads on orthogonal or identical subspaces: X ~ N(0,
/// I), constant s2, m zero or a sum of cosines. W has orthogonal columns of one length c, which is
/// as much as the bandwidth b/c. The kernel sees R = |U - q|, U = W^T X/c, q = W^T x/c, and
///
///     E[g(R) e^(iv.U)] = int g(r) J_v(r) dr,
///     J_v(r) = r^(k-1) (2 pi)^(-k/2) |S^(k-1)| e^(iv.q - (r^2+q^2)/2) E e^(z cos A),
///     z = r sqrt(q.q - v.v - 2i q.v), A the angle of a random direction to a given one.
///
/// For k = 1, r is signed (radial_head()). Heads on orthogonal subspaces have independent radii, so
/// that every expectation of two factors.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <Eigen/Core>

#include "validation/theory/exact/scalar_finite_n.h"

namespace headlab {

/// J_v at each of `radius`. \param v,q [k], k >= 1. Throws InvalidInput where |z| is beyond what
/// the quadrature over angles resolves.
Eigen::ArrayXcd radial_wave(const Eigen::VectorXd& v, const Eigen::VectorXd& q,
                            const Eigen::ArrayXd& radius);

/// Re sum_j amplitude_j exp(i frequency_j.X).
struct Waves {
  Eigen::VectorXcd amplitude;
  Eigen::MatrixXd frequency;  ///< [terms][d]
};

/// All heads of a model at one query. What a head's own moments and those of its pairs have in
/// common is computed once for each resolution. Any thread may ask.
class RadialHeads {
 public:
  RadialHeads(const TheoryModel& model, std::size_t query);
  ~RadialHeads();

  HeadMoments head(std::size_t h, const Resolution& resolution);
  /// Of heads with W_h^T W_l = 0.
  PairMoments pair(std::size_t h, std::size_t l, const Resolution& resolution);
  /// Of heads with W_h W_h^T = W_l W_l^T that see different tokens.
  PairMoments aligned_pair(std::size_t h, std::size_t l, const Resolution& resolution);

  /// The head as a function of the radius.
  ScalarHead radial(std::size_t h) const;
  /// Nodes of points with given levels.
  std::vector<DesignNodes> design(std::size_t h, const SigmaRange& range,
                                  const Resolution& resolution, const LevelRange& levels) const;

 private:
  struct Share;
  /// One head's shares by the digits of their resolution.
  struct Shares {
    std::mutex mutex;
    std::map<double, std::unique_ptr<const Share>> by_digits;
  };
  const Share& share(std::size_t h, const Resolution& resolution);

  const TheoryModel& model_;
  Eigen::VectorXd query_;
  Waves regression_;  ///< m - m(x)
  Waves square_;      ///< (m - m(x))^2
  std::vector<Shares> shares_;
};

}  // namespace headlab
