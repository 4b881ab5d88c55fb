// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/query_key.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <Eigen/Core>

#include "kernels/decompositions.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// -1/2 log det(I + a/t^2) of a matrix whose eigenvalues are not negative.
double minus_half_log_det(const MatrixXd& a, double temperature) {
  const MatrixXd sum = MatrixXd::Identity(a.rows(), a.cols()) + a / temperature / temperature;
  const double log_det = log_abs_determinant(sum);
  if (!std::isfinite(log_det)) throw std::invalid_argument("logits of the heads leave float64");
  return -0.5 * std::max(log_det, 0.0);
}

MatrixXd stacked(const std::vector<MatrixXd>& matrices) {
  const Eigen::Index d = matrices[0].rows(), k = matrices[0].cols();
  MatrixXd stack(d, static_cast<Eigen::Index>(matrices.size()) * k);
  for (std::size_t h = 0; h < matrices.size(); ++h) {
    if (matrices[h].rows() != d || matrices[h].cols() != k) {
      throw std::invalid_argument("projections of the heads differ in shape");
    }
    stack.middleCols(static_cast<Eigen::Index>(h) * k, k) = matrices[h];
  }
  return stack;
}

}  // namespace

std::vector<QueryKeyCorrelation> query_key_correlations(const std::vector<MatrixXd>& w_q,
                                                        const std::vector<MatrixXd>& w_k,
                                                        double temperature) {
  if (w_q.empty() || w_q.size() != w_k.size()) {
    throw std::invalid_argument("needs as many projections of queries as of keys");
  }
  const MatrixXd q = stacked(w_q), k_stack = stacked(w_k);
  if (q.rows() != k_stack.rows() || q.cols() != k_stack.cols()) {
    throw std::invalid_argument("projections of queries and keys differ in shape");
  }
  const Eigen::Index k = w_q[0].cols();
  // Lower triangles of all the products of two heads.
  MatrixXd gram_q = MatrixXd::Zero(q.cols(), q.cols()), gram_k = gram_q;
  gram_q.selfadjointView<Eigen::Lower>().rankUpdate(q.transpose());
  gram_k.selfadjointView<Eigen::Lower>().rankUpdate(k_stack.transpose());
  const auto pair_of = [k](const MatrixXd& gram, Eigen::Index l, Eigen::Index h, double sign) {
    MatrixXd pair(2 * k, 2 * k);
    pair.topLeftCorner(k, k) = gram.block(l * k, l * k, k, k).selfadjointView<Eigen::Lower>();
    pair.bottomRightCorner(k, k) = gram.block(h * k, h * k, k, k).selfadjointView<Eigen::Lower>();
    pair.bottomLeftCorner(k, k) = sign * gram.block(h * k, l * k, k, k);
    pair.topRightCorner(k, k) = pair.bottomLeftCorner(k, k).transpose();
    return pair;
  };
  std::vector<QueryKeyCorrelation> pairs;
  const Eigen::Index heads = q.cols() / k;
  for (Eigen::Index l = 0; l + 1 < heads; ++l) {
    for (Eigen::Index h = l + 1; h < heads; ++h) {
      // M_l - M_h = A B^T with A = (K_l, -K_h) and B = (Q_l, Q_h), so that the determinant of d
      // dimensions is one of 2 k: det(I + A^T A B^T B/t^2).
      const MatrixXd a = pair_of(gram_k, l, h, -1), b = pair_of(gram_q, l, h, 1);
      QueryKeyCorrelation& pair = pairs.emplace_back();
      pair.log_mean = minus_half_log_det(a * b, temperature);
      pair.mean = std::exp(pair.log_mean);
      pair.mean_log = -std::max(a.cwiseProduct(b).sum() / temperature / temperature, 0.0) / 2;
    }
  }
  return pairs;
}

VectorXd query_key_singular_values(const MatrixXd& w_q, const MatrixXd& w_k) {
  // W_K = Q R, so that the squares are the eigenvalues of R W_Q^T W_Q R^T.
  const MatrixXd r = HouseholderQr(w_k).upper();
  const MatrixXd moment = r * (w_q.transpose() * w_q) * r.transpose();
  return symmetric_eigenvalues(moment).values.reverse().cwiseMax(0.0).cwiseSqrt();
}

MatrixXd key_singular_vectors(const MatrixXd& w_q, const MatrixXd& w_k) {
  // W_K W_Q^T = Q (R R_Q^T) Q_Q^T.
  return left_svd(HouseholderQr(w_k).upper() * HouseholderQr(w_q).upper().transpose()).u;
}

double log_query_key_correlation(const VectorXd& s_h, const VectorXd& s_l, const MatrixXd& u,
                                 const MatrixXd& v, double temperature) {
  // As above with A = (V_h S_h, -V_l S_l) and B = (U_h, U_l), block by block.
  const Eigen::Index k = s_h.size();
  const MatrixXd cross = s_h.asDiagonal() * v * s_l.asDiagonal();
  const VectorXd h2 = s_h.cwiseAbs2(), l2 = s_l.cwiseAbs2();
  MatrixXd a(2 * k, 2 * k);
  a.topLeftCorner(k, k) = -cross * u.transpose();
  a.topLeftCorner(k, k).diagonal() += h2;
  a.topRightCorner(k, k) = h2.asDiagonal() * u - cross;
  a.bottomLeftCorner(k, k) = l2.asDiagonal() * u.transpose() - cross.transpose();
  a.bottomRightCorner(k, k) = -cross.transpose() * u;
  a.bottomRightCorner(k, k).diagonal() += l2;
  return minus_half_log_det(a, temperature);
}

}  // namespace headlab
