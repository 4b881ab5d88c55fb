// SPDX-License-Identifier: Apache-2.0
/// \file Formulas and names of the metrics of layers.
#include <map>

#include "tools/report/law_formulas.h"
#include "tools/report/sweep.h"

namespace headlab::tools {

std::string metric_formula(const std::string& metric) {
  static const std::map<std::string, std::string> all = {
      {"log_residual", "log |R|"},
      {"residual_squared", "|R|^2"},
      {"mean_squared", "|m|^2"},
      {"residual_share", "frac{|R|^2}{|X|^2}"},
      {"residual_share_of_means", "frac{E |R|^2}{E |X|^2}"},
      {"diameter", "max_{i, j} |x_i - x_j|"},
      {"dong", "sqrt{|R|_1 |R|_∞}"},
      {"cosine", "frac{2}{n (n - 1)} sum_{i < j} frac{x_i · x_j}{|x_i| |x_j|}"},
      {"participation", "frac{(tr G)^2}{tr G^2}, G = X^T X"},
      {"collapsed", "1[R = 0]"},
      {"entropy", "- frac{1}{H n} sum_{h, i, j} A_{h, i j} log A_{h, i j}"},
      {"dobrushin",
       "frac{1}{H} sum_h τ(A_h), τ(A) = max_{i, j} frac{1}{2} sum_k |A_{i k} - A_{j k}|"},
      {"residual_factor",
       "frac{1}{H} sum_h frac{|C A_h|^2}{n - 1}, C_{i j} = 1[i = j] - frac{1}{n}"},
      {"self_weight", "frac{1}{H n} sum_{h, i} A_{h, i i}"},
      {"rollout_dobrushin", "τ(P_l), P_l = frac{s I + b \"mean\"_h A_h}{s + b} P_{l - 1}"},
      {"sink_fidelity", "min_{j < n} max_{k ≤ l} P_{k, n j}"},
      {"target_distance", "max_i |x_i - x_i^{\"target\"}|"},
      {"stable_rank", "frac{|X|^2}{σ_1^2}"},
      {"effective_rank", "exp(- sum_i p_i log p_i), p_i = frac{σ_i}{sum_j σ_j}"},
      {"second_eigenvalue", "frac{1}{H} sum_h |λ_2(A_h)|"},
      {"rank_at_least", "\"certified lower bound of\" rank X"},
      {"rank_at_most", "\"algebraic upper bound of\" rank X"},
      {"affine_rank_at_least", "\"certified lower bound of\" rank R"},
      {"affine_rank_at_most", "\"algebraic upper bound of\" rank R"},
      {"rank_undecided", "1[\"bounds of\" rank X \"differ\"]"},
  };
  const auto found = all.find(metric);
  return found == all.end() ? "" : found->second;
}

const std::vector<std::string>& drawn_layer_metrics() {
  static const std::vector<std::string> all = {"log_residual",  "residual_share", "cosine",
                                               "participation", "entropy",        "dobrushin",
                                               "diameter",      "target_distance"};
  return all;
}

std::string metric_words(const std::string& metric) {
  static const std::map<std::string, std::string> all = {
      {"residual_share", "share of the residual"},
      {"residual_share_of_means", "share of the residual as a ratio of means"},
      {"cosine", "mean cosine"},
      {"participation", "participation ratio"},
      {"entropy", "entropy (nats)"},
      {"dobrushin", "Dobrushin coefficient"},
      {"rollout_dobrushin", "Dobrushin coefficient of the rollout"},
      {"dong", "norm-like residual of Dong et al."}};
  const auto found = all.find(metric);
  return found == all.end() ? figure_words(metric) : found->second;
}

}  // namespace headlab::tools
