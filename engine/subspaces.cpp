// SPDX-License-Identifier: Apache-2.0
#include "engine/subspaces.h"

namespace headlab {

std::vector<Eigen::MatrixXd> to_matrices(const HeadFrames& frames) {
  std::vector<Eigen::MatrixXd> matrices(static_cast<std::size_t>(frames.heads()),
                                        Eigen::MatrixXd(frames.d(), frames.k()));
  for (int h = 0; h < frames.heads(); ++h) {
    Eigen::MatrixXd& w = matrices[static_cast<std::size_t>(h)];
    for (int i = 0; i < frames.d(); ++i) {
      for (int j = 0; j < frames.k(); ++j) w(i, j) = frames(h, i, j);
    }
  }
  return matrices;
}

std::vector<Eigen::MatrixXd> make_subspaces(const Scenario& scenario) {
  return to_matrices(make_head_frames(scenario));
}

}  // namespace headlab
