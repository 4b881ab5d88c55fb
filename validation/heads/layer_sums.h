// SPDX-License-Identifier: Apache-2.0
/// \file Sums over the tokens of a layer, by groups of documents, from which all figures of its
/// heads follow.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Core>

#include "engine/activations/activations.h"
#include "validation/heads/head_setting.h"
#include "validation/heads/row_products.h"

namespace headlab {

/// More documents are taken together in this number of groups.
inline constexpr std::size_t max_single_documents = 200, document_groups = 64;

/// Sums over the tokens of some documents. o_h = W_h^T z_h; r is the squared size of the stream.
struct DocumentSums {
  double tokens = 0;
  Eigen::VectorXd z;              ///< [H e]
  Eigen::MatrixXd outputs;        ///< [H][H] o_h . o_l
  double stream = 0;              ///< r
  double inverse_stream = 0;      ///< 1 / r
  Eigen::VectorXd z_share;        ///< [H e] z / r
  Eigen::MatrixXd outputs_share;  ///< [H][H] o_h . o_l / r
  HeadPairSums pairs;
  ExchangeSums exchange;
  Eigen::MatrixXd responses;  ///< [H][H] tr W_h^T C W_l, C of values about their mean in a sequence
  double degrees = 0;         ///< values less means in these
  Eigen::VectorXd held_out;   ///< [H] squared error of the output after refits without the head

  explicit DocumentSums(const LayerActivations& layer);
  void add(const DocumentSums& other, double sign = 1);
};

/// Loss of a sequence: for each head sum_t g.z, and the sum of g, the gradient by z.
struct SequenceLoss {
  Eigen::VectorXd products;   ///< [H]
  Eigen::VectorXd gradients;  ///< [H e]
};

/// First and second moments of z.
struct ValueMoments {
  double tokens = 0;
  Eigen::VectorXd sum;      ///< [H e]
  Eigen::MatrixXd squares;  ///< [H e][H e] sum z z^T

  explicit ValueMoments(std::size_t columns);
  ValueMoments& operator+=(const ValueMoments& other);
  Eigen::VectorXd mean() const { return sum / tokens; }
  /// Mean of (z - centre)(z - centre)^T.
  Eigen::MatrixXd about(const Eigen::VectorXd& centre) const;
};

/// What moments of z are kept: none, of all tokens, which are then all that is found but for sums
/// of outputs and losses, or of documents 0, 2, 4, .. and of 1, 3, 5, .. in the order of their
/// numbers.
enum class KeptMoments { none, all, by_fold };

struct LayerSums {
  Eigen::MatrixXd products;           ///< [H e][H e] W W^T
  std::vector<DocumentSums> groups;   ///< by document, or by rank mod 64 where they are many
  std::vector<std::size_t> group_of;  ///< [B] of each sequence
  std::vector<SequenceLoss> losses;   ///< [B], or none
  std::vector<ValueMoments> folds;    ///< as many as are kept
  std::vector<std::vector<std::uint32_t>> tokens;  ///< [B] that count
  std::size_t count = 0;                           ///< of these tokens
  std::uint64_t blind = 0;                         ///< queries that see no key
  double largest_document = 0;                     ///< share of the tokens
};

/// Sums over all sequences but for `held_out`. The bits do not depend on `threads`.
/// \param stop true: throw Stopped; asked for each sequence
/// Throws InvalidInput where a token has a residual of size 0, or no gradient is other than 0.
LayerSums layer_sums(const LayerActivations& layer, const HeadSetting& setting, KeptMoments kept,
                     int threads, const std::function<bool()>& stop);

/// The most tokens that can count.
std::size_t possible_tokens(const LayerActivations& layer, const HeadSetting& setting);

/// z of a sequence, the model's where it is given, and the tokens that have one.
struct SequenceValues {
  TokenRows z;  ///< [tokens][H e]
  std::vector<std::uint32_t> tokens;
};
SequenceValues values_of(const LayerActivations& layer, std::size_t b,
                         std::vector<std::uint32_t> tokens, const HeadSetting& setting,
                         int threads);

/// sum_ij a_ij b_ij over the blocks of pairs of heads [H][H] of symmetric matrices; `a` may have a
/// block for each group.
Eigen::MatrixXd block_products(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                               const AttentionShape& shape);

/// a_h^T M_hl b_l over the blocks of pairs of heads [H][H].
Eigen::MatrixXd block_forms(const Eigen::MatrixXd& m, const Eigen::VectorXd& a,
                            const Eigen::VectorXd& b, const AttentionShape& shape);

}  // namespace headlab
