// SPDX-License-Identifier: Apache-2.0
/// \file The definition of a stack in float64: tokens, scores and rollout
/// through its layers.
#pragma once

#include <memory>
#include <vector>

#include <Eigen/Core>

#include "kernels/stack/attention.h"
#include "kernels/stack/metrics.h"
#include "kernels/stack/ranks.h"
#include "kernels/stack/stack.h"
#include "kernels/stack/tokens.h"

namespace headlab {

/// The state of a stack behind its first layers.
class StackState {
 public:
  /// \param tokens X_0 [n][d]; the stack must outlive this
  StackState(const Stack& stack, const StackDraws& draws, const Eigen::MatrixXd& tokens);

  /// Passes the tokens through the next layer.
  void advance();

  const CentredTokens& tokens() const { return tokens_; }
  /// Heads in use in the layer last passed; none before the first.
  const std::vector<Attention>& attention() const { return attention_; }
  /// All metrics but target_distance.
  LayerMetrics metrics() const;

 private:
  Scores new_scores(const CentredTokens& z, int head) const;
  Attention attention_of(const CentredTokens& z, int head);
  /// Passes the rollout through the layer.
  void roll_out(const Attention& mean);

  const Stack& stack_;
  StackDraws draws_;
  int layer_ = 0;  ///< layers passed
  CentredTokens tokens_;
  std::vector<Scores> scores_;  ///< [H], kept where there is a memory
  std::vector<Attention> attention_;
  CentredTokens rollout_;               ///< rows of P
  Eigen::RowVectorXd largest_to_sink_;  ///< [n], max over layers of the last row of P
  TokenRanks ranks_at_most_;
};

/// Metrics of rows 0..L. With pruned maps the target runs on the same tokens.
std::vector<LayerMetrics> stack_metrics(const Stack& stack, const StackDraws& draws,
                                        const Eigen::MatrixXd& tokens);

}  // namespace headlab
