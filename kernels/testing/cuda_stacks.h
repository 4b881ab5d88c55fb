// SPDX-License-Identifier: Apache-2.0
/// \file Stacks with every switch of a layer, and how far a device is from the definition.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/stack/stack.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/maps.h"
#include "kernels/stack/worker.h"
#include "kernels/testing/test_plans.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

struct NamedPlan {
  std::string name;
  Plan plan;
};

/// Three heads on normal tokens; `set` makes it another stack.
inline Plan stack_plan(const std::function<void(Stack&)>& set = {}, int n = 9, int d = 7) {
  Stack stack;
  stack.layers = 3;
  stack.heads = 3;
  stack.temperature = 2;
  stack.maps = GaussianMaps{.query_key = 2, .k = 5, .value_dim = 4};
  stack.spectra = true;
  if (set) set(stack);
  return test::stack_plan(stack, static_cast<std::uint64_t>(n), d, 5);
}

inline Eigen::MatrixXd some_normals(int rows, int columns, std::uint64_t number) {
  return normal_matrix({3, number}, Purpose::design, 0, rows, columns, 1);
}
inline Matrices some_maps(int count, int rows, int columns) {
  Matrices maps;
  for (int h = 0; h < count; ++h) {
    maps.push_back(some_normals(rows, columns, 100 + static_cast<std::uint64_t>(h)) /
                   std::sqrt(columns));
  }
  return maps;
}
inline Matrices some_weights(int count, int n) {
  Matrices weights = some_maps(count, n, n);
  for (auto& rows : weights) {
    rows = rows.cwiseAbs();
    for (int i = 0; i < n; ++i) rows.row(i) /= rows.row(i).sum();
  }
  return weights;
}

/// Plans that together have every switch of a layer.
inline std::vector<NamedPlan> stack_plans() {
  std::vector<NamedPlan> plans;
  auto add = [&](const std::string& name, const std::function<void(Stack&)>& set, int n = 9,
                 int d = 7) {
    plans.push_back({name, stack_plan(set, n, d)});
  };
  auto norm = [](NormKind kind, NormPlace place, double epsilon = 0) {
    return TokenNorm{.kind = kind, .place = place, .epsilon = epsilon, .gain = {}, .bias = {}};
  };
  const Eigen::RowVectorXd row = some_normals(1, 7, 50).row(0);

  add("no skip", [](Stack& s) { s.layers = 9; });
  add(
      "more tokens than lanes", [](Stack& s) { s.layers = 2; }, 41, 35);
  add("skip and branch", [](Stack& s) { s.skip = 0.7, s.branch = -0.4; });
  add("skip less branch", [](Stack& s) { s.skip = -1; });
  for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
    for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
      add("norm", [&](Stack& s) { s.norm = norm(kind, place), s.layers = 4; });
      add("norm with epsilon, gain and bias", [&](Stack& s) {
        s.norm = norm(kind, place, 0.1);
        s.norm.gain = row;
        s.norm.bias = 0.3 * row;
        s.skip = 1;
      });
      add("norm around an MLP", [&](Stack& s) {
        s.norm = norm(kind, place);
        s.mlp = GaussianMlp{.width = 6, .bias = 0.5};
      });
    }
  }
  add("values that cancel before a norm", [&](Stack& s) {
    Matrices values = some_maps(2, 7, 7);
    values.push_back(-values[0] - values[1]);
    s.kernel = AttentionKernel::uniform;
    s.maps = ExplicitMaps{.query_key = {}, .value = std::move(values)};
    s.norm = norm(NormKind::rms, NormPlace::post);
  });
  for (const double memory : {0.3, 1.0}) {
    add("memory", [&](Stack& s) { s.memory = memory, s.layers = 5; });
    add("memory of alternating heads",
        [&](Stack& s) { s.memory = memory, s.alternating = true, s.layers = 5; });
  }
  add("memory of a head without logits", [](Stack& s) {
    s.maps =
        ExplicitMaps{.query_key = {Eigen::MatrixXd::Zero(7, 7), Eigen::MatrixXd::Identity(7, 7),
                                   Eigen::MatrixXd::Identity(7, 7)},
                     .value = some_maps(3, 7, 7)};
    s.memory = 0.5;
    s.layers = 4;
  });
  add("mask", [](Stack& s) { s.causal = true; });
  add("mask and memory", [](Stack& s) { s.causal = true, s.memory = 0.4, s.skip = 1; });
  for (const bool causal : {false, true}) {
    add("uniform", [&](Stack& s) { s.kernel = AttentionKernel::uniform, s.causal = causal; });
    for (const double correlation : {0.0, 0.6}) {
      add("independent logits", [&](Stack& s) {
        s.kernel = AttentionKernel::independent_logits;
        s.logit_sd = 1.5;
        s.logit_correlation = correlation;
        s.causal = causal;
        s.memory = correlation;
      });
    }
  }
  for (const bool averaged : {false, true}) {
    add("fixed", [&](Stack& s) {
      s.kernel = AttentionKernel::fixed;
      s.fixed = some_weights(3, 9);
      s.averaged = averaged;
      s.alternating = !averaged;
      s.layers = 4;
    });
    add("explicit maps", [&](Stack& s) {
      s.maps =
          ExplicitMaps{.query_key = some_maps(3, 7, 7), .value = some_maps(averaged ? 1 : 3, 7, 7)};
      s.averaged = averaged;
      s.layers = 6;
    });
  }
  add("scaled identities, hard attention", [](Stack& s) {
    s.maps = ExplicitMaps{.query_key = Matrices(3, 900 * Eigen::MatrixXd::Identity(7, 7)),
                          .value = Matrices(3, 0.4 * Eigen::MatrixXd::Identity(7, 7))};
    s.skip = 0.5;
  });
  add("averaged", [](Stack& s) { s.averaged = true; });
  add("alternating, more heads than layers", [](Stack& s) { s.alternating = true, s.heads = 5; });
  add("shared weights", [](Stack& s) {
    s.shared_weights = true;
    s.mlp = GaussianMlp{.width = 5};
  });
  add("explicit MLP", [](Stack& s) {
    s.mlp = Mlp{.input = some_normals(7, 3, 60),
                .bias = some_normals(1, 3, 61).row(0),
                .output = some_normals(3, 7, 62)};
  });
  add("maps of other ranks", [](Stack& s) { s.maps = GaussianMaps{.k = 11, .value_dim = 1}; });
  for (const bool shared : {false, true}) {
    add("pruned maps", [&](Stack& s) {
      s.maps = GaussianMaps{.k = 5, .value_dim = 4, .samples = 7};
      s.norm = norm(NormKind::rms, NormPlace::pre);
      s.memory = 0.2;
      s.layers = 2;
      s.heads = 2;
      s.shared_weights = shared;
    });
  }

  // Tokens given: one, equal, a token of 0, of mean 0, equal to their mean.
  auto given = [&](const std::string& name, const Eigen::MatrixXd& tokens, NormKind kind,
                   NormPlace place) {
    add(
        name,
        [&](Stack& s) {
          s.tokens = tokens;
          s.norm = norm(kind, place);
          s.skip = 1;
        },
        static_cast<int>(tokens.rows()));
  };
  Eigen::MatrixXd tokens = some_normals(6, 7, 70);
  given("one token", tokens.topRows(1), NormKind::rms, NormPlace::post);
  given("equal tokens", tokens.row(0).replicate(6, 1), NormKind::layer, NormPlace::pre);
  given("two equal tokens", tokens.topRows(2).replicate(2, 1), NormKind::none, NormPlace::pre);
  given("rounding alone", Eigen::MatrixXd::Constant(6, 7, 0.1), NormKind::layer, NormPlace::post);
  tokens.row(2).setZero();
  given("a token of zero", tokens, NormKind::rms, NormPlace::post);
  tokens.topRows(3) = some_normals(3, 7, 71);
  tokens.bottomRows(3) = -tokens.topRows(3);
  given("a mean of zero", tokens, NormKind::rms, NormPlace::pre);
  tokens.row(4).setConstant(3);
  given("a token equal to its mean", tokens, NormKind::layer, NormPlace::post);
  return plans;
}

/// Collects the numbers of metrics.
struct MetricValues {
  std::vector<std::pair<std::string, double>> all;
  void operator()(const char* name, double value, const char*) { all.emplace_back(name, value); }
};

/// Differences of two runs of a stack, each over its tolerance.
struct StackDifference {
  double state = 0;
  double metrics = 0;
  std::string worst;         ///< of the metrics
  double last_exponent = 0;  ///< sigma after the last layer
};

inline double over(double difference, double tolerance) {
  return difference <= HUGE_VAL ? difference / tolerance : HUGE_VAL;
}

/// A replicate as the device has it against the definition of `expected`.
inline StackDifference difference_of(const Plan& plan, const Plan& expected,
                                     std::uint64_t replicate = 2) {
  Options options;
  options.batch_replicates = 1;
  StackBatch batch(
      plan, usable_devices().front().number, options, [](const std::string&) {},
      std::make_shared<StreamPool>());
  batch.compute(replicate, 1);
  const Stack& stack = *expected.stack;
  const StackDraws draws = {expected.seed, replicate};
  const Eigen::MatrixXd tokens = stack_tokens(expected, replicate);
  StackState state(stack, draws, tokens);
  const auto rows = stack_metrics(stack, draws, tokens);
  const auto metrics = batch.metrics(0);
  StackDifference out;
  for (int l = 0; l <= stack.layers; ++l) {
    if (l > 0) state.advance();
    const LayerRecord here = batch.record(0, l);
    const CentredTokens& a = state.tokens();
    const CentredTokens& b = here.tokens;
    // Both may be off by the bounds that the definition carries along; a mean that cancels has
    // none.
    const double of_residual = std::min(2 * a.residual_error, 1e-10);
    const double of_mean = std::min(2 * a.mean_error, 1e-10);
    const double mean = (a.mean - b.mean).norm() / std::max(a.mean.norm(), a.scale());
    out.state =
        std::max({out.state, over((a.residual - b.residual).cwiseAbs().maxCoeff(), of_residual),
                  a.mean.isZero(0) && b.mean.isZero(0) ? 0 : over(mean, of_mean)});
    if (a.exponent != b.exponent) {
      out.state = std::max(out.state, over(std::abs(a.exponent - b.exponent),
                                           of_residual + 0x1p-51 * std::abs(a.exponent)));
    }
    out.last_exponent = b.exponent;
    for (std::size_t h = 0; h < here.attention.size(); ++h) {
      const Attention& weights = state.attention()[h];
      // Without an exponent the rests are differences of weights, and no more accurate than these.
      const double of_weights = weights.exponent < 0 ? 1e-300 : weights.common().maxCoeff();
      const double scale = std::max(of_weights, weights.rest().cwiseAbs().maxCoeff());
      out.state = std::max(
          {out.state, over((weights.common() - here.attention[h].common()).norm(), 1e-10),
           over((weights.rest() - here.attention[h].rest()).cwiseAbs().maxCoeff() / scale, 1e-10)});
    }
    MetricValues right;
    MetricValues got;
    rows[static_cast<std::size_t>(l)].fields(right);
    metrics[static_cast<std::size_t>(l)].fields(got);
    for (std::size_t i = 0; i < right.all.size(); ++i) {
      const double x = right.all[i].second;
      const double y = got.all[i].second;
      if (std::isnan(x) && std::isnan(y)) continue;
      // An energy is e^(2 sigma) times a number, a small entropy a difference of large ones.
      const double miss = over(std::abs(x - y), 1e-10 + 1e-8 * std::abs(x));
      if (!(miss <= out.metrics)) {
        out.metrics = miss <= HUGE_VAL ? miss : HUGE_VAL;
        out.worst = right.all[i].first + " of row " + std::to_string(l) + ": " + std::to_string(x) +
                    " and " + std::to_string(y);
      }
    }
  }
  return out;
}

/// A plan with another temperature and other logits: a control that has to fail.
inline Plan disturbed(const Plan& plan) {
  Plan other = plan;
  Stack stack = *plan.stack;
  stack.temperature *= 1 + 1e-11;
  other.stack = std::make_shared<const Stack>(stack);
  return other;
}

/// True where two results are the same bits, those of NaN too.
inline bool same_nodes(const std::vector<Moments>& a, const std::vector<Moments>& b) {
  auto same = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::ranges::equal(
        x, y, {}, [](double one) { return std::bit_cast<std::uint64_t>(one); },
        [](double one) { return std::bit_cast<std::uint64_t>(one); });
  };
  return std::ranges::equal(a, b, [&](const Moments& x, const Moments& y) {
    return x.count == y.count && same(x.mean, y.mean) && same(x.comoment, y.comoment);
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
