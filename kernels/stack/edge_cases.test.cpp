// SPDX-License-Identifier: Apache-2.0
// Stacks at their edges: each has its documented value, and NaN means
// undefined.
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "kernels/stack/layers.h"
#include "kernels/stack/maps.h"
#include "kernels/stack/testing/known_stack.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// One softmax head with M = kappa I, V = w I.
Stack scaled_stack(int d, double kappa, double w) {
  Stack stack;
  stack.layers = 3;
  const MatrixXd identity = MatrixXd::Identity(d, d);
  stack.maps = ExplicitMaps{{kappa * identity}, {w * identity}};
  return stack;
}

MatrixXd random_tokens(int n, int d, std::uint64_t replicate = 0) {
  return normal_matrix({3, replicate}, Purpose::design, 0, n, d, 1);
}

/// Names of the metrics that are not finite, those that need spectra or a
/// target left out.
std::set<std::string> undefined_of(const LayerMetrics& metrics) {
  struct Collect {
    std::set<std::string> names;
    void operator()(const char* name, double value, const char*) {
      if (!std::isfinite(value)) names.insert(name);
    }
  } collect;
  metrics.fields(collect);
  for (const char* name :
       {"stable_rank", "effective_rank", "second_eigenvalue", "rank_at_least", "rank_at_most",
        "affine_rank_at_least", "affine_rank_at_most", "rank_undecided", "target_distance"}) {
    collect.names.erase(name);
  }
  return collect.names;
}

using Names = std::set<std::string>;

TEST(stack_edges, row_0_has_no_attention) {
  const auto rows = stack_metrics(scaled_stack(3, 1, 1), {}, random_tokens(4, 3));
  EXPECT_EQ(undefined_of(rows[0]),
            (Names{"entropy", "dobrushin", "residual_factor", "self_weight"}));
  EXPECT_EQ(rows[0].rollout_dobrushin, 1);
  EXPECT_EQ(rows[0].sink_fidelity, 0);
  EXPECT_EQ(undefined_of(rows[3]), Names{});
}

TEST(stack_edges, fidelity_is_negative_where_all_weights_of_the_rollout_are) {
  Stack stack = scaled_stack(3, 1, 1);
  stack.kernel = AttentionKernel::uniform;
  stack.skip = 2;
  stack.branch = -1;
  // P = 2 I - J
  const auto rows = stack_metrics(stack, {}, random_tokens(4, 3));
  EXPECT_NEAR(rows[1].sink_fidelity, -0.25, 1e-15);
}

TEST(stack_edges, one_token_attends_to_itself) {
  const auto rows = stack_metrics(scaled_stack(3, 1, 0.5), {}, random_tokens(1, 3));
  EXPECT_EQ(undefined_of(rows[1]),
            (Names{"log_residual", "diameter", "cosine", "dobrushin", "residual_factor",
                   "rollout_dobrushin", "sink_fidelity"}));
  EXPECT_EQ(rows[1].self_weight, 1);
  EXPECT_EQ(rows[1].entropy, 0);
  EXPECT_EQ(rows[1].residual_share, 0);
  EXPECT_EQ(rows[1].collapsed, 1);
  EXPECT_DOUBLE_EQ(rows[1].mean_squared, 0.25 * rows[0].mean_squared);
}

TEST(stack_edges, equal_tokens_are_collapsed_under_every_switch) {
  for (const NormKind kind : {NormKind::none, NormKind::rms, NormKind::layer}) {
    Stack stack = scaled_stack(3, 1, 1);
    stack.norm.kind = kind;
    stack.memory = 0.5;
    stack.skip = 1;
    stack.mlp = GaussianMlp{.width = 5, .bias = 0.1};
    MatrixXd x(4, 3);
    x.rowwise() = random_tokens(1, 3).row(0);
    for (const LayerMetrics& row : stack_metrics(stack, {}, x)) {
      EXPECT_EQ(row.collapsed, 1);
      EXPECT_TRUE(std::isnan(row.log_residual));
      EXPECT_EQ(row.residual_squared, 0);
      EXPECT_EQ(row.residual_share, 0);
      EXPECT_EQ(row.cosine, 1);
    }
  }
}

TEST(stack_edges, two_equal_tokens_stay_equal) {
  Stack stack = scaled_stack(3, 1, 1);
  stack.skip = 1;
  stack.norm = {.kind = NormKind::layer, .place = NormPlace::post};
  stack.mlp = GaussianMlp{.width = 5};
  MatrixXd x = random_tokens(5, 3);
  x.row(3) = x.row(1);
  StackState state(stack, {}, x);
  for (int l = 0; l < 3; ++l) state.advance();
  EXPECT_EQ(state.tokens().collapsed(), false);
  EXPECT_LE((state.tokens().residual.row(3) - state.tokens().residual.row(1)).norm(), 1e-14);
}

/// Squared lengths of the mean after the last of `layers` layers with uniform attention and an rms
/// norm behind each.
double mean_behind(Stack stack, const MatrixXd& x, int layers = 1) {
  stack.kernel = AttentionKernel::uniform;
  stack.layers = layers;
  stack.norm = {.kind = NormKind::rms, .place = NormPlace::post};
  return stack_metrics(stack, {}, x).back().mean_squared;
}

// A norm would blow rounding up to unit length, whichever of its sums has cancelled.
TEST(stack_edges, a_mean_that_cancels_is_zero) {
  const MatrixXd about_zero = simplex_tokens(7, 7, 0.3, 0);
  Stack stack = scaled_stack(7, 0, 0.37);
  stack.skip = 0;
  EXPECT_EQ(mean_behind(stack, about_zero), 0) << "the mean of the tokens";
  EXPECT_EQ(mean_behind(stack, about_zero * VectorXd::LinSpaced(7, 0.1, 3).asDiagonal()), 0);
  EXPECT_EQ(mean_behind(stack, about_zero, 5), 0) << "carried along";

  // Means along (1, 1, 1), on which the value map and two output maps cancel.
  MatrixXd x = simplex_tokens(3, 3, 0.3, 0);
  x.array() += 0.7;
  MatrixXd map(3, 3);
  map << 0.1, 0.2, 0.3, 0.2, 0.4, 0.6, -0.3, -0.6, -0.9;
  stack.maps = ExplicitMaps{{}, {map}};
  EXPECT_EQ(mean_behind(stack, x), 0) << "the value map";
  stack.heads = 3;
  stack.maps = ExplicitMaps{{},
                            {0.1 * map + MatrixXd::Identity(3, 3) * 0.1,
                             MatrixXd::Identity(3, 3) * 0.2, MatrixXd::Identity(3, 3) * -0.3}};
  EXPECT_EQ(mean_behind(stack, x), 0) << "heads";
  stack = scaled_stack(3, 0, -1);
  stack.skip = 1;
  EXPECT_EQ(mean_behind(stack, MatrixXd::Ones(3, 1) * x.row(0)), 0) << "skip and branch";
}

TEST(stack_edges, a_small_mean_keeps_its_direction) {
  MatrixXd x = simplex_tokens(3, 3, 1, 0);
  x.array() += 1e-9;
  Stack stack = scaled_stack(3, 0, 1);
  stack.skip = 0;
  EXPECT_NEAR(mean_behind(stack, x), 3, 1e-5);
  // What remains of the mean in 12 layers has the digits of the first.
  stack = scaled_stack(3, 0, -0.999);
  stack.skip = 1;
  EXPECT_NEAR(mean_behind(stack, MatrixXd::Ones(3, 1) * x.row(0), 12), 3, 1e-12);
}

TEST(stack_edges, a_token_equal_to_its_mean_becomes_the_bias) {
  MatrixXd x = random_tokens(4, 3);
  x.row(2).setConstant(0.7);
  TokenNorm norm{.kind = NormKind::layer, .bias = Eigen::RowVector3d(1, 2, 3)};
  const MatrixXd y = plain(apply_norm(norm, centred(x)));
  EXPECT_LE((y.row(2) - norm.bias).norm(), 1e-14);
  EXPECT_NEAR((y.row(0) - norm.bias).squaredNorm(), 3, 1e-13);
  EXPECT_EQ(normed(centred(x), NormKind::layer, 0).zeros, 1);
  EXPECT_EQ(normed(centred(x), NormKind::rms, 0).zeros, 0);
  // A token of 0 has no direction, so no cosine.
  x.row(2).setZero();
  const auto rows = stack_metrics(scaled_stack(3, 1, 1), {}, x);
  EXPECT_EQ(undefined_of(rows[0]).count("cosine"), 1u);
  EXPECT_EQ(undefined_of(rows[1]), Names{});
}

TEST(stack_edges, no_mean_under_a_norm) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    Stack stack = scaled_stack(4, 1, 1);
    stack.norm = {.kind = NormKind::rms, .place = place};
    const auto rows = stack_metrics(stack, {}, simplex_tokens(4, 4, 2, 0));
    EXPECT_EQ(undefined_of(rows[3]), Names{});
    if (place == NormPlace::post) {
      EXPECT_NEAR(rows[3].residual_squared, 16, 1e-12);
    }
  }
}

TEST(stack_edges, norms_keep_differences_below_rounding) {
  // Tokens e^-400 apart: to first order a norm projects R across m and divides
  // by |m|/sqrt(d).
  CentredTokens x = centred(random_tokens(4, 5));
  x.exponent = -400;
  const CentredTokens y = normed(x, NormKind::rms, 0).tokens;
  const Eigen::RowVectorXd m = x.mean / x.mean.norm();
  const MatrixXd across = x.residual - (x.residual * m.transpose()) * m;
  EXPECT_NEAR(y.exponent + std::log(y.residual.norm()),
              -400 + std::log(across.norm() * std::sqrt(5) / x.mean.norm()), 1e-12);
}

TEST(stack_edges, memory_1_keeps_the_first_weights) {
  Stack stack = scaled_stack(4, 2, 1);
  stack.memory = 1;
  const auto rows = stack_metrics(stack, {}, random_tokens(4, 4));
  EXPECT_EQ(undefined_of(rows[3]), Names{});
  EXPECT_NEAR(rows[3].entropy, rows[1].entropy, 1e-14);
}

TEST(stack_edges, with_a_memory_a_head_without_logits_leaves_the_others_alone) {
  auto log_residual = [](double kappa) {
    Stack stack = scaled_stack(4, 1, 1);
    auto& maps = std::get<ExplicitMaps>(stack.maps);
    maps.query_key.insert(maps.query_key.begin(), kappa * MatrixXd::Identity(4, 4));
    maps.value.push_back(maps.value[0]);
    stack.heads = 2;
    stack.memory = 0.5;
    return stack_metrics(stack, {}, random_tokens(5, 4))[3].log_residual;
  };
  EXPECT_NEAR(log_residual(0), log_residual(1e-200), 1e-12);
}

TEST(stack_edges, no_rollout_where_skip_and_branch_cancel) {
  Stack stack = scaled_stack(4, 1, 1);
  stack.skip = -1;
  const auto rows = stack_metrics(stack, {}, random_tokens(4, 4));
  EXPECT_EQ(undefined_of(rows[3]), (Names{"rollout_dobrushin", "sink_fidelity"}));
}

TEST(stack_edges, hard_attention_is_finite) {
  // g = kappa rho n/(n-1) = +-2000.
  for (const double sign : {1.0, -1.0}) {
    const auto rows =
        stack_metrics(scaled_stack(5, sign * 2000, 1), {}, simplex_tokens(5, 5, 0.8, 0.3));
    EXPECT_EQ(undefined_of(rows[1]), Names{});
    EXPECT_NEAR(rows[1].self_weight, sign > 0 ? 1 : 0, 1e-12);
    EXPECT_NEAR(rows[1].entropy, sign > 0 ? 0 : std::log(4), 1e-12);
    EXPECT_NEAR(rows[1].dobrushin, sign > 0 ? 1 : 0.25, 1e-12);
  }
}

TEST(stack_edges, maps_narrower_and_wider_than_the_tokens) {
  for (const int k : {1, 9}) {
    Stack stack;
    stack.heads = 2;
    stack.layers = 2;
    stack.spectra = true;
    stack.maps = GaussianMaps{.k = k, .value_dim = k};
    const auto rows = stack_metrics(stack, {}, random_tokens(6, 4));
    EXPECT_EQ(rows[1].rank_at_most, k == 1 ? 2 : 4);
    EXPECT_EQ(rows[1].rank_at_least, rows[1].rank_at_most);
    EXPECT_TRUE(std::isfinite(rows[2].second_eigenvalue));
  }
}

TEST(stack_edges, alternating_heads_take_turns) {
  Stack stack;
  stack.heads = 3;
  stack.layers = 2;
  stack.kernel = AttentionKernel::fixed;
  for (const double w : {0.5, 0.7, 0.9}) {
    MatrixXd a(2, 2);
    a << w, 1 - w, 1 - w, w;
    stack.fixed.push_back(a);
  }
  stack.alternating = true;
  stack.maps = ExplicitMaps{{}, Matrices(3, MatrixXd::Identity(2, 2))};
  const auto rows = stack_metrics(stack, {}, random_tokens(2, 2));
  EXPECT_DOUBLE_EQ(rows[1].self_weight, 0.5);
  EXPECT_DOUBLE_EQ(rows[2].self_weight, 0.7);
  EXPECT_EQ(rows[1].residual_factor, 0);
  EXPECT_EQ(rows[1].collapsed, 1);
}

TEST(stack_edges, fixed_attention_multiplies_the_rollout) {
  Stack stack;
  stack.heads = 2;
  stack.layers = 2;
  stack.kernel = AttentionKernel::fixed;
  MatrixXd a(3, 3), b(3, 3);
  a << 0.2, 0.3, 0.5, 0.1, 0.8, 0.1, 0.4, 0.4, 0.2;
  b << 0.6, 0.2, 0.2, 0.3, 0.3, 0.4, 0.0, 0.5, 0.5;
  stack.fixed = {a, b};
  stack.maps = ExplicitMaps{{}, Matrices(2, MatrixXd::Identity(2, 2))};
  stack.skip = 1;
  stack.branch = 3;
  const auto rows = stack_metrics(stack, {}, random_tokens(3, 2));
  const MatrixXd once = (MatrixXd::Identity(3, 3) + 1.5 * (a + b)) / 4;
  const MatrixXd twice = once * once;
  double tau = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      tau = std::max(tau, (twice.row(i) - twice.row(j)).cwiseAbs().sum() / 2);
    }
  }
  EXPECT_NEAR(rows[2].rollout_dobrushin, tau, 1e-14);
  const Eigen::RowVectorXd sink = once.row(2).cwiseMax(twice.row(2));
  EXPECT_NEAR(rows[2].sink_fidelity, std::min(sink(0), sink(1)), 1e-14);
}

TEST(stack_edges, a_causal_mask_never_collapses_doubly_exponentially) {
  Stack stack = scaled_stack(4, 1, 1);
  stack.layers = 40;
  stack.kernel = AttentionKernel::uniform;
  stack.causal = true;
  const auto rows = stack_metrics(stack, {}, random_tokens(6, 4));
  EXPECT_NEAR(rows[5].dobrushin, 1 - 1.0 / 6, 1e-15);
  EXPECT_NEAR(rows[40].log_residual - rows[39].log_residual, -std::log(2.0), 1e-5);
}

TEST(stack_edges, ranks_at_collapse_count_by_their_own_scale) {
  Stack stack = scaled_stack(6, 1, 1);
  stack.layers = 5;
  stack.spectra = true;
  const auto rows = stack_metrics(stack, {}, simplex_tokens(4, 6, 0.3, 1));
  EXPECT_LT(rows[5].log_residual, -200);
  EXPECT_EQ(rows[5].affine_rank_at_least, 3);
  EXPECT_EQ(rows[5].rank_at_least, 4);
  EXPECT_EQ(rows[5].rank_undecided, 0);
  EXPECT_NEAR(rows[5].stable_rank, 1, 1e-12);
}

}  // namespace
}  // namespace headlab
