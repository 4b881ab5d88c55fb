// SPDX-License-Identifier: Apache-2.0
/// \file What is measured of the tokens X_l after a layer and of the attention
/// that made them.
///
/// X = 1 m^T + R with the mean token m, G = X^T X; A_h the weights of head h,
/// P_l the rollout (s I + b mean_h A_h)/(s + b) P_(l-1), P_0 = I; tau(A) =
/// max_ij |A_i - A_j|_1 / 2.
#pragma once

#include <limits>

namespace headlab {

/// Metrics of one layer in one replicate; NaN where undefined.
struct LayerMetrics {
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

  double log_residual = undefined;
  double residual_squared = undefined;
  double mean_squared = undefined;
  double residual_share = undefined;
  double diameter = undefined;
  double dong = undefined;
  double cosine = undefined;
  double participation = undefined;
  double collapsed = undefined;

  double entropy = undefined;
  double dobrushin = undefined;
  double residual_factor = undefined;
  double self_weight = undefined;
  double rollout_dobrushin = undefined;
  double sink_fidelity = undefined;
  double target_distance = undefined;

  double stable_rank = undefined;
  double effective_rank = undefined;
  double second_eigenvalue = undefined;
  double rank_at_least = undefined;
  double rank_at_most = undefined;
  double affine_rank_at_least = undefined;
  double affine_rank_at_most = undefined;
  double rank_undecided = undefined;

  /// Calls visit(name, value, doc) for each.
  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("log_residual", log_residual, "log |R|_F; undefined where R = 0");
    visit("residual_squared", residual_squared, "|R|_F^2");
    visit("mean_squared", mean_squared, "|m|^2");
    visit("residual_share", residual_share, "|R|_F^2 / |X|_F^2; undefined where X = 0");
    visit("diameter", diameter, "max |x_i - x_j|; for 2 to 1024 tokens");
    visit("dong", dong, "sqrt of the largest column sum times the largest row sum of |R|");
    visit("cosine", cosine, "mean cosine of pairs of tokens; undefined where a token is 0");
    visit("participation", participation, "(tr G)^2 / tr G^2; undefined where X = 0");
    visit("collapsed", collapsed, "1 where R = 0, else 0");
    visit("entropy", entropy, "mean over heads and rows of -sum_j w_j log w_j");
    visit("dobrushin", dobrushin, "mean over heads of tau(A_h); for 2 to 256 tokens");
    visit("residual_factor", residual_factor, "mean over heads of |A_h - 1 mean row|_F^2/(n - 1)");
    visit("self_weight", self_weight, "mean over heads and tokens of A_ii");
    visit("rollout_dobrushin", rollout_dobrushin, "tau(P_l); for 2 to 256 tokens");
    visit("sink_fidelity", sink_fidelity, "min over j < n of max over k <= l of P_k[n, j]");
    visit("target_distance", target_distance, "max_i |x_i - x_i of the target|, of pruned maps");
    visit("stable_rank", stable_rank, "|X|_F^2 / s_1^2");
    visit("effective_rank", effective_rank, "exp of the entropy of the shares s_i / sum s");
    visit("second_eigenvalue", second_eigenvalue, "mean over heads of |lambda_2(A_h)|");
    visit("rank_at_least", rank_at_least, "certified lower bound of rank X");
    visit("rank_at_most", rank_at_most, "algebraic upper bound of rank X");
    visit("affine_rank_at_least", affine_rank_at_least, "certified lower bound of rank R");
    visit("affine_rank_at_most", affine_rank_at_most, "algebraic upper bound of rank R");
    visit("rank_undecided", rank_undecided, "1 where the bounds of rank X differ, else 0");
  }
};

}  // namespace headlab
