// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/parameter.h"

namespace headlab {

struct ExplicitSubspaces;

/// Matrices of a file, which the conditions of a sweep share.
using SharedHeads = std::shared_ptr<const ExplicitSubspaces>;

/// The heads of a file: those of law "explicit" that are too many numbers for a scenario.
struct FileSubspaces {
  static constexpr const char* name = "file";
  static constexpr const char* summary = "matrices of an NPY or NetCDF file, H x d x k";
  static constexpr const char* example = "path = \"heads.npy\"";

  std::string path = {};          ///< relative to the scenario file
  std::optional<int> layer = {};  ///< of a file that has several
  bool orthonormalise = false;    ///< replace each matrix by the Q of its QR
  bool query_key = false;         ///< take W_Q and W_K of the file in place of its subspaces
  SharedHeads given = {};         ///< the content of the file, read by the scenario reader

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("path", path, "NPY or NetCDF, relative to the scenario file");
    visit.optional("layer", layer, within(0, 1e6), "which layer of several to take");
    visit.optional("orthonormalise", orthonormalise, "apply QR to each matrix");
    visit.optional("query_key", query_key, "take w_q and w_k of NetCDF, softmax alone");
  }

  void check(const Sizes& sizes) const;

  /// H matrices d x k with orthonormal columns.
  Subspaces generate(const Sizes& sizes) const;

 private:
  ExplicitSubspaces explicit_law() const;
};

}  // namespace headlab
