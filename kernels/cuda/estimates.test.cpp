// SPDX-License-Identifier: Apache-2.0
// Estimates from simulations by the CUDA backend: within their standard errors of the reference, on
// a GPU and on the host, and of known answers, on a GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/host.h"
#include "kernels/reference/backend.h"
#include "kernels/testing/device_fixture.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using nlohmann::json;

/// A figure of a run with its Monte Carlo standard error.
struct Estimate {
  double value = 0;
  double mcse = 0;
};

/// Of query 0: the bias of each component, the covariances of the pairs of the layout, the MSE of
/// the ensemble.
std::vector<double> figures_of(const Plan& plan, const Moments& moments) {
  const MomentLayout layout = plan.layout();
  const double replicates = static_cast<double>(moments.count);
  const std::size_t heads = layout.heads < 0 ? 0 : static_cast<std::size_t>(layout.heads);
  auto noise = [&](std::size_t pair) {
    return layout.conditional ? moments.mean[layout.noise_offset() + pair] : 0.0;
  };
  std::vector<double> figures;
  for (std::size_t g = 0; g < layout.components(); ++g) {
    figures.push_back(moments.mean[g] - plan.truth[0]);
  }
  for (std::size_t pair = 0; pair < layout.pairs(); ++pair) {
    figures.push_back(moments.comoment[pair] / (replicates - 1) + noise(pair));
  }
  double mean = 0, variance = 0;
  if (layout.pairwise()) {
    for (std::size_t h = 0; h < heads; ++h) {
      mean += plan.head_weights[h] * moments.mean[h];
      for (std::size_t l = h; l < heads; ++l) {
        const std::size_t pair = layout.pair(h, l);
        variance += (h == l ? 1 : 2) * plan.head_weights[h] * plan.head_weights[l] *
                    (moments.comoment[pair] / replicates + noise(pair));
      }
    }
  } else {
    mean = moments.mean[heads];
    variance = moments.comoment[heads] / replicates + noise(heads);
  }
  figures.push_back(variance + (mean - plan.truth[0]) * (mean - plan.truth[0]));
  return figures;
}

Moments merged(const MomentLayout& layout, const std::vector<Moments>& nodes,
               std::size_t without = SIZE_MAX) {
  Moments all;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i == without) continue;
    if (all.count == 0) {
      all = nodes[i];
    } else {
      merge_moments(layout, all, nodes[i]);
    }
  }
  return all;
}

/// Figures with their jackknife standard errors over equal nodes.
std::vector<Estimate> estimates_of(const Plan& plan, const std::vector<Moments>& nodes) {
  const std::vector<double> all = figures_of(plan, merged(plan.layout(), nodes));
  const double count = static_cast<double>(nodes.size());
  std::vector<double> sum(all.size()), square(all.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto left = figures_of(plan, merged(plan.layout(), nodes, i));
    for (std::size_t f = 0; f < all.size(); ++f) {
      sum[f] += left[f] - all[f];
      square[f] += (left[f] - all[f]) * (left[f] - all[f]);
    }
  }
  std::vector<Estimate> figures;
  for (std::size_t f = 0; f < all.size(); ++f) {
    const double variance = (square[f] - sum[f] * sum[f] / count) * (count - 1) / count;
    figures.push_back({all[f], std::sqrt(variance)});
  }
  return figures;
}

#if defined(HEADLAB_EMULATE_CUDA)
constexpr std::uint64_t points_drawn = 100;
#else
constexpr std::uint64_t points_drawn = 1000;
#endif

TEST_F(Cuda, ComponentsAreThoseOfTheReference) {
  double largest_relative = 0, largest_in_mcse = 0;
  for (const int k : {2, 5, 16}) {
    for (const Estimator estimator : test::estimators) {
      for (const MomentMode mode : test::modes) {
        Plan plan =
            test::make_plan({.n = points_drawn, .d = 16, .heads = 4, .k = k, .queries = 3},
                            GaussianKernel{.bandwidth = 0.6 * std::sqrt(k)}, estimator, mode);
        const Block block = {.first = 0, .count = 64};
        std::vector<Moments> reference(block.nodes());
        make_reference_backend()->worker(plan)->run(block, reference);
        const auto expected = estimates_of(plan, reference);
        const auto figures = [&] {
          return figures_of(plan, merged(plan.layout(), run(plan, block)));
        };
        const auto bound = [&](std::size_t f) {
          return std::max(1e-5 * std::abs(expected[f].value), 0.01 * expected[f].mcse);
        };
        const auto got = figures();
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t f = 0; f < got.size(); ++f) {
          const double error = std::abs(got[f] - expected[f].value);
          EXPECT_TRUE(error <= bound(f))
              << "figure " << f << ' ' << test::text_of(plan) << ": " << got[f] << ", reference "
              << expected[f].value << " +- " << expected[f].mcse;
          largest_relative = std::max(largest_relative, error / std::abs(expected[f].value));
          largest_in_mcse = std::max(largest_in_mcse, error / expected[f].mcse);
        }
        // Negative control: one percent of the bandwidth is seen.
        if (estimator == Estimator::plain || mode == MomentMode::aggregate) continue;
        std::get<GaussianKernel>(plan.kernel.own()).bandwidth *= 1.01;
        const auto other = figures();
        bool seen = false;
        for (std::size_t f = 0; f < other.size(); ++f) {
          seen = seen || std::abs(other[f] - expected[f].value) > bound(f);
        }
        EXPECT_TRUE(seen) << test::text_of(plan);
      }
    }
  }
  RecordProperty("largest_relative_error", std::to_string(1e6 * largest_relative) + "e-6");
  RecordProperty("max_error_in_mcse", std::to_string(largest_in_mcse));
}

#if !defined(HEADLAB_EMULATE_CUDA)
/// The known answers: of the source tree, or for a carried program of HEADLAB_KNOWN_ANSWERS_FILE.
json known_answers() {
  const char* carried = environment_variable("HEADLAB_KNOWN_ANSWERS_FILE");
  std::ifstream file(carried != nullptr ? carried : HEADLAB_KNOWN_ANSWERS);
  if (!file) throw std::runtime_error("known-answers.json: set HEADLAB_KNOWN_ANSWERS_FILE to it");
  return json::parse(file);
}

struct KnownCase {
  Plan plan;
  std::vector<double> exact;       ///< in the order of figures_of, pairwise
  std::vector<std::size_t> which;  ///< of figures_of
};

Plan known_plan(const json& known, const std::vector<std::vector<std::vector<double>>>& matrices,
                const std::vector<double>& x, double noise_variance_factor) {
  Plan plan;
  plan.n = known["n"];
  plan.d = static_cast<int>(x.size());
  plan.heads = static_cast<int>(matrices.size());
  plan.k = static_cast<int>(matrices[0][0].size());
  plan.seed = 1;
  for (const auto& w : matrices) {
    for (const auto& row : w)
      plan.projections.insert(plan.projections.end(), row.begin(), row.end());
  }
  plan.head_weights.assign(matrices.size(), 1.0 / static_cast<double>(matrices.size()));
  plan.query_points = x;
  plan.design = NormalDesign{.dim = plan.d}.sampler(plan.table);
  plan.noise =
      NormalNoise{.sd = known["noise_sd"].get<double>() * std::sqrt(noise_variance_factor)}.sampler(
          plan.table, plan.d);
  if (known.contains("temperature")) {
    plan.kernel = SoftmaxKernel{.temperature = known["temperature"]};
  } else {
    plan.kernel = GaussianKernel{.bandwidth = known["bandwidth"]};
  }
  return plan;
}

/// Biases, covariances and the MSE of a case with signal.
KnownCase with_signal(const json& known, double noise_variance_factor) {
  KnownCase c;
  const auto x = known["x"].get<std::vector<double>>();
  c.plan = known_plan(known, known["W"], x, noise_variance_factor);
  const auto function =
      CosinesRegression{
          .amplitude = known["amplitude"], .frequency = known["frequency"], .phase = known["phase"]}
          .function(c.plan.table, c.plan.d);
  c.plan.regression = function;
  c.plan.truth = {function(c.plan.table.exact(), x.data(), 1, 0)};
  const auto heads = static_cast<std::size_t>(c.plan.heads);
  for (std::size_t h = 0; h < heads; ++h) c.exact.push_back(known["bias"][h]);
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t l = h; l < heads; ++l) c.exact.push_back(known["covariance"][h][l]);
  }
  c.exact.push_back(known["mse"]);
  for (std::size_t f = 0; f < c.exact.size(); ++f) c.which.push_back(f);
  return c;
}

/// Variances and covariance of pure noise: two heads of dimension one in the plane.
KnownCase of_noise(const json& known, double noise_variance_factor) {
  const double cosine = known["cos_angle"];
  const double sine = std::sqrt(1 - cosine * cosine);
  const double q0 = known["query_projection"][0];
  const double q1 = known["query_projection"][1];
  KnownCase c;
  c.plan = known_plan(known, {{{1.0}, {0.0}}, {{cosine}, {sine}}}, {q0, (q1 - cosine * q0) / sine},
                      noise_variance_factor);
  c.plan.regression = ZeroRegression{}.function(c.plan.table, 2);
  c.plan.truth = {0};
  c.exact = {known["V"][0], known["C"], known["V"][1]};
  c.which = {2, 3, 4};
  return c;
}

struct Score {
  std::size_t compared = 0;
  double largest_z = 0;
  double rms_z = 0;
  bool agrees = false;
};

/// Agreement: every |z| < 4.5 and a root mean square z between 0.7 and 1.35. NaN does not agree.
Score score_of(const std::vector<double>& z) {
  Score score{.compared = z.size()};
  bool all_below = true;
  double square = 0;
  for (const double one : z) {
    all_below = all_below && std::abs(one) < 4.5;
    score.largest_z = std::max(score.largest_z, std::abs(one));
    square += one * one;
  }
  score.rms_z = std::sqrt(square / static_cast<double>(z.size()));
  score.agrees = all_below && score.rms_z > 0.7 && score.rms_z < 1.35;
  return score;
}

Score score_known_answers(Estimator estimator, double noise_variance_factor, double mcse_factor) {
  const json known = known_answers();
  std::vector<KnownCase> cases;
  for (const char* name : {"finite_n", "softmax_finite_n"}) {
    for (const json& c : known[name]) cases.push_back(with_signal(c, noise_variance_factor));
  }
  for (const json& c : known["finite_n_noise"]) cases.push_back(of_noise(c, noise_variance_factor));
  std::vector<double> z;
  for (KnownCase& c : cases) {
    c.plan.estimator = estimator;
    const auto figures =
        estimates_of(c.plan, run(c.plan, {.first = 0, .count = 32768, .node = 256}));
    for (std::size_t i = 0; i < c.exact.size(); ++i) {
      const Estimate& figure = figures[c.which[i]];
      z.push_back((figure.value - c.exact[i]) / (figure.mcse * mcse_factor));
    }
  }
  return score_of(z);
}

TEST_F(Cuda, KnownAnswersAreReproducedWithinTheirStandardErrors) {
  for (const Estimator estimator : test::estimators) {
    const Score score = score_known_answers(estimator, 1, 1);
    EXPECT_EQ(score.compared, 6u + 10u + 10u + 6u + 4u * 3u);
    EXPECT_TRUE(score.agrees) << "largest |z| " << score.largest_z << ", rms " << score.rms_z;
    const std::string name = estimator == Estimator::plain ? "plain" : "conditional";
    RecordProperty("largest_z_" + name, std::to_string(score.largest_z));
    RecordProperty("rms_z_" + name, std::to_string(score.rms_z));
    // Negative controls.
    EXPECT_FALSE(score_known_answers(estimator, 1, 0.5).agrees);
    EXPECT_FALSE(score_known_answers(estimator, 1.05, 1).agrees);
  }
}
#endif

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
