// SPDX-License-Identifier: Apache-2.0
/// \file A stack of attention layers on the simplex, layer by layer in closed form.
///
/// n equiangular tokens x_i = m + r_i: |r_i|^2 = rho, r_i.r_j = -rho/(n-1), |m|^2 = mu, m.r_i = 0.
/// Maps M_h = kappa_h I; V_h = w_h I on the residuals and v_h on m. No mask, no MLP. Then attention
/// is A_h = phi_h I + (1 - phi_h) J, J = 11^T/n, and the tokens stay a simplex:
///
///     now_h = kappa_h rho n/((n-1) t),  g_h = a g_h + (1-a) now_h  (now_h in layer 1)
///     q = (n-1) e^-g,  phi_h = (1 - e^-g)/(1 + q),  self-weight 1/(1 + q)
///     r' = (s + b sum_h w_h phi_h) r,  m' = (s + b sum_h v_h) m
///     entropy = log(1 + q) + g q/(1 + q),  tau(A_h) = |phi_h|,  |C A_h|_F^2/(n-1) = phi_h^2
///
/// A norm over d features scales a token by k = gain sqrt(d/(mu + rho + d epsilon)) and adds a bias
/// along m. That is RMS norm, and layer norm of tokens orthogonal to 1_d. "pre" puts k r and k m +
/// bias for r and m in now_h and in the branch; "post" puts them for r' and m'.
///
/// rho and |m| are carried as logarithms: a log residual of -1e5 and a logit of 1e5 are numbers
/// like others.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace headlab {

/// A norm of tokens on the simplex.
struct SimplexNorm {
  enum class Place { none, pre, post };
  Place place = Place::none;
  int dim = 0;         ///< d >= 1
  double epsilon = 0;  ///< >= 0
  double gain = 1;     ///< the same for all features
  double bias = 0;     ///< along the direction of the initial m
};

/// The stack, and the tokens before layer 1.
struct SimplexStack {
  int n = 2;       ///< tokens, >= 2
  double rho = 1;  ///< |r_i|^2 >= 0, of each token
  double mu = 0;   ///< |m|^2 >= 0
  double temperature = 1;
  std::vector<double> query_key;   ///< kappa_h [H], of either sign
  std::vector<double> value;       ///< w_h [H]
  std::vector<double> mean_value;  ///< v_h [H]; empty: w_h
  int layers = 1;
  double skip = 0;
  double branch = 1;
  double memory = 0;         ///< a in [0, 1]
  bool alternating = false;  ///< layer l has head (l - 1) mod H alone
  SimplexNorm norm;
};

/// Metrics of one layer, none where undefined. Squares are 0 or infinite beyond the range of double
/// precision; the logarithm, shares and angles are not.
struct SimplexLayer {
  using Metric = std::optional<double>;
  Metric log_residual;  ///< log |R|_F; none where R = 0
  Metric residual_squared, mean_squared;
  Metric residual_share, cosine, participation;  ///< none where X = 0
  Metric stable_rank, effective_rank;            ///< none where X = 0
  Metric diameter;
  /// Averaged over heads; none before layer 1.
  Metric entropy, dobrushin, residual_factor, self_weight, second_eigenvalue;
  Metric rollout_dobrushin, sink_fidelity;  ///< none from layer 1 on where s + b = 0
};

/// A metric by the name it has in results.
struct SimplexMetric {
  const char* name;
  SimplexLayer::Metric SimplexLayer::*value;
};
std::span<const SimplexMetric> simplex_metrics();

/// Computes layers 0 to L, layer 0 being the tokens given.
/// Throws InvalidInput where a number is out of its range or arrays are not of one size.
std::vector<SimplexLayer> simplex_layers(const SimplexStack& stack);

}  // namespace headlab
