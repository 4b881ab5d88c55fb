// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/layers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <variant>

#include "kernels/statistics/stopping.h"

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;

void StackState::begin(const Stack& stack, const StackDraws& draws, const MatrixXd& tokens,
                       bool measured) {
  stack_ = &stack;
  draws_ = draws;
  measured_ = measured;
  layer_ = 0;
  tokens_ = centred(tokens, arithmetic());
  unit_.reset();
  scores_.resize(stack.memory > 0 ? static_cast<std::size_t>(stack.heads) : 0);
  attention_.clear();
  if (stack.spectra) ranks_at_most_ = given_ranks(tokens_);
  if (!measured) return;
  rollout_ = centred(MatrixXd::Identity(tokens.rows(), tokens.rows()), arithmetic());
  largest_to_sink_.setConstant(tokens.rows(), -std::numeric_limits<double>::infinity());
}

const NormedTokens& StackState::unit() {
  if (!unit_) unit_ = normed(tokens_, NormKind::rms, 0, arithmetic());
  return *unit_;
}

CentredTokens StackState::normed_tokens() {
  const TokenNorm& norm = stack_->norm;
  if (norm.kind == NormKind::rms && norm.epsilon == 0) {
    return with_gain(norm, unit().tokens, arithmetic());
  }
  return apply_norm(norm, tokens_, arithmetic());
}

void StackState::score(double sigma, Index place, Scores& out) {
  // E = Q K^T, Q = R query, K = R key, and below it b = e^sigma (m query) K^T.
  const Index d = rows_.cols();
  const Index n = rows_.rows() - 1;
  queries_.resize(n + 1, maps_.query.cols());
  arithmetic().product(rows_, maps_.query.middleRows(place * d, d), queries_);
  out.rows.resize(n + 1, n);
  if (maps_.key.size() > 0) {
    keys_.resize(n, maps_.key.cols());
    arithmetic().product(rows_.topRows(n), maps_.key.middleRows(place * d, d), keys_);
    arithmetic().product_transposed(queries_, keys_, out.rows);
  } else {
    arithmetic().product_transposed(queries_, rows_.topRows(n), out.rows);
  }
  out.rows.row(n) *= std::exp(sigma);
  out.exponent = 2 * sigma;
}

void StackState::attend(const CentredTokens& z, int head, Index place, Attention& out) {
  const Index n = z.count();
  if (stack_->kernel == AttentionKernel::uniform) return attend_equally(n, stack_->causal, out);
  if (stack_->kernel == AttentionKernel::fixed) {
    return attend_as_given(stack_->fixed[static_cast<std::size_t>(head)], out);
  }
  if (stack_->kernel == AttentionKernel::softmax) {
    score(z.exponent, place, now_);
  } else {
    now_.rows.resize(n + 1, n);
    now_.rows << independent_logits(*stack_, draws_, layer_, head, n), Eigen::RowVectorXd::Zero(n);
    now_.exponent = 0;
  }
  if (stack_->memory == 0) return attend_by_scores(now_, stack_->causal, arithmetic(), out);
  Scores& kept = scores_[static_cast<std::size_t>(head)];
  if (layer_ == 0) {
    std::swap(kept, now_);
  } else {
    mix_scores(stack_->memory, now_, arithmetic(), kept);
  }
  attend_by_scores(kept, stack_->causal, arithmetic(), out);
}

void StackState::add_values(const CentredTokens& z, std::span<const Attention> heads) {
  const Index n = z.count();
  const Index d = z.dim();
  const auto count = static_cast<Index>(heads.size());
  const bool projects = maps_.value.size() > 0;
  const Index rank = projects ? maps_.value.cols() : d;
  SummandSizes sizes;
  Eigen::RowVectorXd of_mean(count * rank);  // of all heads m value, and sizes of summands
  Eigen::RowVectorXd summands(count * rank);
  mixed_.resize(n + 1, count * rank);
  values_.resize(n + 1, rank);
  for (Index h = 0; h < count; ++h) {
    stop_point(static_cast<double>(h) / static_cast<double>(count));
    const Attention& head = heads[static_cast<std::size_t>(h)];
    if (projects) arithmetic().product(rows_, maps_.value.middleRows(h * d, d), values_);
    const RowMatrix& values = projects ? values_ : rows_;
    auto mixed = mixed_.middleCols(h * rank, rank);
    arithmetic().product(head.rows, values.topRows(n), mixed);
    mixed.row(n) *= z.scale();
    if (stack_->spectra) {
      const auto output = maps_.output.middleRows(h * rank, rank);
      const double branch = std::abs(stack_->branch);
      sizes.mean += branch * (z.mean_error * (values.row(n) * output).norm() +
                              z.residual_error * (mixed.row(n) * output).norm());
      sizes.rest += branch * z.residual_error * (mixed.topRows(n) * output).norm();
    }
    of_mean.segment(h * rank, rank) = values.row(n);
    // The size of what cancels: |m| + e^sigma |a| |R|, through the sizes of the maps' entries.
    const Eigen::RowVectorXd size =
        z.mean.cwiseAbs() + z.scale() * head.rows.row(n).cwiseAbs() * z.residual.cwiseAbs();
    if (projects) {
      summands.segment(h * rank, rank) = size * maps_.value.middleRows(h * d, d).cwiseAbs();
    } else {
      summands.segment(h * rank, rank) = size;
    }
    mixed.row(n) += values.row(n);
  }
  branch_.resize(n + 1, d);
  arithmetic().product(mixed_, maps_.output, branch_);
  if (stack_->branch != 1) branch_ *= stack_->branch;
  const double exponent = z.exponent + heads[0].exponent;
  add(stack_->skip, tokens_, branch_, exponent, arithmetic(), next_);
  const Eigen::RowVectorXd image =
      stack_->skip * tokens_.mean + stack_->branch * (of_mean * maps_.output);
  next_.mean_rounding +=
      std::max(tokens_.relative_rounding(), z.relative_rounding()) * image.norm() +
      stack::token_rounding * std::abs(stack_->branch) *
          (summands * maps_.output.cwiseAbs()).norm();
  if (stack_->spectra) {
    // What the residual gives to the mean counts with the residual's error.
    const auto shift = next_.mean - stack_->skip * tokens_.mean - branch_.row(n);
    sizes.mean += z.residual_error * shift.norm();
    bound_errors(stack_->skip, tokens_, sizes, exponent, next_);
  }
  std::swap(tokens_, next_);
  unit_.reset();
}

void StackState::replace(CentredTokens tokens) {
  tokens_ = std::move(tokens);
  unit_.reset();
}

void StackState::advance() {
  const Stack& stack = *stack_;
  const TokenNorm& norm = stack.norm;
  const bool pre = norm.kind != NormKind::none && norm.place == NormPlace::pre;
  const bool post = norm.kind != NormKind::none && norm.place == NormPlace::post;
  const CentredTokens z = pre ? normed_tokens() : tokens_;
  rows_.resize(z.count() + 1, z.dim());
  rows_ << z.residual, z.mean;

  const HeadRange all = {0, stack.heads};
  const HeadRange used = stack.alternating ? HeadRange{layer_ % stack.heads, 1} : all;
  const HeadRange scored = stack.memory > 0 ? all : used;
  const bool reads_tokens = stack.kernel == AttentionKernel::softmax;
  const bool same_maps = stack.shared_weights || std::holds_alternative<ExplicitMaps>(stack.maps);
  if (layer_ == 0 || stack.alternating || !same_maps) {
    draw_maps(stack, draws_, layer_, reads_tokens ? scored : HeadRange{0, 0}, used, z.dim(), maps_);
  }
  attention_.resize(static_cast<std::size_t>(used.count));
  {
    const WorkPart part(0, 0.5);
    for (int h = scored.first; h < scored.first + scored.count; ++h) {
      stop_point(static_cast<double>(h - scored.first) / scored.count);
      const bool in_use = h >= used.first && h < used.first + used.count;
      const int place = in_use ? h - used.first : 0;
      // A head that is not in use passes on its scores alone: its weights are overwritten.
      attend(z, h, h - scored.first, in_use ? attention_[static_cast<std::size_t>(place)] : mean_);
    }
  }
  const WorkPart part(0.5, 1);
  if (measured_ || stack.averaged) average_heads(attention_, arithmetic(), mean_);
  add_values(z, stack.averaged ? std::span<const Attention>(&mean_, 1) : attention());
  if (post) replace(normed_tokens());
  if (stack.mlp) {
    const Mlp mlp = layer_mlp(stack, draws_, layer_, z.dim());
    replace(add_mlp(mlp, tokens_, pre ? normed_tokens() : tokens_, arithmetic()));
    if (post) replace(normed_tokens());
  }
  if (measured_) roll_out();
  if (stack.spectra) {
    ranks_at_most_ = ranks_at_most(stack, ranks_at_most_, tokens_.count(), tokens_.dim());
  }
  ++layer_;
}

void StackState::roll_out() {
  const double sum = stack_->skip + stack_->branch;
  if (sum == 0) return;
  const Index n = rollout_.count();
  branch_.resize(n + 1, n);
  arithmetic().product(mean_.rows, rollout_.residual, branch_);
  branch_.row(n) = rollout_.scale() * branch_.row(n) + rollout_.mean;
  branch_ *= stack_->branch / sum;
  add(stack_->skip / sum, rollout_, branch_, rollout_.exponent + mean_.exponent, arithmetic(),
      next_);
  std::swap(rollout_, next_);
  largest_to_sink_ =
      largest_to_sink_.cwiseMax(rollout_.mean + rollout_.scale() * rollout_.residual.row(n - 1));
}

LayerMetrics StackState::metrics() {
  LayerMetrics out;
  measure_tokens(tokens_, unit(), arithmetic(), out);
  if (layer_ > 0) measure_attention(attention_, arithmetic(), out);
  const Index n = tokens_.count();
  if (n > 1 && stack_->skip + stack_->branch != 0) {
    out.rollout_dobrushin = dobrushin(rollout_.residual, rollout_.exponent, arithmetic());
    out.sink_fidelity = layer_ == 0 ? 0 : largest_to_sink_.head(n - 1).minCoeff();
  }
  if (!stack_->spectra) return out;
  measure_spectra(tokens_, attention_, out);
  measure_ranks(tokens_, ranks_at_most_, out);
  return out;
}

std::vector<LayerMetrics> StackRunner::run(const Stack& stack, const StackDraws& draws,
                                           const MatrixXd& tokens) {
  state_.begin(stack, draws, tokens);
  Stack target_stack;
  const auto* maps = std::get_if<GaussianMaps>(&stack.maps);
  const bool pruned = maps && maps->samples > 0;
  if (pruned) {
    target_stack = stack;
    std::get<GaussianMaps>(target_stack.maps).samples = 0;
    target_.begin(target_stack, draws, tokens, false);
  }
  std::vector<LayerMetrics> rows;
  rows.reserve(static_cast<std::size_t>(stack.layers) + 1);
  const double layers = std::max(stack.layers, 1);
  for (int l = 0; l <= stack.layers; ++l) {
    // What is measured of the tokens before the first layer is soon done.
    const WorkPart part(std::max(l - 1, 0) / layers, l / layers);
    stop_point(0);
    if (l > 0) {
      const WorkPart half(0, 0.5);
      state_.advance();
    }
    const WorkPart half(0.5, 1);
    rows.push_back(state_.metrics());
    if (!pruned) continue;
    const WorkPart of_target(1, 1);
    if (l > 0) target_.advance();
    rows.back().target_distance =
        (plain(state_.tokens()) - plain(target_.tokens())).rowwise().norm().maxCoeff();
  }
  return rows;
}

}  // namespace headlab
