// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/mechanisms/first_order_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/kernel_laws.h"
#include "validation/theory/first_order/tilted_design.h"
#include "validation/theory/mechanisms/finite_n_tokens.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

bool see_the_same_run(const TheoryModel& model) {
  for (const SeenTokens& seen : model.seen) {
    if (seen.sinks > 0 || !(seen == model.seen[0])) return false;
  }
  return true;
}

/// Other tokens whose keys have this correlation with a token's key.
struct Lag {
  double count;
  double correlation;
};

std::vector<Lag> lags_of(const TheoryModel& model) {
  std::vector<Lag> lags;
  const auto n = static_cast<double>(model.tokens(0));
  double correlation = model.correlation;
  for (double j = 1; j < n && std::abs(correlation) > 1e-8; ++j) {
    lags.push_back({2 * (1 - j / n), correlation});
    correlation *= model.correlation;
  }
  // Tokens in one block of 2^c, in different halves of it.
  const double variance = model.levels.empty() ? 1 : filtered_key_moments(model.levels).variance;
  for (std::size_t c = 1; c < model.levels.size(); ++c) {
    double covariance = 0;
    for (std::size_t l = 0; l < model.levels.size(); ++l) {
      for (std::size_t m = 0; m < model.levels.size(); ++m) {
        const std::size_t larger = std::max(l, m);
        if (larger < c) continue;
        covariance += std::ldexp(model.levels[l] * model.levels[m], -static_cast<int>(larger));
      }
    }
    lags.push_back({std::ldexp(1.0, static_cast<int>(c) - 1), covariance / variance});
  }
  return lags;
}

/// Two heads at two points whose keys have a correlation, as heads on one point of twice the
/// dimension.
class TwoPoints {
 public:
  TwoPoints(const TheoryModel& model, std::size_t h, std::size_t l, double correlation) {
    const GaussianLaw& law = model.design.components[0];
    const Index d = law.mean.size();
    VectorXd mean(2 * d);
    mean << law.mean, law.mean;
    MatrixXd covariance(2 * d, 2 * d);
    covariance << law.covariance, correlation * law.covariance, correlation * law.covariance,
        law.covariance;
    both_.design = {{1.0}, {{mean, covariance}}};
    both_.kernel = model.kernel;
    const auto at = [&](const MatrixXd& w, Index point) {
      MatrixXd placed = MatrixXd::Zero(2 * d, w.cols());
      placed.middleRows(point * d, d) = w;
      return placed;
    };
    const auto joined = [](const MatrixXd& a, const MatrixXd& b) {
      MatrixXd all(a.rows(), a.cols() + b.cols());
      all << a, b;
      return all;
    };
    const auto add = [&](const MatrixXd& w_h, const MatrixXd& w_l, std::vector<MatrixXd>& all) {
      all = {at(w_h, 0), at(w_l, 0), at(w_h, 1), at(w_l, 1), at(joined(w_h, w_l), 0)};
    };
    add(model.projections[h], model.projections[l], both_.projections);
    add(model.query_projection(h), model.query_projection(l), both_.query_projections);
  }

  /// The sum over one lag in the relative second-order term, times n.
  double term(const VectorXd& query) const {
    VectorXd x(2 * query.size());
    x << query, query;
    enum : std::size_t { h_here, l_here, h_there, l_there, both_here };
    const double d_h = log_mean(h_here, h_here, x);
    const double d_l = log_mean(l_here, l_here, x);
    const double d_both = log_mean(both_here, both_here, x);
    const auto ratio = [&](std::size_t a, std::size_t b, double log_means) {
      return std::exp(log_mean(a, b, x) - log_means);
    };
    return ratio(h_here, h_there, 2 * d_h) + ratio(l_here, l_there, 2 * d_l) +
           ratio(h_here, l_there, d_h + d_l) - ratio(both_here, h_there, d_both + d_h) -
           ratio(both_here, l_there, d_both + d_l) - 1;
  }

 private:
  /// log E K_a K_b, or log E K_a where they are one.
  double log_mean(std::size_t a, std::size_t b, const VectorXd& x) const {
    return TiltedDesign(both_, a, 1, b, a == b ? 0 : 1, false).at(x).log_mass;
  }

  TheoryModel both_;
};

}  // namespace

std::optional<std::string> first_order_obstacle(const TheoryModel& model) {
  std::string text;
  if (!model.keep.off()) {
    text = "heads.mechanism.keep: has no form of first order";
  } else if (model.levels.empty() && model.correlation == 0) {
    return std::nullopt;
  } else {
    text = model.levels.empty() ? "data.sequence: dependent points have"
                                : "heads.mechanism.levels: has";
    text += " a form of first order ";
    if (!model.zero_regression || !model.constant_noise || model.design.components.size() != 1 ||
        !see_the_same_run(model)) {
      text +=
          "with noise alone, of constant variance, on a normal design, of heads that see the same "
          "successive tokens";
    } else if (!model.levels.empty() && !model.is_softmax()) {
      text += "with the softmax kernel";
    } else if (!model.levels.empty() && model.correlation != 0) {
      text += "with independent points";
    } else {
      return std::nullopt;
    }
  }
  text += simulation_instead;
  return text;
}

std::vector<FirstOrder> first_order_of_tokens(const TheoryModel& model) {
  if (model.levels.empty() && model.correlation == 0) return first_order(model);
  const std::vector<Lag> lags = lags_of(model);
  TheoryModel independent = model;
  independent.levels.clear();
  independent.correlation = 0;
  if (!model.levels.empty()) {
    independent.standard_design = false;
    independent.design.components[0].covariance *= filtered_key_moments(model.levels).variance;
  }
  std::vector<FirstOrder> theory = first_order(independent);
  const auto n = static_cast<double>(model.tokens(0));
  // Of the remainder, what is of third order: with noise alone the rest is the second order's size.
  // Dependent tokens count for so many fewer, once for each order beyond the first.
  double fewer = 1;
  for (const Lag& lag : lags) fewer += lag.count * std::abs(lag.correlation);
  std::vector<MatrixXd> third;
  for (const FirstOrder& at : theory) {
    third.push_back(fewer * fewer * (at.covariance_remainder - at.next_covariance.cwiseAbs()));
  }
  for (std::size_t h = 0; h < model.projections.size(); ++h) {
    for (std::size_t l = 0; l <= h; ++l) {
      const auto i = static_cast<Index>(h);
      const auto j = static_cast<Index>(l);
      for (const Lag& lag : lags) {
        const TwoPoints points(independent, h, l, lag.correlation);
        for (std::size_t q = 0; q < theory.size(); ++q) {
          FirstOrder& at = theory[q];
          at.next_covariance(i, j) +=
              at.covariance(i, j) * lag.count * points.term(model.queries[q]) / n;
          at.next_covariance(j, i) = at.next_covariance(i, j);
        }
      }
    }
  }
  for (std::size_t q = 0; q < theory.size(); ++q) {
    theory[q].covariance_remainder = theory[q].next_covariance.cwiseAbs() + third[q];
  }
  return theory;
}

}  // namespace headlab
