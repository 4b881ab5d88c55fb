// SPDX-License-Identifier: Apache-2.0
/// \file The definition of a stack in float64: tokens, scores and rollout
/// through its layers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "kernels/stack/attention.h"
#include "kernels/stack/maps.h"
#include "kernels/stack/metrics.h"
#include "kernels/stack/ranks.h"
#include "kernels/stack/stack.h"
#include "kernels/stack/tokens.h"

namespace headlab {

/// The state of a stack behind its first layers; keeps its matrices for the next stack. Per head
/// are score() and attend(), and in add_values() the values; the rest is per layer.
class StackState {
 public:
  StackState() = default;
  StackState(const Stack& stack, const StackDraws& draws, const Eigen::MatrixXd& tokens) {
    begin(stack, draws, tokens);
  }

  /// \param tokens X_0 [n][d]; the stack must outlive its use
  /// \param measured false: metrics() is not called
  void begin(const Stack& stack, const StackDraws& draws, const Eigen::MatrixXd& tokens,
             bool measured = true);
  /// Passes the tokens through the next layer.
  void advance();

  const CentredTokens& tokens() const { return tokens_; }
  /// Heads in use in the layer last passed; none before the first.
  std::span<const Attention> attention() const { return attention_; }
  /// All metrics but target_distance.
  LayerMetrics metrics();

 private:
  const StackArithmetic& arithmetic() const { return *draws_.arithmetic; }
  /// The tokens under an rms norm with epsilon 0, once for each layer.
  const NormedTokens& unit();
  /// The tokens under the stack's norm.
  CentredTokens normed_tokens();
  /// Makes these the tokens.
  void replace(CentredTokens tokens);
  /// Scores of the tokens rows_ of scale e^sigma by block `place` of the maps.
  void score(double sigma, Eigen::Index place, Scores& out);
  /// Attention of a head in this layer.
  /// \param place block of its maps
  void attend(const CentredTokens& z, int head, Eigen::Index place, Attention& out);
  /// skip tokens + branch sum_h A_h z V_h.
  void add_values(const CentredTokens& z, std::span<const Attention> heads);
  /// Passes the rollout through the layer.
  void roll_out();

  const Stack* stack_ = nullptr;
  StackDraws draws_;
  bool measured_ = true;
  int layer_ = 0;  ///< layers passed
  CentredTokens tokens_;
  std::optional<NormedTokens> unit_;
  std::vector<Scores> scores_;  ///< [H] where there is a memory, else none
  std::vector<Attention> attention_;
  Attention mean_;                      ///< of the heads
  CentredTokens rollout_;               ///< rows of P
  Eigen::RowVectorXd largest_to_sink_;  ///< [n], max over layers of the last row of P
  TokenRanks ranks_at_most_;

  // Of the layer in progress.
  LayerMaps maps_;
  Scores now_;
  RowMatrix rows_;  ///< R of z and, below it, its mean [n + 1][d]
  RowMatrix queries_;
  RowMatrix keys_;
  RowMatrix values_;  ///< [n + 1][d_v]
  /// Of all heads B R value and, below it, m value + e^sigma a R value [n + 1][H d_v].
  RowMatrix mixed_;
  RowMatrix branch_;  ///< [n + 1][d], or [n + 1][n] of the rollout
  CentredTokens next_;
};

/// Runs stacks one after the other.
class StackRunner {
 public:
  /// Metrics of rows 0..L. With pruned maps the target runs on the same tokens.
  std::vector<LayerMetrics> run(const Stack& stack, const StackDraws& draws,
                                const Eigen::MatrixXd& tokens);

 private:
  StackState state_;
  StackState target_;
};

inline std::vector<LayerMetrics> stack_metrics(const Stack& stack, const StackDraws& draws,
                                               const Eigen::MatrixXd& tokens) {
  return StackRunner().run(stack, draws, tokens);
}

}  // namespace headlab
