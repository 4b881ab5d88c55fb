// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/condition.h"

#include <cstdint>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/error.h"

namespace headlab {
namespace {

int design_dimension(const Scenario& scenario) {
  return std::visit([](const auto& law) { return law.dimension(); }, scenario.design);
}

/// A point as the backends see it, in float32, byte by byte: -0 and 0 are the same place.
template <class Number>
std::string key_of(const Number* point, int d) {
  std::string key;
  for (int j = 0; j < d; ++j) {
    const float x = static_cast<float>(point[j]) + 0.0f;
    key.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  return key;
}

/// Rows of the design's data file at which the given queries lie: m is known nowhere else.
std::vector<std::uint32_t> find_rows(const Scenario& scenario, const FileDesign& design,
                                     const FileRegression& regression,
                                     const std::vector<double>& points, int d) {
  std::unordered_map<std::string, std::uint32_t> rows;
  std::unordered_map<std::string, bool> ambiguous;
  for (std::size_t i = 0; i < design.rows.size(); ++i) {
    const auto [at, added] =
        rows.emplace(key_of(design.rows[i].data(), d), static_cast<std::uint32_t>(i));
    if (!added && regression.values[i] != regression.values[at->second]) {
      ambiguous[at->first] = true;
    }
  }
  std::vector<std::uint32_t> found;
  const std::size_t count = points.size() / static_cast<std::size_t>(d);
  for (std::size_t q = 0; q < count; ++q) {
    const std::string key = key_of(points.data() + q * static_cast<std::size_t>(d), d);
    const auto at = rows.find(key);
    if (at == rows.end()) {
      reject(scenario, "queries.points",
             "point " + std::to_string(q + 1) +
                 " is not a row of the design's data file, and regression law "
                 "\"file\" is known only there - use queries.law = \"design\"");
    }
    if (ambiguous.contains(key)) {
      reject(scenario, "queries.points",
             "point " + std::to_string(q + 1) +
                 " stands in the design's data file more than once, with different "
                 "values of the regression - use queries.law = \"design\"");
    }
    found.push_back(at->second);
  }
  return found;
}

/// m at the queries [Q], in float64.
std::vector<double> truth_at(const Scenario& scenario, const Plan& plan, QuerySet& set) {
  if (const auto* file = std::get_if<FileRegression>(&scenario.regression)) {
    const auto* design = std::get_if<FileDesign>(&scenario.design);
    if (design == nullptr || design->rows.size() != file->values.size()) {
      reject(scenario, "data.regression",
             "law \"file\" is a column of the design's data file, so the design "
             "must have law \"file\" too");
    }
    if (set.rows.empty()) set.rows = find_rows(scenario, *design, *file, set.points, plan.d);
  }
  std::vector<double> truth;
  const auto d = static_cast<std::size_t>(plan.d);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    const std::uint32_t row = set.rows.empty() ? 0 : set.rows[q];
    truth.push_back(std::visit(
        [&](const auto& m) { return m(plan.table.exact(), set.points.data() + q * d, 1, row); },
        plan.regression));
  }
  return truth;
}

}  // namespace

Sizes sizes_of(const Scenario& scenario) {
  return {
      .d = design_dimension(scenario), .heads = scenario.heads, .k = scenario.k, .n = scenario.n};
}

HeadFrames make_head_frames(const Scenario& scenario, const Preparation& found) {
  const Sizes sizes = sizes_of(scenario);
  return std::visit(
      [&](const auto& law) {
        law.check(sizes);
        return found.heads ? found.heads->frames : law.generate(sizes);
      },
      scenario.subspaces);
}

Plan make_plan(const Scenario& scenario, const Preparation& found) {
  const Sizes sizes = sizes_of(scenario);
  Plan plan;
  plan.n = scenario.n;
  plan.d = sizes.d;
  plan.heads = scenario.heads;
  plan.k = scenario.k;

  plan.seed = scenario.seed;
  if (scenario.fixed_design) plan.fixed_design_seed = scenario.design_seed;

  plan.design = std::visit([&](const auto& law) { return DesignSampler(law.sampler(plan.table)); },
                           scenario.design);
  plan.regression = std::visit(
      [&](const auto& law) { return RegressionFunction(law.function(plan.table, sizes.d)); },
      scenario.regression);
  plan.noise =
      std::visit([&](const auto& law) { return NoiseSampler(law.sampler(plan.table, sizes.d)); },
                 scenario.noise);
  plan.kernel = scenario.kernel;

  const HeadFrames frames = make_head_frames(scenario, found);
  plan.projections = frames.numbers();
  plan.query_projections = frames.queries();
  const auto* learned = std::get_if<LearnedSubspaces>(&scenario.subspaces);
  if (learned != nullptr && !learned->once()) {
    plan.learning = make_learning(scenario);
    plan.query_projections = plan.learning->start.queries;
  }
  plan.head_weights = std::visit(
      [&](const auto& law) {
        law.check(sizes);
        return found.head_weights ? *found.head_weights : law.values(sizes);
      },
      scenario.weights);

  QuerySet set = std::visit(
      [&](const auto& law) {
        law.check(sizes.d);
        return law.generate(sizes.d, plan.design, plan.table);
      },
      scenario.queries);
  plan.queries = static_cast<int>(set.points.size() / static_cast<std::size_t>(sizes.d));
  plan.truth = truth_at(scenario, plan, set);
  plan.query_points = std::move(set.points);

  plan.estimator = scenario.estimator;
  plan.moments = scenario.moments;
  return plan;
}

bool projects_queries_apart(const Scenario& scenario) {
  if (const auto* given = std::get_if<ExplicitSubspaces>(&scenario.subspaces)) {
    return !given->query_matrices.empty();
  }
  if (const auto* file = std::get_if<FileSubspaces>(&scenario.subspaces)) return file->query_key;
  const auto* learned = std::get_if<LearnedSubspaces>(&scenario.subspaces);
  return learned != nullptr && learned->form() == HeadForm::query_key;
}

Learning make_learning(const Scenario& scenario) {
  const auto& law = std::get<LearnedSubspaces>(scenario.subspaces);
  const Sizes sizes = sizes_of(scenario);
  const HeadFrames start = law.start_frames(sizes);
  // Optimal weights are found for the heads that are learned, with equal ones meanwhile.
  const std::vector<double> weights =
      std::holds_alternative<OptimalWeights>(scenario.weights)
          ? UniformWeights{}.values(sizes)
          : std::visit([&](const auto& of) { return of.values(sizes); }, scenario.weights);
  HeadParameters heads{.heads = start.heads(),
                       .d = start.d(),
                       .k = start.k(),
                       .keys = start.numbers(),
                       .queries = {},
                       .weights = weights};
  if (law.form() == HeadForm::query_key) heads.queries = heads.keys;
  return {.start = std::move(heads),
          .form = law.form(),
          .learns_weights = std::holds_alternative<LearnedWeights>(scenario.weights),
          .steps = law.steps,
          .batch = law.batch,
          .learning_rate = law.learning_rate,
          .diversity = law.diversity,
          .held_out = law.held_out,
          .patience = law.patience,
          .seed = law.seed};
}

bool learns_heads_once(const Scenario& scenario) {
  const auto* law = std::get_if<LearnedSubspaces>(&scenario.subspaces);
  return law != nullptr && law->once();
}

std::string source_location(const Scenario& scenario, const std::string& key) {
  const Value* value = &scenario.parameters;
  std::istringstream path(key);
  std::string name;
  while (std::getline(path, name, '.')) {
    const Value* member = value->find(name);
    if (member == nullptr) break;
    value = member;
  }
  return value->location.source.empty() ? "" : value->location.text();
}

void reject(const Scenario& scenario, const std::string& key, const std::string& problem) {
  const std::string where = source_location(scenario, key);
  throw Refused((where.empty() ? "" : where + ": ") + key + ": " + problem);
}

}  // namespace headlab
