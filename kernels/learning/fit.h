// SPDX-License-Identifier: Apache-2.0
/// \file Learns the heads of an ensemble by gradient descent on one training set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/learning/head_gradients.h"

namespace headlab {

/// Steps between two checks of how far a fit has come.
inline constexpr std::uint64_t check_steps = 10;
/// Maximum held-out points: they suffice to estimate the error, and each check weighs all keys for
/// all of them.
inline constexpr std::uint64_t max_held_out = 1000;

/// State of a fit at a check.
struct FitCheck {
  std::uint64_t step = 0;  ///< steps done
  /// Mean of (Y - f)^2, each point's own value left out, over the batches since the last check;
  /// none before the first step.
  std::optional<double> batch_error;
  std::optional<double> held_out_error;  ///< mean of (Y - f)^2 over the points held out
  HeadParameters heads;
};

/// Result of a fit.
struct Fit {
  HeadParameters heads;
  std::uint64_t steps = 0;               ///< after which these heads were reached
  std::optional<double> held_out_error;  ///< theirs
  std::vector<FitCheck> history;         ///< if FitHooks::keeps_history
};

/// Callbacks of a fit.
struct FitHooks {
  std::function<bool()> stop = {};                  ///< true: stop without a result
  std::function<void(const FitCheck&)> check = {};  ///< called at each check
  bool keeps_history = false;
};

/// Minimises over the matrices W_h, and the weights a_h where they are learned,
///
///     mean_q (Y_q - sum_h a_h f_h(X_q))^2 + lambda (1 - chordal index)
///
/// over the training points X_q, each with its own value left out of f_h(X_q), by stochastic
/// gradients over batches drawn with replacement. The steps are Adam's (Kingma and Ba 2015) with
/// one second moment a matrix instead of one an element, so that they do not depend on the basis
/// (Becigneul and Ganea 2019): a matrix moves by about learning_rate / sqrt(1 + step/100) in
/// Frobenius norm, for orthonormal columns along the tangent space and back by QR. The last
/// share `held_out` of the points is neither key nor in a batch; the fit ends after `patience`
/// checks without a new minimum of their error, and the heads of the minimum are its result.
/// Without held-out points the result is the last heads.
///
/// The batches depend only on (learning.seed, number), and a fit of fewer steps is the beginning of
/// a longer one. Returns nothing where `hooks.stop` ended it. Requires 2 training points or more
/// after those held out. Throws std::invalid_argument where the error is not finite.
std::optional<Fit> fit_heads(const Learning& learning, std::uint64_t number,
                             const FitPoints& points, HeadGradients& gradients,
                             const FitHooks& hooks = {});

/// Mean of (Y - f)^2 over the points that a fit held out, as its held_out_error, but with keys that
/// the heads were not fitted to: as many points of another training set as the fit had. None
/// without points held out.
std::optional<double> error_at_fresh_keys(const Learning& learning, const HeadParameters& heads,
                                          const FitPoints& points, const FitPoints& fresh,
                                          HeadGradients& gradients);

/// Points of n that a fit holds out.
std::uint64_t held_out_points(const Learning& learning, std::uint64_t n);

/// chordal index of the column spaces of W_h (THEORY: 1 - mean over pairs of |P_h P_l|_F^2 / k),
/// and its gradient in the matrices `keys` [H][d][k]. H >= 2, full rank.
double chordal_gradient(const HeadParameters& heads, std::vector<double>& gradient);

}  // namespace headlab
