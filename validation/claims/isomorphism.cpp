// SPDX-License-Identifier: Apache-2.0
// An ensemble is the same thing whatever makes its members differ. For heads drawn at random and
// exchangeable, over data and heads,
//   Var(f) = Var_data E[f | data] + E_data Var(f | data)/H = V/H + (1 - 1/H) C,
// with V = Var f_1 and C = Cov(f_1, f_2). As a formula in the V and C of the same heads that is an
// identity; the claim is prediction: V and C of a few heads tell the variance of many others.
#include <cmath>
#include <numbers>

#include "kernels/draws.h"
#include "kernels/plan.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/claims/replicate_backend.h"

namespace headlab {
namespace {

/// What makes heads differ is drawn from a stream that training sets do not use.
constexpr Purpose head_draws = Purpose::haar;

Words head_words(const Plan& plan, std::uint64_t replicate, int head, std::uint64_t quad) {
  constexpr std::uint64_t quads_per_head = 1 << 20;
  return philox(plan.seed, subsequence(head_draws, replicate),
                static_cast<std::uint64_t>(head) * quads_per_head + quad);
}

double* projection(Plan& plan, int head) {
  return &plan.projections[static_cast<std::size_t>(head) * static_cast<std::size_t>(plan.d) *
                           static_cast<std::size_t>(plan.k)];
}

/// Every head looks along a direction of its own, uniform on the sphere (d_k = 1).
void random_subspaces(std::uint64_t replicate, Plan& plan, TrainingSet&) {
  for (int h = 0; h < plan.heads; ++h) {
    double* w = projection(plan, h);
    double square = 0;
    for (int i = 0; i < plan.d; ++i) {
      const Words words = head_words(plan, replicate, h, static_cast<std::uint64_t>(i));
      w[i] = static_cast<double>(normal_pair(words.w[0], words.w[1]).first);
      square += w[i] * w[i];
    }
    for (int i = 0; i < plan.d; ++i) w[i] /= std::sqrt(square);
  }
}

/// Every head has a bandwidth of its own, log-uniform between half and twice the plan's: a
/// projection scaled by b/b_h measures distances in units of b_h.
void random_bandwidths(std::uint64_t replicate, Plan& plan, TrainingSet&) {
  for (int h = 0; h < plan.heads; ++h) {
    const float u = uniform_symmetric(head_words(plan, replicate, h, 0).w[0]);
    const double scale = std::exp(-std::numbers::ln2 * static_cast<double>(u));
    for (int i = 0; i < plan.d * plan.k; ++i) projection(plan, h)[i] *= scale;
  }
}

/// Every head sees about half of the keys. The others lie far out along a coordinate of their own
/// for each head, which only this head looks at.
void random_keys(std::uint64_t replicate, Plan& plan, TrainingSet& sample) {
  constexpr double far = 1e6;
  const auto heads = static_cast<std::size_t>(plan.heads);
  const auto d = static_cast<std::size_t>(plan.d);
  const auto k = static_cast<std::size_t>(plan.k);
  const std::size_t wide = d + heads;
  const std::size_t n = sample.regression.size();
  std::vector<double> x(n * wide, 0.0);
  std::vector<double> w(heads * wide * (k + 1), 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < d; ++j) x[i * wide + j] = sample.x[i * d + j];
    for (std::size_t h = 0; h < heads; ++h) {
      const Words words = head_words(plan, replicate, static_cast<int>(h), i / 4);
      // The first key is always seen, so that no head is blind.
      const bool seen = i == 0 || words.w[i % 4] >> 31 != 0;
      x[i * wide + d + h] = seen ? 0 : far;
    }
  }
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t c = 0; c < k; ++c) {
        w[(h * wide + j) * (k + 1) + c] = plan.projections[(h * d + j) * k + c];
      }
    }
    w[(h * wide + d + h) * (k + 1) + k] = 1;
  }
  std::vector<double> queries(static_cast<std::size_t>(plan.queries) * wide, 0.0);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    for (std::size_t j = 0; j < d; ++j) queries[q * wide + j] = plan.query_points[q * d + j];
  }
  sample.x = std::move(x);
  plan.projections = std::move(w);
  plan.query_points = std::move(queries);
  plan.d = static_cast<int>(wide);
  plan.k += 1;
}

/// Condition 0 has few heads, condition 1 many; the two share no draw.
std::vector<Finding> predict(Experiment& experiment, const Backend& backend) {
  Plan many = experiment.plan(1);
  many.seed += 1;
  const JackknifedEstimates& few = experiment.observed("few", experiment.plan(0), backend);
  const JackknifedEstimates& seen = experiment.observed("many", many, backend);
  const double share = 1.0 / many.heads;
  const Jackknifed predicted =
      few.head_variance_mean * share + few.head_covariance_mean * (1 - share);
  const Jackknifed variance = seen.variance_term + seen.covariance_term;
  Finding finding;
  finding.comparisons.push_back(
      equal_to("variance of " + std::to_string(many.heads) + " heads over its prediction from " +
                   std::to_string(experiment.plan(0).heads) + " minus 1",
               variance / predicted, 1, 1, experiment.margin(), few.node_counts));
  return {std::move(finding)};
}

std::vector<Finding> by_subspace(Experiment& experiment) {
  static const ReplicateBackend backend = altered_backend(random_subspaces);
  return predict(experiment, backend);
}

std::vector<Finding> by_keys(Experiment& experiment) {
  static const ReplicateBackend backend = altered_backend(random_keys);
  return predict(experiment, backend);
}

std::vector<Finding> by_bandwidth(Experiment& experiment) {
  static const ReplicateBackend backend = altered_backend(random_bandwidths);
  return predict(experiment, backend);
}

}  // namespace

Claim isomorphism_claim() {
  return {.name = "isomorphism",
          .forms = {{.name = "by subspace", .examine = by_subspace},
                    {.name = "by keys", .examine = by_keys},
                    {.name = "by bandwidth", .examine = by_bandwidth}}};
}

}  // namespace headlab
