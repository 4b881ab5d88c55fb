// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/stack_theory.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "engine/scenario/condition.h"
#include "engine/scenario/stack/stack_setting.h"
#include "kernels/decompositions.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"
#include "kernels/stack/worker.h"
#include "validation/theory/depth/contraction_bounds.h"
#include "validation/theory/depth/fixed_attention.h"
#include "validation/theory/depth/independent_logits.h"
#include "validation/theory/depth/simplex.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

/// Rows without a number, and the metrics that are listed of them.
void start_rows(TheoryResult& theory, const std::vector<std::string>& metrics) {
  for (const std::string& name : metrics) theory.listed.push_back(layer_metric(name));
  theory.layers.rows.resize(static_cast<std::size_t>(theory.plan->stack->layers) + 1);
  for (auto& row : theory.layers.rows) row.metrics.resize(layer_metric_descriptions().size());
}

void set(TheoryResult& theory, std::size_t layer, const std::string& metric, double value) {
  theory.layers.rows[layer].metrics[layer_metric(metric)].value = value;
}

/// The norm of a simplex, or none where the norm is not one that keeps it a simplex.
std::optional<SimplexNorm> simplex_norm(const StackSetting& s, const SimplexTokens& tokens) {
  if (std::holds_alternative<NoNorm>(s.norm)) return SimplexNorm{};
  const auto* rms = std::get_if<RmsNorm>(&s.norm);
  const auto* layer = std::get_if<LayerNorm>(&s.norm);
  if (layer != nullptr && !tokens.centred) return std::nullopt;
  const NormParameters& norm = rms != nullptr ? static_cast<const NormParameters&>(*rms) : *layer;
  if (norm.gain || norm.bias) return std::nullopt;
  return SimplexNorm{
      .place = norm.place == "pre" ? SimplexNorm::Place::pre : SimplexNorm::Place::post,
      .dim = tokens.dim,
      .epsilon = norm.epsilon};
}

bool use_simplex(TheoryResult& theory, const StackSetting& s) {
  const auto* tokens = std::get_if<SimplexTokens>(&s.design);
  const auto* maps = std::get_if<ScaledIdentityMaps>(&s.maps);
  const auto* softmax = std::get_if<SoftmaxAttention>(&s.kernel);
  if (tokens == nullptr || maps == nullptr || softmax == nullptr) return false;
  const std::optional<SimplexNorm> norm = simplex_norm(s, *tokens);
  if (!norm || s.causal || !std::holds_alternative<NoMlp>(s.mlp)) return false;

  std::vector<double> value = maps->value;
  if (s.averaged) {
    value.assign(static_cast<std::size_t>(s.heads), maps->value[0] / s.heads);
  }
  const std::vector<SimplexLayer> layers = simplex_layers({.n = static_cast<int>(s.n),
                                                           .rho = tokens->rho,
                                                           .mu = tokens->mu,
                                                           .temperature = softmax->temperature,
                                                           .query_key = *maps->query_key,
                                                           .value = value,
                                                           .mean_value = {},
                                                           .layers = s.layers,
                                                           .skip = s.skip,
                                                           .branch = s.branch,
                                                           .memory = s.memory,
                                                           .alternating = s.alternating,
                                                           .norm = *norm});
  std::vector<std::string> names;
  for (const SimplexMetric& metric : simplex_metrics()) {
    const std::string name = metric.name;
    const bool spectral =
        name == "stable_rank" || name == "effective_rank" || name == "second_eigenvalue";
    if (!spectral || s.spectra) names.push_back(name);
  }
  names.emplace_back("residual_share_of_means");
  start_rows(theory, names);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (const SimplexMetric& metric : simplex_metrics()) {
      if (const auto value_at = layers[l].*metric.value) set(theory, l, metric.name, *value_at);
    }
    if (layers[l].residual_share) {
      set(theory, l, "residual_share_of_means", *layers[l].residual_share);
    }
  }
  theory.source = "exact";
  theory.form = "exact recursion of equiangular tokens";
  return true;
}

/// Gram matrix of the tokens where it is known: of given ones and of normal ones.
std::optional<TokenGram> gram_of(const StackSetting& s, const Plan& plan) {
  if (s.fixed_design || plan.stack->tokens.size() > 0) return token_gram(stack_tokens(plan, 0));
  const auto* normal = std::get_if<NormalDesign>(&s.design);
  if (normal == nullptr) return std::nullopt;
  double squared_mean = 0;
  for (const double x : normal->mean) squared_mean += x * x;
  double variance = normal->dim;
  if (!normal->covariance.empty()) {
    variance = 0;
    for (std::size_t j = 0; j < normal->covariance.size(); ++j) {
      variance += normal->covariance[j][j];
    }
  }
  return independent_token_gram(static_cast<int>(s.n), squared_mean, variance);
}

bool use_energies(TheoryResult& theory, const StackSetting& s) {
  const Stack& stack = *theory.plan->stack;
  const auto* maps = std::get_if<GaussianMaps>(&stack.maps);
  const bool plain = maps != nullptr && maps->samples == 0 && !s.shared_weights && s.memory == 0 &&
                     stack.norm.kind == NormKind::none && !stack.mlp && !s.alternating;
  const bool softmax = stack.kernel == AttentionKernel::softmax;
  const bool logits = stack.kernel == AttentionKernel::independent_logits;
  if (!plain || softmax || (logits && s.causal)) return false;
  const std::optional<TokenGram> tokens = gram_of(s, *theory.plan);
  if (!tokens) return false;

  std::vector<ExpectedEnergies> layers;
  if (logits) {
    layers = independent_logits_energies(tokens->residual.trace(), tokens->mean_squared,
                                         {.n = static_cast<int>(s.n),
                                          .heads = s.heads,
                                          .sd = stack.logit_sd,
                                          .correlation = stack.logit_correlation,
                                          .averaged = s.averaged,
                                          .value = maps->value,
                                          .skip = s.skip,
                                          .branch = s.branch,
                                          .layers = s.layers});
  } else {
    Matrices attention = stack.fixed;
    if (attention.empty()) {
      attention.assign(static_cast<std::size_t>(s.heads),
                       uniform_weights(static_cast<int>(s.n), s.causal));
    }
    layers = fixed_attention_energies(*tokens, {.attention = std::move(attention),
                                                .averaged = s.averaged,
                                                .value = maps->value,
                                                .skip = s.skip,
                                                .branch = s.branch,
                                                .layers = s.layers});
  }
  start_rows(theory, {"residual_squared", "mean_squared", "residual_share_of_means"});
  for (std::size_t l = 0; l < layers.size(); ++l) {
    set(theory, l, "residual_squared", layers[l].residual_squared());
    set(theory, l, "mean_squared", layers[l].mean_squared());
    set(theory, l, "residual_share_of_means", layers[l].residual_share_of_means());
  }
  theory.source = "exact";
  theory.form = "exact expected energies of fresh Gaussian values";
  return true;
}

double diameter_of(const MatrixXd& tokens) {
  double largest = 0;
  for (Eigen::Index i = 0; i < tokens.rows(); ++i) {
    largest = std::max(largest, (tokens.rowwise() - tokens.row(i)).rowwise().norm().maxCoeff());
  }
  return largest;
}

bool use_bound(TheoryResult& theory, const StackSetting& s) {
  const Stack& stack = *theory.plan->stack;
  const auto* maps = std::get_if<ExplicitMaps>(&stack.maps);
  const bool given = s.fixed_design || stack.tokens.size() > 0;
  if (maps == nullptr || !given || stack.kernel != AttentionKernel::softmax || s.causal ||
      stack.norm.kind != NormKind::none || stack.mlp || s.skip != 0 || s.alternating ||
      (s.memory > 0 && s.heads > 1) || s.n > 1024) {
    return false;
  }
  std::vector<HeadNorms> norms;
  for (std::size_t h = 0; h < maps->query_key.size(); ++h) {
    const double value = spectral_norm(maps->value[s.averaged ? 0 : h]);
    norms.push_back({.query_key = spectral_norm(maps->query_key[h]),
                     .value = s.averaged ? value / s.heads : value});
  }
  const double diameter = diameter_of(stack_tokens(*theory.plan, 0));
  const std::vector<double> logs =
      s.memory > 0
          ? log_diameter_upper_bounds({.norms = norms[0],
                                       .branch = s.branch,
                                       .temperature = stack.temperature,
                                       .memory = s.memory},
                                      diameter, s.layers)
          : log_diameter_upper_bounds(contraction_constant(norms, s.branch, stack.temperature),
                                      diameter, s.layers);
  start_rows(theory, {"diameter"});
  for (std::size_t l = 0; l < logs.size(); ++l) set(theory, l, "diameter", std::exp(logs[l]));
  theory.source = "bound";
  theory.form = "an upper bound of the diameter, not its value";
  return true;
}

}  // namespace

TheoryResult stack_theory(const Condition& condition) {
  const auto start = std::chrono::steady_clock::now();
  const StackSetting& setting = *condition.stack;
  TheoryResult theory;
  theory.plan = make_plan(condition);
  if (!use_simplex(theory, setting) && !use_energies(theory, setting) &&
      !use_bound(theory, setting)) {
    reject(
        condition, "layers",
        "have no closed form with these tokens, heads and layers - simulate with headlab run, or "
        "see the forms in docs/depth.md");
  }
  theory.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return theory;
}

}  // namespace headlab
