// SPDX-License-Identifier: Apache-2.0
#include "engine/results/summary_json.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace headlab {
namespace {

// Keeps the order of the keys; numbers in their shortest form that reads back to the same bits, NaN
// as null.
using Json = nlohmann::ordered_json;

/// Beyond this many numbers the matrices of all queries go to results.nc alone.
constexpr double most_matrix_numbers = 1e5;

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

/// Writes conditions whose Figures are values with an error of one kind.
class ConditionWriter {
 public:
  /// \param error what the second number of a Figure is called: "mcse" or "remainder"
  explicit ConditionWriter(std::string error) : error_(std::move(error)) {}

  Json condition(const ConditionResult& condition, const ConditionIndices& indices) const {
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
    Json json = {{"parameters", Json::parse(to_json(condition.scenario.parameters))},
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
    if (const Json learned = learned_of(condition); !learned.is_null()) json["learned"] = learned;
    return json;
  }

  Json figure(const Figure& figure) const {
    return {{"value", figure.value}, {error_, figure.mcse}};
  }

 private:
  /// How the heads were learned; null where they were not.
  static Json learned_of(const ConditionResult& condition) {
    if (condition.plan.learning) return {{"fit", "per_replicate"}};
    const LearnedHeads* learned = learned_heads(condition.scenario);
    if (learned == nullptr) return nullptr;
    const auto& error = learned->fit.held_out_error;
    return {{"fit", "once"},
            {"points", learned->points},
            {"held_out", learned->held_out},
            {"steps", learned->fit.steps},
            {"steps_taken", learned->fit.course.back().step},
            {"held_out_error", error ? Json(*error) : Json(nullptr)},
            {"seconds", learned->seconds}};
  }

  Json mse_of(const ConditionResult& condition) const {
    Json mse = figure(condition.estimates.mse);
    if (std::holds_alternative<DesignQueries>(condition.scenario.queries)) {
      mse["query_se"] = condition.estimates.mse_query_se;
    }
    return mse;
  }

  Json indices_of(const ConditionIndices& indices) const {
    Json json = Json::object();
    for (const IndexValue& index : indices) {
      Json& one = json[index.name];
      one["value"] = index.figure.value;
      if (index.simulated) one[error_] = index.figure.mcse;
      one["ceiling"] = index.ceiling;
    }
    return json;
  }

  Json query_of(const ConditionResult& condition, std::size_t q, bool with_matrices) const {
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
                 {"head_bias_" + error_, column(estimates.head_bias, &Figure::mcse)},
                 {"head_covariance", nullptr},
                 {"head_covariance_" + error_, nullptr}};
    if (with_matrices && !estimates.head_covariance.empty()) {
      json["head_covariance"] = matrix(estimates.head_covariance, heads, &Figure::value);
      json["head_covariance_" + error_] = matrix(estimates.head_covariance, heads, &Figure::mcse);
    }
    return json;
  }

  std::string error_;
};

/// A condition from closed forms, in the shape of a simulated one: what only a simulation has is
/// null.
Json computed_of(const ComputedCondition& computed) {
  Json json = {{"source", computed.source}, {"certificate", computed.certificate}};
  json.update(ConditionWriter("remainder").condition(computed.condition, computed.indices));
  for (const char* key : {"replicates", "estimator", "weights_per_second"}) json[key] = nullptr;
  // Of the one design that is fixed, else unknown.
  if (!computed.condition.plan.fixed_design_seed) {
    for (const char* key : {"empty_windows", "narrow_windows"}) json[key] = nullptr;
  }
  return json;
}

/// The same beside a simulation: without what the simulated condition says already, with z.
Json theory_of(const ComputedCondition& computed) {
  Json json = computed_of(computed);
  for (const char* key :
       {"parameters", "n", "head_weights", "replicates", "estimator", "weights_per_second"}) {
    json.erase(key);
  }
  Json z = Json::object();
  for (const ComparedFigure& figure : computed.simulated.figures) z[figure.name] = figure.z;
  json["z"] = z;
  Json largest = Json::array();
  for (const ComparedFigure& figure : computed.simulated.largest) {
    largest.push_back({{"figure", figure.name},
                       {"simulated", ConditionWriter("mcse").figure(figure.simulated)},
                       {"computed", ConditionWriter("remainder").figure(figure.computed)},
                       {"z", figure.z}});
  }
  json["largest_z"] = largest;
  return json;
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

std::string text_of(const Json& summary) {
  return summary.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string summary_json(const Study& study, const RunResult& result,
                         const std::vector<ConditionIndices>& indices, const Provenance& program,
                         const std::vector<ComputedCondition>& theory) {
  Json conditions = Json::array();
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    Json condition = ConditionWriter("mcse").condition(
        result.conditions[i], i < indices.size() ? indices[i] : ConditionIndices{});
    if (i < theory.size()) condition["theory"] = theory_of(theory[i]);
    conditions.push_back(std::move(condition));
  }
  return text_of({{"headlab",
                   {{"version", program.version},
                    {"git", program.git},
                    {"backend", result.machine.backend},
                    {"simd", result.machine.simd},
                    {"device", result.machine.device},
                    {"threads", result.machine.threads},
                    {"seed", seed_of(study)}}},
                  {"complete", result.outcome.complete},
                  {"conditions", conditions}});
}

std::string theory_json(const std::vector<ComputedCondition>& theory, int threads,
                        const Provenance& program) {
  Json conditions = Json::array();
  for (const ComputedCondition& computed : theory) conditions.push_back(computed_of(computed));
  return text_of({{"headlab",
                   {{"version", program.version},
                    {"git", program.git},
                    {"backend", nullptr},
                    {"simd", nullptr},
                    {"device", nullptr},
                    {"threads", threads},
                    {"seed", nullptr}}},
                  {"complete", true},
                  {"conditions", conditions}});
}

}  // namespace headlab
