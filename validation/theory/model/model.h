// SPDX-License-Identifier: Apache-2.0
/// \file A scenario in the terms of its closed forms: Gaussian mixtures, functions whose Gaussian
/// expectations are known, matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "kernels/copy_on_write.h"
#include "kernels/mechanism.h"
#include "validation/theory/model/integrable.h"

namespace headlab {

struct Condition;
struct KernelLaw;
struct Plan;

/// The law of a design point: component c with probability weights[c].
struct GaussianMixture {
  std::vector<double> weights;  ///< [c], sum 1; those of weight 0 are left out
  std::vector<GaussianLaw> components;
};

/// Tokens that both of two heads see.
std::uint64_t shared_tokens(const SeenTokens& a, const SeenTokens& b);

/// Everything a closed form needs. Axes: d, k, H = heads, Q = queries as in the plan. Heads weigh
/// tokens: the design points, or what stages before the weights make of them
/// (validation/theory/mechanisms/token_model.h).
struct TheoryModel {
  std::uint64_t n = 1;  ///< tokens
  GaussianMixture design;
  bool standard_design = false;                              ///< X ~ N(0, I)
  std::shared_ptr<const IntegrableFunction> regression;      ///< m
  bool zero_regression = false;                              ///< m = 0 everywhere
  std::shared_ptr<const IntegrableFunction> noise_variance;  ///< s^2(x)
  double noise_sd = 0;                                       ///< s, where it is constant
  bool constant_noise = true;                                ///< s^2(x) = noise_sd^2 everywhere
  CopyOnWrite<KernelLaw> kernel;                             ///< gaussian or softmax
  std::vector<Eigen::MatrixXd> projections;                  ///< [H] of [d][k_h]
  std::vector<Eigen::MatrixXd> query_projections;            ///< as these; empty: the same
  Eigen::VectorXd head_weights;                              ///< [H]
  std::vector<Eigen::VectorXd> queries;                      ///< [Q] of [d]
  std::vector<double> truth;                                 ///< [Q], m at the queries
  std::vector<SeenTokens> seen;                              ///< [H]; empty: all tokens
  Keep keep;
  std::vector<double> levels;  ///< of the keys, with a first one that is not 0; empty: one
  double correlation = 0;      ///< of successive tokens, X_i = phi X_{i-1} + ...

  bool is_softmax() const;
  /// What projects the queries of head h.
  const Eigen::MatrixXd& query_projection(std::size_t h) const {
    return query_projections.empty() ? projections[h] : query_projections[h];
  }
  SeenTokens seen_by(std::size_t h) const { return seen.empty() ? SeenTokens{.end = n} : seen[h]; }
  /// N_h, tokens that head h sees.
  std::uint64_t tokens(std::size_t h) const { return seen_by(h).count(); }
  /// Tokens that both heads see.
  std::uint64_t shared_tokens(std::size_t h, std::size_t l) const {
    return headlab::shared_tokens(seen_by(h), seen_by(l));
  }
};

/// What a closed form suggests where it has to reject a scenario.
inline constexpr const char* simulation_instead =
    " - simulate with headlab run, or use data.fixed_design = true";

/// Reads the design points, regression, noise, kernel, heads and queries of a scenario, whatever
/// its stages and its sequence. Throws as theory_model(), with `way_out` as the advice.
TheoryModel point_model(const Condition& condition, const Plan& plan,
                        const std::string& way_out = simulation_instead);

/// Reads a scenario as a model: normal or mixture design; regression of law zero, linear, cosines,
/// random_cosines, additive, single_index or bumps; any noise; gaussian or softmax kernel. Whether
/// the design is fixed is not looked at. Points are independent and heads have no stages but
/// `transform`; token_model() reads the others. Throws InvalidInput with one line that names the
/// assumption a closed form needs and the scenario does not meet.
TheoryModel theory_model(const Condition& condition);

/// Biases and covariances of the heads over training sets at one query, each with how far it may
/// be off: `remainder` is a size in the units of the figure, NaN where nothing is known of it.
struct HeadTheory {
  Eigen::VectorXd bias;                  ///< [H], E f_h - m(x)
  Eigen::VectorXd bias_remainder;        ///< [H]
  Eigen::MatrixXd covariance;            ///< [H][H], Cov(f_h, f_l)
  Eigen::MatrixXd covariance_remainder;  ///< [H][H]
};

}  // namespace headlab
