// SPDX-License-Identifier: Apache-2.0
#include "engine/summary_json.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

namespace headlab {
namespace {

// Keeps the order of the keys; numbers in their shortest form that reads back to the same bits, NaN
// as null.
using Json = nlohmann::ordered_json;

/// Beyond this many numbers the matrices of all queries go to results.nc alone.
constexpr double most_matrix_numbers = 1e5;

Json figure(const Figure& figure) {
  return {{"value", figure.value}, {"mcse", figure.mcse}};
}

/// One of value and mcse of each figure.
std::vector<double> column(const std::vector<Figure>& figures, double Figure::*member) {
  std::vector<double> numbers;
  for (const Figure& figure : figures) numbers.push_back(figure.*member);
  return numbers;
}

/// The same of an H x H matrix by rows.
Json matrix(const std::vector<Figure>& figures, std::size_t heads, double Figure::*member) {
  const std::vector<double> numbers = column(figures, member);
  Json rows = Json::array();
  for (std::size_t h = 0; h < heads; ++h) {
    const auto row = numbers.begin() + static_cast<std::ptrdiff_t>(h * heads);
    rows.push_back(std::vector<double>(row, row + static_cast<std::ptrdiff_t>(heads)));
  }
  return rows;
}

Json mse_of(const ConditionResult& condition) {
  Json mse = figure(condition.estimates.mse);
  if (std::holds_alternative<DesignQueries>(condition.scenario.queries)) {
    mse["query_se"] = condition.estimates.mse_query_se;
  }
  return mse;
}

Json indices_of(const ConditionIndices& indices) {
  Json json = Json::object();
  for (const IndexValue& index : indices) {
    Json& one = json[index.name];
    one["value"] = index.figure.value;
    if (index.simulated) one["mcse"] = index.figure.mcse;
    one["ceiling"] = index.ceiling;
  }
  return json;
}

Json query_of(const ConditionResult& condition, std::size_t q, bool with_matrices) {
  const Plan& plan = condition.plan;
  const auto heads = static_cast<std::size_t>(plan.heads);
  // A condition stopped before its first replicate has no estimates: everything is null.
  QueryEstimates estimates;
  estimates.head_bias.resize(heads);
  if (q < condition.estimates.queries.size()) estimates = condition.estimates.queries[q];

  const auto x = plan.query_points.begin() + static_cast<std::ptrdiff_t>(q) * plan.d;
  Json json = {{"x", std::vector<double>(x, x + plan.d)},
               {"truth", plan.truth[q]},
               {"mse", figure(estimates.mse)},
               {"head_bias", column(estimates.head_bias, &Figure::value)},
               {"head_bias_mcse", column(estimates.head_bias, &Figure::mcse)},
               {"head_covariance", nullptr},
               {"head_covariance_mcse", nullptr}};
  if (with_matrices && !estimates.head_covariance.empty()) {
    json["head_covariance"] = matrix(estimates.head_covariance, heads, &Figure::value);
    json["head_covariance_mcse"] = matrix(estimates.head_covariance, heads, &Figure::mcse);
  }
  return json;
}

Json condition_of(const ConditionResult& condition, const ConditionIndices& indices) {
  const Estimates& estimates = condition.estimates;
  const Plan& plan = condition.plan;
  const double matrix_numbers = static_cast<double>(plan.queries) * plan.heads * plan.heads;
  const bool with_matrices =
      plan.moments == MomentMode::pairwise && matrix_numbers <= most_matrix_numbers;
  Json queries = Json::array();
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    queries.push_back(query_of(condition, q, with_matrices));
  }
  const bool softmax = std::holds_alternative<SoftmaxKernel>(plan.kernel);
  return {{"parameters", Json::parse(to_json(condition.scenario.parameters))},
          {"replicates", estimates.replicates},
          {"n", plan.n},
          {"estimator", plan.estimator == Estimator::conditional ? "conditional" : "plain"},
          {"head_weights", plan.head_weights},
          {"mse", mse_of(condition)},
          {"bias_squared", figure(estimates.bias_squared)},
          {"variance_term", figure(estimates.variance_term)},
          {"covariance_term", figure(estimates.covariance_term)},
          {"bias_squared_plugin", figure(estimates.bias_squared_plugin)},
          {"head_variance_mean", figure(estimates.head_variance_mean)},
          {"head_covariance_mean", figure(estimates.head_covariance_mean)},
          {"output_correlation", figure(estimates.output_correlation)},
          {"indices", indices_of(indices)},
          {"queries", queries},
          {"empty_windows", softmax ? Json(nullptr) : Json(estimates.windows.empty)},
          {"narrow_windows", estimates.windows.narrow},
          {"seconds", condition.seconds},
          {"weights_per_second", condition.weights_per_second}};
}

/// The seed all conditions share, or null where the sweep varies it.
Json seed_of(const Study& study) {
  const auto& conditions = study.conditions;
  const bool one = !conditions.empty() &&
                   std::all_of(conditions.begin(), conditions.end(), [&](const Scenario& scenario) {
                     return scenario.seed == conditions.front().seed;
                   });
  return one ? Json(conditions.front().seed) : Json(nullptr);
}

}  // namespace

std::string summary_json(const Study& study, const RunResult& result,
                         const std::vector<ConditionIndices>& indices, const Provenance& program) {
  Json conditions = Json::array();
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    conditions.push_back(
        condition_of(result.conditions[i], i < indices.size() ? indices[i] : ConditionIndices{}));
  }
  const Json summary = {{"headlab",
                         {{"version", program.version},
                          {"git", program.git},
                          {"backend", result.backend},
                          {"simd", result.simd},
                          {"device", result.device},
                          {"threads", result.threads},
                          {"seed", seed_of(study)}}},
                        {"complete", result.complete},
                        {"conditions", conditions}};
  return summary.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headlab
