// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/subspaces.h"

#include "kernels/decompositions.h"

namespace headlab {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// [H] of d x k from numbers [H][d][k].
std::vector<Eigen::MatrixXd> matrices_of(const HeadFrames& frames,
                                         const std::vector<double>& numbers) {
  const Eigen::Index size = Eigen::Index{frames.d()} * frames.k();
  std::vector<Eigen::MatrixXd> matrices;
  for (int h = 0; h < frames.heads(); ++h) {
    matrices.emplace_back(
        Eigen::Map<const RowMajor>(numbers.data() + h * size, frames.d(), frames.k()));
  }
  return matrices;
}

}  // namespace

std::vector<Eigen::MatrixXd> to_matrices(const HeadFrames& frames) {
  std::vector<Eigen::MatrixXd> matrices = matrices_of(frames, frames.numbers());
  if (!frames.orthonormal()) {
    for (Eigen::MatrixXd& w : matrices) w = signed_qr(w).q;
  }
  return matrices;
}

std::vector<Eigen::MatrixXd> to_query_matrices(const HeadFrames& frames) {
  if (frames.queries().empty()) return {};
  return matrices_of(frames, frames.queries());
}

std::vector<Eigen::MatrixXd> make_subspaces(const Scenario& scenario) {
  return to_matrices(make_head_frames(scenario));
}

}  // namespace headlab
