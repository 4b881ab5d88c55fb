// SPDX-License-Identifier: Apache-2.0
/// \file Low-rank approximation of attention scores: maps A, B [k][R] that replace projected keys z
/// by A^T z and projected queries q by B^T q, so that the score z.q becomes z.(A B^T) q.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

namespace headlab {

/// S = V diag(values^2) V^T, the second moment of projected keys or queries.
struct MomentRoot {
  Eigen::MatrixXd vectors;  ///< V [k][k], orthogonal
  Eigen::VectorXd values;   ///< [k], largest first; 0 where S is singular to rounding
};

/// The root of a symmetric, positive semidefinite S [k][k]; small values to sqrt(eps) of the
/// largest.
MomentRoot root_of_moment(const Eigen::MatrixXd& s);

/// The root of S = M^T M for M [n][k], to eps of the largest value: S is not formed.
MomentRoot root_of_rows(const Eigen::MatrixXd& m);

enum class LowRankMethod {
  kq_svd,  ///< U: top left singular vectors of S_K^1/2 S_Q^1/2; A B^T = S_K^-1/2 U U^T S_K^1/2
  k_svd,   ///< A = B: top eigenvectors of S_K
  joint    ///< A = B: top eigenvectors of S_K + S_Q
};

/// "kq_svd", "k_svd", "joint", in the order of the methods.
const std::vector<std::string>& low_rank_methods();
/// The method of this name, or none.
std::optional<LowRankMethod> low_rank_method(const std::string& name);

struct LowRankMaps {
  Eigen::MatrixXd keys;      ///< A [k][R]
  Eigen::MatrixXd queries;   ///< B [k][R]
  Eigen::VectorXd spectrum;  ///< [k], singular values whose first R are kept, largest first
};

/// Computes the maps of rank R, 1 <= R <= k. KQ-SVD has the least expected squared score error of
/// all maps of that rank, the sum of the squares of the singular values that it drops
/// (arXiv:2512.05916, which compares it with the others).
LowRankMaps low_rank_maps(LowRankMethod method, const MomentRoot& keys, const MomentRoot& queries,
                          int rank);

/// True where singular values R and R + 1 agree to 1e-9 of the first, so that no subspace is the
/// best. Values that are themselves so small do not count: nothing is lost with them.
bool is_ambiguous(const Eigen::VectorXd& spectrum, int rank);

/// E (z.(I - A B^T) q)^2 for independent keys z and queries q: |F_K (I - A B^T) F_Q^T|_F^2 with S =
/// F^T F. A and B without columns give E (z.q)^2.
double squared_score_error(const MomentRoot& keys, const MomentRoot& queries,
                           const Eigen::MatrixXd& a, const Eigen::MatrixXd& b);

}  // namespace headlab
