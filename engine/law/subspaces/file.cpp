// SPDX-License-Identifier: Apache-2.0
#include "engine/law/subspaces/file.h"

#include "engine/law/subspaces/explicit.h"

namespace headlab {

SharedHeads shared_heads(const std::vector<Eigen::MatrixXd>& matrices) {
  auto law = std::make_shared<ExplicitSubspaces>();
  for (const Eigen::MatrixXd& w : matrices) {
    auto& rows = law->matrices.emplace_back();
    for (Eigen::Index i = 0; i < w.rows(); ++i) {
      auto& row = rows.emplace_back();
      for (Eigen::Index j = 0; j < w.cols(); ++j) row.push_back(w(i, j));
    }
  }
  return law;
}

ExplicitSubspaces FileSubspaces::explicit_law() const {
  if (!given) throw ParameterError("path", "file has not been read");
  ExplicitSubspaces law = *given;
  law.orthonormalise = orthonormalise;
  return law;
}

void FileSubspaces::check(const Sizes& sizes) const {
  try {
    explicit_law().check(sizes);
  } catch (const ParameterError& error) {
    if (error.key() != "matrices") throw;
    throw ParameterError("path", std::string("file: ") + error.what());
  }
}

std::vector<Eigen::MatrixXd> FileSubspaces::generate(const Sizes& sizes) const {
  return explicit_law().generate(sizes);
}

}  // namespace headlab
