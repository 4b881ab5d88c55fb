// SPDX-License-Identifier: Apache-2.0
/// \file Exact finite-n moments of heads whose kernels see one scalar of a design point, by
/// quadrature at one resolution. With phi(s) = E exp(-s K) and 1/D = int_0^inf exp(-s D) ds,
///
///     E f_h     = n int E[K_h m e^(-sK_h)] phi^(n-1) ds
///     E f_h^2   = n int s E[K_h^2 (m^2+s2) e^(-sK_h)] phi^(n-1) ds
///                 + n(n-1) int s E[K_h m e^(-sK_h)]^2 phi^(n-2) ds
///     E f_h f_l = n int int E[K_h K_l (m^2+s2) e^(-sK_h-tK_l)] phi(s,t)^(n-1) ds dt
///                 + n(n-1) int int E[K_h m e^(..)] E[K_l m e^(..)] phi(s,t)^(n-2) ds dt
///
/// over sigma = log s and a grid of the design. Where two heads see different tokens, n and n (n -
/// 1) are numbers of pairs of tokens, and phi(s,t) is that of one head where the other does not see
/// the token. All figures are of m - m(x): weights sum to one, so
/// that this moves means alone and spares the covariance a cancellation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "validation/theory/exact/scalar_head.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// One head's moments about m(x), with n int E[K e^(-sK)] phi^(n-1) ds - 1, which is 0 (weights sum
/// to one).
struct HeadMoments {
  double mean = 0;
  double square = 0;
  double normalisation_error = 0;
  bool coarsened = false;  ///< a grid met the limit of the resolution
};
/// Nodes of the design, [node]: L there, the probability, and that times E[m - m(x)] and
/// E[(m - m(x))^2 + s2].
struct DesignNodes {
  Eigen::ArrayXd level;
  Eigen::VectorXd probability;
  Eigen::VectorXd mean;
  Eigen::VectorXd square;
  bool coarsened = false;  ///< panels are wider than was asked for
};
/// The nodes of points with given levels, a component each.
using DesignOf = std::function<std::vector<DesignNodes>(const SigmaRange&, const Resolution&,
                                                        const LevelRange&)>;
/// Of a head that sees one scalar, U = w.X.
std::vector<DesignNodes> scalar_design(const TheoryModel& model, double truth,
                                       const ScalarHead& head, const SigmaRange& range,
                                       const Resolution& resolution, const LevelRange& levels = {});
/// All nodes of a design under a head with constant s2 and m = 0; radial heads too.
std::vector<DesignNodes> noise_nodes(const ScalarHead& head, const SigmaRange& range, double s2,
                                     const Resolution& resolution);
HeadMoments head_moments(std::uint64_t n, const Nodes& sigma,
                         const std::vector<DesignNodes>& design);
HeadMoments noise_head_moments(std::uint64_t n, double s2, const ScalarHead& head,
                               const SigmaRange& range, const Resolution& resolution);
/// \param n points that the head sees
HeadMoments scalar_head_moments(const TheoryModel& model, std::uint64_t n, double truth,
                                const ScalarHead& head, const SigmaRange& range,
                                const Resolution& resolution);

/// Numbers of tokens, which are independent, that two heads see.
struct PairTokens {
  double both = 0;
  double first = 0;   ///< the first head alone
  double second = 0;  ///< the second head alone

  PairTokens(const TheoryModel& model, std::size_t h, std::size_t l)
      : both(static_cast<double>(model.shared_tokens(h, l))),
        first(static_cast<double>(model.tokens(h)) - both),
        second(static_cast<double>(model.tokens(l)) - both) {}
};

/// Two heads' product moment about m(x), with E f_h f_l - 1 for responses that are all one.
struct PairMoments {
  double product = 0;
  double normalisation_error = 0;
  bool coarsened = false;  ///< a grid met the limit of the resolution
};
PairMoments scalar_pair_moments(const TheoryModel& model, const PairTokens& tokens, double truth,
                                const ScalarHead& first, const ScalarHead& second,
                                const Resolution& resolution);

/// Throws InvalidInput, with the figure, unless |normalisation error| <= 1e-7.
/// \param what the integral is of, as in "heads 0 and 1"
void require_normalisation(double normalisation_error, const std::string& what);

}  // namespace headlab
