// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/layers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "kernels/stack/maps.h"

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;

StackState::StackState(const Stack& stack, const StackDraws& draws, const MatrixXd& tokens)
    : stack_(stack),
      draws_(draws),
      tokens_(centred(tokens)),
      scores_(static_cast<std::size_t>(stack.heads)),
      rollout_(centred(MatrixXd::Identity(tokens.rows(), tokens.rows()))),
      largest_to_sink_(Eigen::RowVectorXd::Zero(tokens.rows())) {
  if (stack_.spectra) ranks_at_most_ = given_ranks(tokens_);
}

Scores StackState::new_scores(const CentredTokens& z, int head) const {
  if (stack_.kernel == AttentionKernel::softmax) {
    return token_scores(z, query_key_map(stack_, draws_, layer_, head, z.dim()), stack_.temperature,
                        *draws_.arithmetic);
  }
  return drawn_scores(independent_logits(stack_, draws_, layer_, head, z.count()));
}

Attention StackState::attention_of(const CentredTokens& z, int head) {
  const auto h = static_cast<std::size_t>(head);
  if (stack_.kernel == AttentionKernel::uniform) {
    return uniform_attention(z.count(), stack_.causal);
  }
  if (stack_.kernel == AttentionKernel::fixed) return given_attention(stack_.fixed[h]);
  if (stack_.memory == 0)
    return softmax_attention(new_scores(z, head), stack_.causal, *draws_.arithmetic);
  const Scores now = new_scores(z, head);
  scores_[h] = layer_ == 0 ? now : mixed_scores(stack_.memory, scores_[h], now);
  return softmax_attention(scores_[h], stack_.causal, *draws_.arithmetic);
}

void StackState::advance() {
  const TokenNorm& norm = stack_.norm;
  const bool pre = norm.kind != NormKind::none && norm.place == NormPlace::pre;
  const bool post = norm.kind != NormKind::none && norm.place == NormPlace::post;
  const CentredTokens z = pre ? apply_norm(norm, tokens_) : tokens_;

  const int only = stack_.alternating ? layer_ % stack_.heads : -1;
  attention_.clear();
  std::vector<MatrixXd> values;
  for (int h = 0; h < stack_.heads; ++h) {
    const bool in_use = only < 0 || h == only;
    if (!in_use && stack_.memory == 0) continue;
    Attention attention = attention_of(z, h);
    if (!in_use) continue;
    attention_.push_back(std::move(attention));
    if (values.empty() || !stack_.averaged) {
      values.push_back(value_map(stack_, draws_, layer_, h, z.dim()));
    }
  }
  const Attention mean = mean_attention(attention_);
  tokens_ = attend(stack_.skip, tokens_, stack_.branch, z,
                   stack_.averaged ? std::span(&mean, 1) : std::span(std::as_const(attention_)),
                   values, *draws_.arithmetic);
  if (post) tokens_ = apply_norm(norm, tokens_);
  if (stack_.mlp) {
    const Mlp mlp = layer_mlp(stack_, draws_, layer_, z.dim());
    tokens_ = add_mlp(mlp, tokens_, pre ? apply_norm(norm, tokens_) : tokens_);
    if (post) tokens_ = apply_norm(norm, tokens_);
  }
  roll_out(mean);
  if (stack_.spectra) {
    ranks_at_most_ = ranks_at_most(stack_, ranks_at_most_, tokens_.count(), tokens_.dim());
  }
  ++layer_;
}

void StackState::roll_out(const Attention& mean) {
  const double sum = stack_.skip + stack_.branch;
  if (sum == 0) return;
  const Index n = rollout_.count();
  const MatrixXd identity = MatrixXd::Identity(n, n);
  rollout_ = attend(stack_.skip / sum, rollout_, stack_.branch / sum, rollout_, std::span(&mean, 1),
                    std::span(&identity, 1), *draws_.arithmetic);
  largest_to_sink_ =
      largest_to_sink_.cwiseMax(rollout_.mean + rollout_.scale() * rollout_.residual.row(n - 1));
}

LayerMetrics StackState::metrics() const {
  LayerMetrics out;
  measure_tokens(tokens_, out);
  if (layer_ > 0) measure_attention(attention_, out);
  const Index n = tokens_.count();
  if (n > 1 && stack_.skip + stack_.branch != 0) {
    out.rollout_dobrushin = dobrushin({rollout_.residual, rollout_.exponent});
    out.sink_fidelity = largest_to_sink_.head(n - 1).minCoeff();
  }
  if (!stack_.spectra) return out;
  measure_spectra(tokens_, attention_, out);
  const TokenRanks least = ranks_at_least(tokens_);
  out.rank_at_least = static_cast<double>(least.matrix);
  out.rank_at_most = static_cast<double>(ranks_at_most_.matrix);
  out.affine_rank_at_least = static_cast<double>(least.affine);
  out.affine_rank_at_most = static_cast<double>(ranks_at_most_.affine);
  out.rank_undecided = least.matrix < ranks_at_most_.matrix ? 1 : 0;
  return out;
}

std::vector<LayerMetrics> stack_metrics(const Stack& stack, const StackDraws& draws,
                                        const MatrixXd& tokens) {
  StackState state(stack, draws, tokens);
  Stack target_stack;
  std::optional<StackState> target;
  const auto* maps = std::get_if<GaussianMaps>(&stack.maps);
  if (maps && maps->samples > 0) {
    target_stack = stack;
    std::get<GaussianMaps>(target_stack.maps).samples = 0;
    target.emplace(target_stack, draws, tokens);
  }
  std::vector<LayerMetrics> rows;
  for (int l = 0; l <= stack.layers; ++l) {
    if (l > 0) state.advance();
    if (l > 0 && target) target->advance();
    rows.push_back(state.metrics());
    if (!target) continue;
    rows.back().target_distance =
        (plain(state.tokens()) - plain(target->tokens())).rowwise().norm().maxCoeff();
  }
  return rows;
}

}  // namespace headlab
