// SPDX-License-Identifier: Apache-2.0
// Maps whose elements are subset sums: strong lottery tickets in attention.
//
// Some subset of m samples is within eps of z with probability of at most the expected number of
// such subsets, sum_k C(m, k) P(|S_k - z| <= eps): no more than log 2 of error goes per sample.
// Where logits are off by at most e, a row of attention moves by at most tanh(e/2) in total
// variation, and an output by at most that times the diameter of the values.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/draws.h"
#include "kernels/plan.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/subset_sum.h"
#include "kernels/stack/worker.h"
#include "validation/claims/claim.h"
#include "validation/literature/stack_examples.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

constexpr double target_weight = 0.5;

int samples_of(const Plan& plan) {
  return std::get<GaussianMaps>(plan.stack->maps).samples;
}

/// Error of the subset sum of m uniforms on (-1, 1) that is nearest to the target.
double subset_error(std::uint64_t seed, std::uint64_t replicate, int m) {
  std::vector<double> samples;
  for (std::uint64_t quad = 0; samples.size() < static_cast<std::size_t>(m); ++quad) {
    const Words words = philox(seed, subsequence(Purpose::pruning_samples, replicate), quad);
    for (const std::uint32_t word : words.w) {
      samples.push_back(static_cast<double>(uniform_symmetric(word)));
    }
  }
  samples.resize(static_cast<std::size_t>(m));
  return std::abs(nearest_subset_sum(samples, target_weight) - target_weight);
}

double median_error(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The conditions differ in the number of samples m.
std::vector<Finding> falls_by_log_two(Experiment& experiment) {
  const std::uint64_t replicates = experiment.replicates();
  const std::vector<double> counts = part_counts(replicates);
  const auto conditions = static_cast<double>(experiment.conditions());
  double mean_m = 0, spread = 0;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    mean_m += samples_of(experiment.plan(i)) / conditions;
  }
  Finding finding;
  Jackknifed slope(0);
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Plan plan = faulty_plan(experiment, i);
    const int m = samples_of(experiment.plan(i));
    std::vector<double> errors;
    for (std::uint64_t r = 0; r < replicates; ++r) {
      errors.push_back(subset_error(plan.seed, r, samples_of(plan)));
    }
    const double eps = std::ldexp(1.0, -m);
    const Jackknifed hits = jackknifed(errors, [eps](const std::vector<double>& some) {
      const auto within = std::ranges::count_if(some, [&](double error) { return error <= eps; });
      return static_cast<double>(within) / static_cast<double>(some.size());
    });
    finding.comparisons.push_back(at_least_zero(
        "expected subsets within 2^-m of the target minus the share of draws with one, m = " +
            std::to_string(m),
        Jackknifed(expected_subset_hits(m, target_weight, eps)) - hits, 1, experiment.margin(),
        counts));
    const Jackknifed log_error =
        apply([m](double error) { return std::log(error) - std::log(m) / 2; },
              jackknifed(errors, median_error));
    slope = slope + log_error * Jackknifed(m - mean_m);
    spread += (m - mean_m) * (m - mean_m);
  }
  finding.comparisons.push_back(equal_to("fall per sample of the log of median error over sqrt(m)",
                                         slope * Jackknifed(-1 / spread), std::log(2.0), 1,
                                         experiment.margin(), counts));
  return {std::move(finding)};
}

MatrixXd attention_of(const Plan& plan, const MatrixXd& tokens, const MatrixXd& map) {
  MatrixXd weights = tokens * map * tokens.transpose() / plan.stack->temperature;
  weights.colwise() -= weights.rowwise().maxCoeff().eval();
  weights = weights.array().exp();
  weights.array().colwise() /= weights.rowwise().sum().eval().array();
  return weights;
}

double diameter_of(const MatrixXd& rows) {
  double largest = 0;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    largest = std::max(largest, (rows.rowwise() - rows.row(i)).rowwise().norm().maxCoeff());
  }
  return largest;
}

/// The first head of the first layer, pruned and not, at the values of its target.
std::vector<Finding> moves_within_bound(Experiment& experiment) {
  constexpr std::uint64_t draws = 64;
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Plan& plan = experiment.plan(i);
    const Plan faulty = faulty_plan(experiment, i);
    Stack target_stack = *plan.stack;
    std::get<GaussianMaps>(target_stack.maps).samples = 0;
    double least = 1;
    for (std::uint64_t draw = 0; draw < draws; ++draw) {
      const StackDraws from = {.seed = plan.seed, .replicate = draw};
      const MatrixXd tokens = stack_tokens(plan, draw);
      const MatrixXd pruned = query_key_map(*plan.stack, from, 0, 0, plan.d);
      const MatrixXd whole = query_key_map(target_stack, from, 0, 0, plan.d);
      const double logit_error =
          (tokens * (pruned - whole) * tokens.transpose()).cwiseAbs().maxCoeff() /
          plan.stack->temperature;
      const MatrixXd values = tokens * value_map(target_stack, from, 0, 0, plan.d);
      const MatrixXd moved =
          (attention_of(faulty, tokens, pruned) - attention_of(plan, tokens, whole)) * values;
      const double bound = std::tanh(logit_error / 2) * diameter_of(values);
      least = std::min(least, 1 - moved.rowwise().norm().maxCoeff() / bound);
    }
    finding.comparisons.push_back(
        at_least_zero("1 minus the shift of an output over its bound, least of " +
                          std::to_string(draws) + " draws, m = " + std::to_string(samples_of(plan)),
                      least, 1, experiment.margin(), {}));
  }
  return {std::move(finding)};
}

}  // namespace

Claim tickets_claim() {
  return {.name = "tickets",
          .forms = {{.name = "rate", .examine = falls_by_log_two},
                    {.name = "output", .examine = moves_within_bound}}};
}

}  // namespace headlab
