// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_writer.h"
#include "engine/files/netcdf/file.h"
#include "engine/replay/replay.h"
#include "engine/results/condition_record.h"
#include "engine/results/results_scenario.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"

namespace headlab {
namespace {

void write_attributes(const NetcdfGroup& root, const Scenario& scenario, std::size_t condition,
                      const Replay& replay, const Provenance& program) {
  write_scenario(root, scenario, program);
  root.put_attribute("backend", replay.machine.backend);
  root.put_attribute("simd", replay.machine.simd);
  root.put_attribute("device", replay.machine.device);
  root.put_attribute("condition", static_cast<std::int64_t>(condition));
  root.put_attribute("replicate", static_cast<std::int64_t>(replay.replicate));
  root.put_attribute("parameters", to_json(scenario.conditions.at(condition).parameters.tree()));
  root.put_attribute("plan_sha256", plan_sha256(replay.plan));
  root.put_attribute("estimator", name_of(replay.plan.estimator));
  root.put_attribute("squared_error", replay.squared_error);
  root.put_attribute("min_sample_size", replay.heads[replay.narrowest()].sample_size);
  if (replay.backend_sample_size) {
    root.put_attribute("backend_min_sample_size", *replay.backend_sample_size);
  }
}

/// One number of every item.
template <class Item>
std::vector<double> numbers_in(const std::vector<Item>& items, double Item::*number) {
  std::vector<double> numbers;
  for (const Item& item : items) numbers.push_back(item.*number);
  return numbers;
}

void write_training_set(const NetcdfGroup& root, const TrainingSet& set) {
  std::vector<double> y = set.regression;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += set.noise[i];
  root.write("X", {"point", "coordinate"}, {"design points X"}, set.x);
  root.write("Y", {"point"}, {"responses Y = m(X) + noise"}, y);
  root.write("m", {"point"}, {"regression function m(X)"}, set.regression);
  root.write("noise", {"point"}, {"noise Y - m(X)"}, set.noise);
  root.write("noise_sd", {"point"}, {"standard deviation of the noise"}, set.noise_sd);
}

void write_heads(const NetcdfGroup& root, const Plan& plan) {
  root.write("x", {"query", "coordinate"}, {"query points"}, plan.query_points);
  root.write("truth", {"query"}, {"regression function m(x)"}, plan.truth);
  root.write("projections", {"head", "coordinate", "dim"}, {"projections W_h"}, plan.projections);
  if (!plan.query_projections.empty()) {
    root.write("query_projections", {"head", "coordinate", "dim"}, {"projections of the queries"},
               plan.query_projections);
  }
  root.write("head_weights", {"head"}, {"head weights a_h"}, plan.head_weights);
}

void write_estimates(const NetcdfGroup& root, const Replay& replay) {
  const std::vector<std::string> axes = {"query", "head"};
  const auto of_heads = [&](double ReplayedHead::*number) {
    return numbers_in(replay.heads, number);
  };
  const auto of_queries = [&](double ReplayedQuery::*number) {
    return numbers_in(replay.queries, number);
  };
  root.write("kernel_weights", {"query", "head", "point"},
             {"kernel weights of sum 1, by the reference"}, replay.kernel_weights);
  const std::vector<double> reference = of_heads(&ReplayedHead::reference);
  const std::vector<double> backend = of_heads(&ReplayedHead::backend);
  std::vector<double> difference = backend;
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= reference[i];
  root.write("reference_estimate", axes, {"estimate of a head by the reference"}, reference);
  root.write("backend_estimate", axes, {"estimate of a head by the backend"}, backend);
  root.write("difference", axes, {"backend_estimate - reference_estimate"}, difference);
  root.write("effective_sample_size", axes, {"1 / sum_i w_i^2"},
             of_heads(&ReplayedHead::sample_size));
  root.write("normalisation_error", axes, {"distance of the weights' sum from 1"},
             of_heads(&ReplayedHead::normalisation_error));
  root.write("reference_ensemble", {"query"}, {"estimate of the ensemble by the reference"},
             of_queries(&ReplayedQuery::reference));
  root.write("backend_ensemble", {"query"}, {"estimate of the ensemble by the backend"},
             of_queries(&ReplayedQuery::backend));
  root.write("query_squared_error", {"query"}, {"squared error of the ensemble by the backend"},
             of_queries(&ReplayedQuery::squared_error));
}

}  // namespace

void put_replay(const NetcdfGroup& root, const Scenario& scenario, std::size_t condition,
                const Replay& replay, const Provenance& program) {
  const Plan& plan = replay.plan;
  write_attributes(root, scenario, condition, replay, program);
  root.define_dimension("point", static_cast<std::size_t>(plan.n));
  root.define_dimension("coordinate", static_cast<std::size_t>(plan.d));
  root.define_dimension("query", replay.queries.size());
  root.define_dimension("head", static_cast<std::size_t>(plan.heads));
  root.define_dimension("dim", static_cast<std::size_t>(plan.k));
  write_training_set(root, replay.training_set);
  write_heads(root, plan);
  write_estimates(root, replay);
}

void write_replay(const std::string& path, const Scenario& scenario, std::size_t condition,
                  const Replay& replay, const Provenance& program) {
  try {
    NetcdfImage image;
    put_replay(image.root(), scenario, condition, replay, program);
    image.save(path);
  } catch (const NetcdfError& error) {
    throw RunFailed(path + ": cannot be written (" + error.what() + ")");
  }
}

}  // namespace headlab
