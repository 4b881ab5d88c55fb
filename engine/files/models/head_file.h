// SPDX-License-Identifier: Apache-2.0
/// \file Files that hold heads: NPY with the subspaces of one layer, NetCDF with those of several
/// and what they come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "kernels/matrices.h"

namespace headlab {

/// The heads of one layer.
struct HeadLayer {
  int number = 0;          ///< of the layer in its model
  std::vector<int> heads;  ///< [H] numbers of the heads in the model; empty: 0, 1, .., H - 1
  Matrices subspaces;      ///< [H], a basis in the columns of each

  /// [H] or empty: projections of queries and keys, so that a query x gives a key X the weight
  /// exp((w_q^T x).(w_k^T X)/t).
  Matrices w_q;
  Matrices w_k;

  /// [H] or empty: w_q w_k^T = U diag(s) V^T, U [d][k] in `query_subspaces`, s [k].
  Matrices query_subspaces;
  std::vector<Eigen::VectorXd> singular_values;

  /// [H] or empty: largest over smallest singular value of w_k.
  std::vector<double> condition_numbers;
};

/// A head whose keys have rank below k, so that it has no subspace of dimension k.
struct DeficientHead {
  int layer = 0, head = 0, rank = 0;
};

/// The content of a file of heads. All layers have the same d and k, and the same H where all heads
/// of the model have a subspace.
struct HeadFile {
  std::vector<HeadLayer> layers;         ///< at least one
  std::optional<double> temperature;     ///< t, of the softmax of the model
  bool rotary = false;                   ///< queries and keys are turned by their position first
  std::string architecture;              ///< empty where the file does not say
  std::string origin;                    ///< the file that the heads were taken from
  int kv_heads = 0;                      ///< G: heads h G / H share keys, rounded down; 0: not said
  bool constant_coordinate = false;      ///< the last input is always 1: its weights are the biases
  std::string left_out;                  ///< what the heads lack of the model's logits
  int model_heads = 0;                   ///< heads of a layer of the model; 0: those of layer 0
  std::vector<DeficientHead> deficient;  ///< heads of the model that are not in `layers`

  /// Heads of a layer, among them those without a subspace.
  int heads() const {
    return model_heads > 0 ? model_heads : static_cast<int>(layers.at(0).subspaces.size());
  }
  int d() const { return static_cast<int>(layers.at(0).subspaces.at(0).rows()); }
  int k() const { return static_cast<int>(layers.at(0).subspaces.at(0).cols()); }
  /// Groups of heads that share keys: H where each has its own, or where the file does not say.
  int groups() const { return kv_heads > 0 ? kv_heads : heads(); }
};

/// Reads a file of heads, or of these one layer: NPY of shape H x d x k, which is layer 0, or
/// NetCDF with `subspaces` [layer, head, d, k], dimensions of these names in any order, and, where
/// heads share keys, the attribute `kv_heads`. Heads whose `rank` [layer, head], where there is
/// such a variable, is below k are left out. Throws InvalidInput, one line that begins with the
/// path, where something is missing, does not fit or is not finite, before it allocates more than
/// the file can hold.
HeadFile read_head_file(const std::string& path, std::optional<int> layer = {});

/// One layer as read_head_file() finds it; its subspaces alone, or all its matrices. Throws
/// InvalidInput too where the file has several and none is named.
HeadLayer read_head_layer(const std::string& path, std::optional<int> layer,
                          bool all_matrices = false);

/// Writes NetCDF where `path` ends in .nc, NPY where it ends in .npy, whole or not at all. Throws
/// RunFailed, and InvalidInput as check_head_path().
void write_head_file(const std::string& path, const HeadFile& file);

/// Throws InvalidInput, naming --out, where `path` has neither ending, or is one of NPY, which
/// holds one layer, and there are more.
void check_head_path(const std::string& path, std::size_t layers);

}  // namespace headlab
