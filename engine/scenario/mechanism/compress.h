// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "engine/scenario/mechanism/stage.h"

namespace headlab {

struct DesignLaw;

/// Second moments that keys and queries are compressed for, [d][d]; empty: I.
struct PointMoments {
  Eigen::MatrixXd keys;     ///< E X X^T, or the covariance of X
  Eigen::MatrixXd queries;  ///< E x x^T
};

/// W_K -> W_K A and W_Q -> W_Q B of rank R, see low_rank.h. Compression of the key cache by the
/// singular values of the scores (KQ-SVD, arXiv:2512.05916), and the methods it is compared with.
struct CompressStage {
  static constexpr const char* name = "compress";
  static constexpr const char* summary = "projections of lower rank, fitted to keys and queries";
  static constexpr const char* example = "by = \"k_svd\", rank = 1";
  static constexpr const char* shorthand = "";

  std::string by = {};
  PerHead rank = {};
  bool centre = false;
  std::string queries = "design";
  std::uint64_t points = 65536;
  std::uint64_t seed = 0;
  /// What the projections are fitted to, found by calibrate() once the points are known.
  std::shared_ptr<const PointMoments> moments = {};

  /// Compares moments by their numbers.
  bool operator==(const CompressStage& other) const;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("by", by, "kq_svd, k_svd or joint");
    visit.required("rank", rank, counts_from(1), "R, one number or one a head");
    visit.optional("centre", centre, "fit to the covariance of the keys, default false");
    visit.optional("queries", queries, "fit to those of the \"design\" (default) or \"scenario\"");
    visit.optional("points", points, within(2, 4294967295.0),
                   "drawn to fit to, unless the design is normal, default 65536");
    visit.optional("seed", seed, "of these points, default 0");
  }

  void check(const StageSetting& setting) const;

  /// True where all heads of dimension k keep their projections.
  bool off(int heads, int k) const;

  /// Fits heads of rank below k. Throws ParameterError, with its key in the table of stages, where
  /// no subspace is the best.
  void apply(Subspaces& subspaces) const;
};

/// Finds the moments: exact of a normal design, else of points drawn for this alone.
/// \param law,d of the design  \param query_points [Q][d] of the scenario
/// Throws ParameterError, with its key in the table of stages.
void calibrate(CompressStage& stage, const DesignLaw& law, int d,
               const std::vector<double>& query_points);

}  // namespace headlab
