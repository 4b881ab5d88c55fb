// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/simplex.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <string>

#include "engine/files/error.h"

namespace headlab {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// sign e^log, 0 where log is -infinity.
struct SignedLog {
  double log = minus_infinity;
  double sign = 1;
};

SignedLog signed_log(double x) {
  return {std::log(std::abs(x)), x < 0 ? -1.0 : 1.0};
}

SignedLog operator*(SignedLog a, SignedLog b) {
  // A zero beats an infinite logarithm of the other factor.
  if (a.log == minus_infinity || b.log == minus_infinity) return {};
  return {a.log + b.log, a.sign * b.sign};
}

SignedLog sum(std::span<const SignedLog> terms) {
  double largest = minus_infinity;
  for (const SignedLog& term : terms) largest = std::max(largest, term.log);
  if (largest == minus_infinity) return {};
  double scaled = 0;
  for (const SignedLog& term : terms) scaled += term.sign * std::exp(term.log - largest);
  return {largest + std::log(std::abs(scaled)), scaled < 0 ? -1.0 : 1.0};
}

SignedLog sum(std::initializer_list<SignedLog> terms) {
  return sum(std::span<const SignedLog>(terms.begin(), terms.size()));
}

/// A simplex: r_i and m along their initial directions, as factors of unit vectors.
struct SimplexState {
  SignedLog residual, mean;

  double log_rho() const { return 2 * residual.log; }
  double log_mu() const { return 2 * mean.log; }
};

/// phi_h and what else a layer says of one head.
struct SimplexHead {
  SignedLog phi;
  double one_less_phi = 0;
  double self_weight = 0;
  double entropy = 0;
};

SimplexHead head_at(SignedLog logit, int n) {
  // Beyond these, exp(-|g|) is 0, and phi(g) = g/n to the last digit.
  constexpr double hardest = 1e4;
  constexpr double softest_log = -600;
  const double others = n - 1;
  const double size = std::min(std::exp(logit.log), hardest);
  const double fall = std::exp(-size);
  SimplexHead head;
  if (logit.sign > 0) {
    const double q = others * fall;
    head.phi = signed_log(-std::expm1(-size) / (1 + q));
    head.one_less_phi = n * fall / (1 + q);
    head.self_weight = 1 / (1 + q);
    head.entropy = std::log1p(q) + size * q / (1 + q);
  } else {
    const double total = fall + others;
    head.phi = signed_log(std::expm1(-size) / total);
    head.one_less_phi = n / total;
    head.self_weight = fall / total;
    head.entropy = std::log(total) + size * fall / total;
  }
  if (logit.log < softest_log) {
    head.phi = {logit.log - std::log(static_cast<double>(n)), logit.sign};
  }
  return head;
}

SimplexState normed(const SimplexState& state, const SimplexNorm& norm) {
  const double dim = norm.dim;
  const SignedLog square =
      sum({{state.log_mu()}, {state.log_rho()}, signed_log(dim * norm.epsilon)});
  const SignedLog bias = signed_log(norm.bias);
  if (square.log == minus_infinity) return {{}, bias};
  const SignedLog scale = signed_log(norm.gain) * SignedLog{(std::log(dim) - square.log) / 2};
  return {scale * state.residual, sum({scale * state.mean, bias})};
}

void describe_tokens(const SimplexState& state, int n, SimplexLayer& layer) {
  const double others = n - 1;
  const double log_squared = std::log(static_cast<double>(n)) + state.log_rho();
  if (log_squared > minus_infinity) layer.log_residual = log_squared / 2;
  layer.residual_squared = std::exp(log_squared);
  layer.mean_squared = std::exp(state.log_mu());
  layer.diameter = std::exp((std::log(2 * n / others) + state.log_rho()) / 2);
  if (state.log_rho() == minus_infinity && state.log_mu() == minus_infinity) return;
  // mu/rho, and both shares of |x|^2 without a difference.
  const double log_odds = state.log_mu() - state.log_rho();
  const double share = 1 / (1 + std::exp(log_odds));
  const double rest = 1 / (1 + std::exp(-log_odds));
  layer.residual_share = share;
  layer.cosine = rest - share / others;
  layer.participation = 1 / (rest * rest + share * share / others);
  layer.stable_rank = 1 / std::max(rest, share / others);
  // Singular values of X over the larger: m once, the residuals n - 1 times.
  const double largest = std::max(rest, share / others);
  const double first = std::sqrt(rest / largest);
  const double other = std::sqrt(share / others / largest);
  const double total = first + others * other;
  const auto term = [&](double s) { return s > 0 ? -s / total * std::log(s / total) : 0; };
  layer.effective_rank = std::exp(term(first) + others * term(other));
}

void describe_attention(const std::vector<SimplexHead>& heads, SimplexLayer& layer) {
  double entropy = 0, dobrushin = 0, factor = 0, self_weight = 0;
  for (const SimplexHead& head : heads) {
    const double phi = std::exp(head.phi.log);
    entropy += head.entropy;
    dobrushin += phi;
    factor += phi * phi;
    self_weight += head.self_weight;
  }
  const auto count = static_cast<double>(heads.size());
  layer.entropy = entropy / count;
  layer.dobrushin = layer.second_eigenvalue = dobrushin / count;
  layer.residual_factor = factor / count;
  layer.self_weight = self_weight / count;
}

/// Rollout P_l = psi I + (1 - psi) J, with psi the product of (s + b phi)/(s + b).
class SimplexRollout {
 public:
  SimplexRollout(const SimplexStack& stack)
      : skip_(stack.skip), branch_(stack.branch), n_(stack.n) {}

  void describe(SimplexLayer& layer) const {
    if (defined_) {
      layer.rollout_dobrushin = std::exp(log_size_);
      layer.sink_fidelity = fidelity_;
    }
  }

  void step(const std::vector<SimplexHead>& heads) {
    if (skip_ + branch_ == 0) defined_ = false;
    if (!defined_) return;
    double one_less = 0;
    for (const SimplexHead& head : heads) one_less += head.one_less_phi;
    const double fall = branch_ / (skip_ + branch_) * one_less / static_cast<double>(heads.size());
    // Where psi is all but 1, fall has its digits; where it is small, phi has them.
    log_size_ += fall < 0.5 ? std::log1p(-fall) : std::log(std::abs(factor(heads)));
    if (fall > 1) sign_ = -sign_;
    const double one_less_psi = sign_ > 0 ? -std::expm1(log_size_) : 1 + std::exp(log_size_);
    fidelity_ = std::max(fidelity_.value_or(minus_infinity), one_less_psi / n_);
  }

 private:
  double factor(const std::vector<SimplexHead>& heads) const {
    double phi = 0;
    for (const SimplexHead& head : heads) phi += head.phi.sign * std::exp(head.phi.log);
    return (skip_ + branch_ * phi / static_cast<double>(heads.size())) / (skip_ + branch_);
  }

  double skip_, branch_;
  int n_;
  bool defined_ = true;
  double log_size_ = 0;
  int sign_ = 1;
  std::optional<double> fidelity_;
};

void require(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("simplex: ") + message);
}

bool all_finite(const std::vector<double>& numbers) {
  return std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); });
}

void require_valid(const SimplexStack& stack) {
  require(stack.n >= 2, "n must be at least 2");
  require(stack.layers >= 0, "layers must not be negative");
  require(std::isfinite(stack.rho) && stack.rho >= 0, "rho must be finite and not negative");
  require(std::isfinite(stack.mu) && stack.mu >= 0, "mu must be finite and not negative");
  require(std::isfinite(stack.temperature) && stack.temperature > 0,
          "temperature must be finite and positive");
  require(!stack.query_key.empty() && stack.value.size() == stack.query_key.size() &&
              (stack.mean_value.empty() || stack.mean_value.size() == stack.value.size()),
          "query_key and values must have one number for each head");
  require(all_finite(stack.query_key) && all_finite(stack.value) && all_finite(stack.mean_value),
          "query_key and values must be finite");
  require(std::isfinite(stack.skip) && std::isfinite(stack.branch),
          "skip and branch must be finite");
  require(stack.memory >= 0 && stack.memory <= 1, "memory must be in [0, 1]");
  const SimplexNorm& norm = stack.norm;
  if (norm.place == SimplexNorm::Place::none) return;
  require(norm.dim >= 1, "a norm needs dim");
  require(std::isfinite(norm.epsilon) && norm.epsilon >= 0,
          "epsilon must be finite and not negative");
  require(std::isfinite(norm.gain) && std::isfinite(norm.bias), "gain and bias must be finite");
}

}  // namespace

std::span<const SimplexMetric> simplex_metrics() {
  using L = SimplexLayer;
  static constexpr std::array<SimplexMetric, 16> metrics = {{
      {"log_residual", &L::log_residual},
      {"residual_squared", &L::residual_squared},
      {"mean_squared", &L::mean_squared},
      {"residual_share", &L::residual_share},
      {"cosine", &L::cosine},
      {"participation", &L::participation},
      {"stable_rank", &L::stable_rank},
      {"effective_rank", &L::effective_rank},
      {"diameter", &L::diameter},
      {"entropy", &L::entropy},
      {"dobrushin", &L::dobrushin},
      {"residual_factor", &L::residual_factor},
      {"self_weight", &L::self_weight},
      {"second_eigenvalue", &L::second_eigenvalue},
      {"rollout_dobrushin", &L::rollout_dobrushin},
      {"sink_fidelity", &L::sink_fidelity},
  }};
  return metrics;
}

std::vector<SimplexLayer> simplex_layers(const SimplexStack& stack) {
  require_valid(stack);
  const std::size_t heads = stack.query_key.size();
  const bool pre = stack.norm.place == SimplexNorm::Place::pre;
  const bool post = stack.norm.place == SimplexNorm::Place::post;
  const std::vector<double>& mean_value = stack.mean_value.empty() ? stack.value : stack.mean_value;
  const SignedLog skip = signed_log(stack.skip);
  const SignedLog branch = signed_log(stack.branch);
  const SignedLog unit_logit = signed_log(stack.n / (stack.n - 1.0) / stack.temperature);

  SimplexState state = {{std::log(stack.rho) / 2}, {std::log(stack.mu) / 2}};
  std::vector<SignedLog> logits(heads);
  SimplexRollout rollout(stack);
  std::vector<SimplexLayer> layers(static_cast<std::size_t>(stack.layers) + 1);
  describe_tokens(state, stack.n, layers[0]);
  layers[0].rollout_dobrushin = 1;
  layers[0].sink_fidelity = 0;
  for (std::size_t l = 1; l < layers.size(); ++l) {
    const SimplexState input = pre ? normed(state, stack.norm) : state;
    for (std::size_t h = 0; h < heads; ++h) {
      const SignedLog now =
          signed_log(stack.query_key[h]) * unit_logit * SignedLog{input.log_rho()};
      logits[h] =
          l == 1 ? now
                 : sum({signed_log(stack.memory) * logits[h], signed_log(1 - stack.memory) * now});
    }
    std::vector<SimplexHead> active;
    std::vector<SignedLog> on_residual, on_mean;
    for (std::size_t h = 0; h < heads; ++h) {
      if (stack.alternating && h != (l - 1) % heads) continue;
      active.push_back(head_at(logits[h], stack.n));
      on_residual.push_back(signed_log(stack.value[h]) * active.back().phi);
      on_mean.push_back(signed_log(mean_value[h]));
    }
    // Without a norm, one factor for both places: s = -b sum is then 0 exactly.
    const auto add = [&](SignedLog before, SignedLog seen, std::span<const SignedLog> factors) {
      if (!pre) return sum({skip, branch * sum(factors)}) * before;
      return sum({skip * before, branch * sum(factors) * seen});
    };
    state = {add(state.residual, input.residual, on_residual),
             add(state.mean, input.mean, on_mean)};
    if (post) state = normed(state, stack.norm);
    describe_tokens(state, stack.n, layers[l]);
    describe_attention(active, layers[l]);
    rollout.step(active);
    rollout.describe(layers[l]);
  }
  return layers;
}

}  // namespace headlab
