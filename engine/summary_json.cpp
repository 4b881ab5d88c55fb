// SPDX-License-Identifier: Apache-2.0
#include "engine/summary_json.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <variant>

#include "engine/json_text.h"

namespace headlab {
namespace {

/// Beyond this many numbers the matrices of all queries go to results.nc alone.
constexpr double most_matrix_numbers = 1e5;

void write_figure(JsonText& json, std::string_view key, const Figure& figure) {
  json.key(key);
  json.begin_object(JsonText::Layout::line);
  json.key("value");
  json.number(figure.value);
  json.key("mcse");
  json.number(figure.mcse);
  json.end();
}

void write_mse(JsonText& json, const ConditionResult& condition) {
  const Estimates& estimates = condition.estimates;
  if (!std::holds_alternative<DesignQueries>(condition.scenario.queries)) {
    return write_figure(json, "mse", estimates.mse);
  }
  json.key("mse");
  json.begin_object(JsonText::Layout::line);
  json.key("value");
  json.number(estimates.mse.value);
  json.key("mcse");
  json.number(estimates.mse.mcse);
  json.key("query_se");
  json.number(estimates.mse_query_se);
  json.end();
}

void write_indices(JsonText& json, const ConditionIndices& indices) {
  json.key("indices");
  json.begin_object();
  for (const IndexValue& index : indices) {
    json.key(index.name);
    json.begin_object(JsonText::Layout::line);
    json.key("value");
    json.number(index.figure.value);
    if (index.simulated) {
      json.key("mcse");
      json.number(index.figure.mcse);
    }
    json.key("ceiling");
    json.number(index.ceiling);
    json.end();
  }
  json.end();
}

/// One of value and mcse of each figure, or null for a list that the mode does not give.
std::vector<double> column(const std::vector<Figure>& figures, double Figure::*member) {
  std::vector<double> numbers;
  for (const Figure& figure : figures) numbers.push_back(figure.*member);
  return numbers;
}

void write_query(JsonText& json, const ConditionResult& condition, std::size_t q,
                 bool with_matrices) {
  const Plan& plan = condition.plan;
  const auto d = static_cast<std::size_t>(plan.d);
  const auto heads = static_cast<std::size_t>(plan.heads);
  // A condition stopped before its first replicate has no estimates: everything is null.
  QueryEstimates estimates;
  estimates.head_bias.resize(heads);
  if (q < condition.estimates.queries.size()) estimates = condition.estimates.queries[q];

  json.begin_object();
  json.key("x");
  json.numbers(std::span(plan.query_points).subspan(q * d, d));
  json.key("truth");
  json.number(plan.truth[q]);
  write_figure(json, "mse", estimates.mse);
  json.key("head_bias");
  json.numbers(column(estimates.head_bias, &Figure::value));
  json.key("head_bias_mcse");
  json.numbers(column(estimates.head_bias, &Figure::mcse));
  const bool matrices = with_matrices && !estimates.head_covariance.empty();
  json.key("head_covariance");
  if (matrices) {
    json.matrix(column(estimates.head_covariance, &Figure::value), heads);
  } else {
    json.null();
  }
  json.key("head_covariance_mcse");
  if (matrices) {
    json.matrix(column(estimates.head_covariance, &Figure::mcse), heads);
  } else {
    json.null();
  }
  json.end();
}

void write_condition(JsonText& json, const ConditionResult& condition,
                     const ConditionIndices& indices) {
  const Estimates& estimates = condition.estimates;
  const Plan& plan = condition.plan;
  json.begin_object();
  json.key("parameters");
  json.raw(to_json(condition.scenario.parameters));
  json.key("replicates");
  json.integer(estimates.replicates);
  json.key("n");
  json.integer(plan.n);
  json.key("estimator");
  json.string(plan.estimator == Estimator::conditional ? "conditional" : "plain");
  json.key("head_weights");
  json.numbers(plan.head_weights);

  write_mse(json, condition);
  write_figure(json, "bias_squared", estimates.bias_squared);
  write_figure(json, "variance_term", estimates.variance_term);
  write_figure(json, "covariance_term", estimates.covariance_term);
  write_figure(json, "bias_squared_plugin", estimates.bias_squared_plugin);
  write_figure(json, "head_variance_mean", estimates.head_variance_mean);
  write_figure(json, "head_covariance_mean", estimates.head_covariance_mean);
  write_figure(json, "output_correlation", estimates.output_correlation);
  write_indices(json, indices);

  const double matrix_numbers = static_cast<double>(plan.queries) * plan.heads * plan.heads;
  const bool with_matrices =
      plan.moments == MomentMode::pairwise && matrix_numbers <= most_matrix_numbers;
  json.key("queries");
  json.begin_array();
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    write_query(json, condition, q, with_matrices);
  }
  json.end();

  json.key("empty_windows");
  if (std::holds_alternative<SoftmaxKernel>(plan.kernel)) {
    json.null();
  } else {
    json.integer(estimates.windows.empty);
  }
  json.key("narrow_windows");
  json.integer(estimates.windows.narrow);
  json.key("seconds");
  json.number(condition.seconds);
  json.key("weights_per_second");
  json.number(condition.weights_per_second);
  json.end();
}

/// The seed all conditions share, or null where the sweep varies it.
void write_seed(JsonText& json, const Study& study) {
  const auto& conditions = study.conditions;
  const bool one = !conditions.empty() &&
                   std::all_of(conditions.begin(), conditions.end(), [&](const Scenario& scenario) {
                     return scenario.seed == conditions.front().seed;
                   });
  json.key("seed");
  if (one) {
    json.integer(conditions.front().seed);
  } else {
    json.null();
  }
}

}  // namespace

std::string summary_json(const Study& study, const RunResult& result,
                         const std::vector<ConditionIndices>& indices, const Provenance& program) {
  JsonText json;
  json.begin_object();
  json.key("headlab");
  json.begin_object();
  json.key("version");
  json.string(program.version);
  json.key("git");
  json.string(program.git);
  json.key("backend");
  json.string(result.backend);
  json.key("simd");
  json.string(result.simd);
  json.key("device");
  json.string(result.device);
  json.key("threads");
  json.integer(result.threads);
  write_seed(json, study);
  json.end();
  json.key("complete");
  json.boolean(result.complete);
  json.key("conditions");
  json.begin_array();
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    write_condition(json, result.conditions[i],
                    i < indices.size() ? indices[i] : ConditionIndices{});
  }
  json.end();
  json.end();
  return json.text() + "\n";
}

}  // namespace headlab
