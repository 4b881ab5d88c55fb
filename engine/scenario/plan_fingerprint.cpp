// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/plan_fingerprint.h"

#include <span>
#include <vector>

#include "engine/files/sha256.h"
#include "kernels/controls.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"

namespace headlab {
namespace {

/// The sum of the rows of a data file, in float64.
Sha256 sum_of_rows(const FileRows& rows) {
  if (rows.exact_sum()) return *rows.exact_sum();
  Sha256 sum;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<double> row(rows[i].begin(), rows[i].end());
    sum.add(std::as_bytes(std::span(row)));
  }
  return sum;
}

/// Adds the numbers that a stack was given.
void add_stack(const Stack& stack, Sha256& sum) {
  const auto add = [&](const auto& numbers) {
    sum.add(std::as_bytes(std::span(numbers.data(), static_cast<std::size_t>(numbers.size()))));
  };
  add(stack.tokens);
  for (const Eigen::MatrixXd& one : stack.fixed) add(one);
  if (const auto* maps = std::get_if<ExplicitMaps>(&stack.maps)) {
    for (const Eigen::MatrixXd& one : maps->query_key) add(one);
    for (const Eigen::MatrixXd& one : maps->value) add(one);
  }
  add(stack.norm.gain);
  add(stack.norm.bias);
  if (const Mlp* mlp = stack.mlp ? std::get_if<Mlp>(&*stack.mlp) : nullptr) {
    add(mlp->input);
    add(mlp->bias);
    add(mlp->output);
  }
}

void add_controls(const Controls& controls, Sha256& sum) {
  const ControlMeans& means = controls.means;
  for (const std::vector<double>* numbers :
       {&means.log_scale, &means.estimate, &means.of_estimates, &means.of_noise,
        &controls.of_estimates, &controls.of_noise}) {
    sum.add(std::as_bytes(std::span(*numbers)));
  }
  sum.add(std::as_bytes(std::span(controls.alike)));
}

}  // namespace

std::string plan_sha256(const Plan& plan) {
  Sha256 sum = sum_of_rows(plan.table.rows());
  sum.add(std::as_bytes(std::span(plan.table.exact(), plan.table.size())));
  sum.add(std::as_bytes(std::span(plan.projections)));
  sum.add(std::as_bytes(std::span(plan.query_projections)));
  sum.add(std::as_bytes(std::span(plan.query_points)));
  sum.add(std::as_bytes(std::span(plan.head_weights)));
  if (plan.controls) add_controls(*plan.controls, sum);
  if (plan.redraws) sum.add(std::as_bytes(std::span("redraws")));
  if (plan.stack) add_stack(*plan.stack, sum);
  return sum.digest();
}

}  // namespace headlab
