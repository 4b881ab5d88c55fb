// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/condition.h"

#include <sstream>
#include <unordered_map>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/stack/stack_setting.h"
#include "kernels/counted.h"
#include "kernels/laws.h"
#include "kernels/learning/learning.h"
#include "kernels/plan.h"
#include "kernels/stack/metrics.h"

namespace headlab {
namespace {

/// Everything of a plan that the laws do not make.
Plan sizes_and_settings(const Condition& condition) {
  Plan plan;
  plan.n = condition.n;
  plan.d = dimension_of(condition);
  plan.heads = condition.heads;
  plan.k = condition.k;
  plan.queries = query_count(condition);
  plan.seed = condition.seed;
  if (condition.fixed_design) plan.fixed_design_seed = condition.design_seed;
  plan.estimator = condition.estimator;
  plan.moments = condition.moments;
  plan.redraws = redraws(condition);
  return plan;
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
std::vector<std::uint32_t> find_rows(const Condition& condition, const FileDesign& design,
                                     const FileRegression& regression,
                                     const std::vector<double>& points, int d) {
  std::unordered_map<std::string, std::uint32_t> rows;
  std::unordered_map<std::string, bool> ambiguous;
  for (std::size_t i = 0; i < design.rows.size(); ++i) {
    const auto [at, added] =
        rows.emplace(key_of(design.rows[i].data(), d), static_cast<std::uint32_t>(i));
    if (!added && regression.values.exact()[i] != regression.values.exact()[at->second]) {
      ambiguous[at->first] = true;
    }
  }
  std::vector<std::uint32_t> found;
  const std::size_t count = points.size() / static_cast<std::size_t>(d);
  for (std::size_t q = 0; q < count; ++q) {
    const std::string key = key_of(points.data() + q * static_cast<std::size_t>(d), d);
    const auto at = rows.find(key);
    if (at == rows.end()) {
      reject(condition, "queries.points",
             "points[" + std::to_string(q) +
                 "] is not a row of the design's data file, and regression law "
                 "\"file\" is known only there - use queries.law = \"design\"");
    }
    if (ambiguous.contains(key)) {
      reject(condition, "queries.points",
             "points[" + std::to_string(q) +
                 "] stands in the design's data file more than once, with different "
                 "values of the regression - use queries.law = \"design\"");
    }
    found.push_back(at->second);
  }
  return found;
}

/// m at the queries [Q], in float64.
std::vector<double> truth_at(const Condition& condition, const Plan& plan, QuerySet& set) {
  if (const auto* file = std::get_if<FileRegression>(&*condition.regression)) {
    const auto* design = std::get_if<FileDesign>(&*condition.design);
    if (design == nullptr || design->rows.size() != file->values.size()) {
      reject(condition, "data.regression",
             "law \"file\" is a column of the design's data file, so the design "
             "must have law \"file\" too");
    }
    if (!set.truth.empty()) return set.truth;
    if (set.rows.empty()) set.rows = find_rows(condition, *design, *file, set.points, plan.d);
  }
  std::vector<double> truth;
  const auto d = static_cast<std::size_t>(plan.d);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    const std::uint32_t row = set.rows.empty() ? 0 : set.rows[q];
    truth.push_back(std::visit(
        [&](const auto& m) { return m(plan.table.exact(), set.points.data() + q * d, 1, row); },
        *plan.regression));
    if (!std::isfinite(truth.back())) {
      std::string x;
      for (std::size_t j = 0; j < d; ++j) {
        x += (j == 0 ? "" : ", ") + number_text(set.points[q * d + j]);
      }
      reject(condition, "data.regression",
             "is " + number_text(truth.back()) + " at query " + std::to_string(q) + ", x = (" +
                 one_line(x, 200) + ")");
    }
  }
  return truth;
}

void set_queries(Plan& plan, const Condition& condition, QuerySet set) {
  plan.queries = static_cast<int>(set.points.size() / static_cast<std::size_t>(plan.d));
  plan.truth = truth_at(condition, plan, set);
  plan.query_points = std::move(set.points);
}

}  // namespace

Condition::Condition() = default;
Condition::~Condition() = default;
Condition::Condition(const Condition&) = default;
Condition::Condition(Condition&&) noexcept = default;
Condition& Condition::operator=(const Condition&) = default;
Condition& Condition::operator=(Condition&&) noexcept = default;

int dimension_of(const Condition& condition) {
  return std::visit([](const auto& law) { return law.dimension(); }, *condition.design);
}

int query_count(const Condition& condition) {
  return std::visit([](const auto& law) { return law.size(); }, *condition.queries);
}

bool is_softmax(const Condition& condition) {
  return std::holds_alternative<SoftmaxKernel>(*condition.kernel);
}

Sizes sizes_of(const Condition& condition) {
  return {
      .d = dimension_of(condition), .heads = condition.heads, .k = condition.k, .n = condition.n};
}

MomentLayout layout_of(const Condition& condition) {
  if (condition.stack) return stack_layout(condition.stack->layers);
  MomentLayout layout = sizes_and_settings(condition).kept_layout();
  if (std::holds_alternative<ExactControls>(*condition.controls)) {
    layout.controls = ControlStatistics::controlled;
  }
  return layout;
}

Subspaces make_subspaces(const Condition& condition, const Preparation& found) {
  const Sizes sizes = sizes_of(condition);
  return std::visit(
      [&](const auto& law) {
        law.check(sizes);
        Subspaces subspaces = found.heads ? found.heads->subspaces : law.generate(sizes);
        apply_stages(condition.mechanism, subspaces);
        return subspaces;
      },
      *condition.subspaces);
}

namespace {

void calibrate_compression(Condition& condition) {
  MechanismStages stages = condition.mechanism;
  auto& compress = std::get<std::optional<CompressStage>>(stages);
  if (!compress || compress->off(condition.heads, condition.k)) return;
  const int d = dimension_of(condition);
  std::vector<double> query_points;
  if (compress->queries == "scenario") {
    if (redraws(*condition.queries)) {
      throw ParameterError("compress.queries",
                           "is \"scenario\", but queries are drawn again for every 8 replicates - "
                           "use \"design\", or leave queries.redraw out");
    }
    Table table;
    const DesignSampler design = std::visit(
        [&](const auto& law) { return DesignSampler(law.sampler(table)); }, *condition.design);
    query_points = std::visit([&](const auto& law) { return law.generate(d, design, table); },
                              *condition.queries)
                       .points;
    const std::uint64_t count = query_points.size() / static_cast<std::size_t>(d);
    for (int h = 0; h < condition.heads; ++h) {
      const std::uint64_t rank = compress->rank[h];
      if (rank >= static_cast<std::uint64_t>(condition.k) || rank < count) continue;
      throw ParameterError("compress.queries",
                           "is \"scenario\" with " + counted(count, "query", "queries") +
                               ", which rank " + std::to_string(rank) +
                               " fits exactly - use \"design\", or more queries");
    }
  }
  calibrate(*compress, *condition.design, d, query_points);
  condition.mechanism = stages;
}

/// The least number of points that a head may see.
double fewest_points(const Plan& plan) {
  double fewest = static_cast<double>(plan.n);
  for (const SeenTokens& seen : plan.mechanism.seen) {
    fewest = std::min(fewest, static_cast<double>(seen.count()));
  }
  for (const std::uint64_t top : plan.mechanism.keep.top) {
    fewest = std::min(fewest, static_cast<double>(top));
  }
  return std::max(1.0, fewest);
}

/// Weights are not negative and have the sum 1, so that an estimate lies between the responses.
EstimateBounds bounds_of(const Condition& condition, const Plan& plan) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  // Of a token: responses that a merge scales up.
  const double scale = std::max(1.0, plan.mechanism.merge.group_weight());
  const double noise = noise_variance_bound(*condition.noise);
  const bool conditional = condition.estimator == Estimator::conditional;
  EstimateBounds bounds;
  bounds.noise_variance = conditional ? scale * scale * noise : 0;
  bounds.estimate =
      conditional || noise == 0 ? scale * regression_bound(*condition.regression) : infinity;

  // |f_h| is large where all points that the head sees are far away, or where a response is.
  const double far = std::visit([](const auto& law) { return tail_of(law); }, *condition.design) *
                     fewest_points(plan);
  const double growth =
      std::max(std::visit([](const auto& m) { return growth_of(m); }, *condition.regression),
               std::visit([](const auto& e) { return growth_of(e); }, *condition.noise));
  if (growth > 0 && !plan.fixed_design_seed) bounds.moments = far / growth;
  if (!conditional && noise > 0) {
    bounds.moments = std::min(
        bounds.moments, std::visit([](const auto& e) { return tail_of(e); }, *condition.noise));
  }
  bounds.certain = conditional && condition.fixed_design && !redraws(condition) && !plan.learning;
  return bounds;
}

}  // namespace

void calibrate_stages(Condition& condition) {
  calibrate_compression(condition);
  if (!stage<CompressStage>(condition.mechanism) && !stage<TransformStage>(condition.mechanism)) {
    return;
  }
  // Finds ties in what heads keep, and heads of which nothing is left, before anything is drawn; of
  // heads that are large once their memory is known to be there, with the plan.
  constexpr std::uint64_t few_numbers = 1 << 24;
  const Sizes sizes = sizes_of(condition);
  if (static_cast<std::uint64_t>(sizes.heads) * static_cast<std::uint64_t>(sizes.d) *
          static_cast<std::uint64_t>(sizes.k) <=
      few_numbers) {
    make_subspaces(condition);
  }
}

Plan make_plan(const Condition& condition, const Preparation& found) {
  if (condition.stack) return make_stack_plan(*condition.stack);
  const Sizes sizes = sizes_of(condition);
  Plan plan = sizes_and_settings(condition);
  plan.design = std::visit([&](const auto& law) { return DesignSampler(law.sampler(plan.table)); },
                           *condition.design);
  plan.regression = std::visit(
      [&](const auto& law) { return RegressionFunction(law.function(plan.table, sizes.d)); },
      *condition.regression);
  plan.noise =
      std::visit([&](const auto& law) { return NoiseSampler(law.sampler(plan.table, sizes.d)); },
                 *condition.noise);
  plan.kernel = condition.kernel;

  const Subspaces subspaces = make_subspaces(condition, found);
  plan.k = subspaces.k();
  plan.projections = subspaces.numbers();
  plan.query_projections = subspaces.queries();
  const auto* learned = std::get_if<LearnedSubspaces>(&*condition.subspaces);
  if (learned != nullptr && !learned->once()) {
    plan.learning = make_learning(condition);
    plan.query_projections = plan.learning->start.queries;
  }
  plan.mechanism = mechanism_of(condition.mechanism, plan.n, plan.heads);
  plan.head_weights = std::visit(
      [&](const auto& law) {
        law.check(sizes);
        return found.head_weights ? *found.head_weights : law.values(sizes);
      },
      *condition.weights);

  set_queries(plan, condition,
              std::visit(
                  [&](const auto& law) {
                    law.check(sizes.d);
                    return law.generate(sizes.d, *plan.design, plan.table);
                  },
                  *condition.queries));
  // After the queries, which are independent draws.
  std::visit([&](const auto& law) { law.apply(plan); }, *condition.sequence);
  plan.bounds = bounds_of(condition, plan);
  if (found.controls) plan.controls = {found.controls, &found.controls->controls};
  return plan;
}

bool redraws(const Condition& condition) {
  return redraws(*condition.subspaces) || redraws(*condition.queries);
}

void set_draw(Plan& plan, const Condition& condition, std::uint64_t draw) {
  std::visit(
      [&]<class Law>(const Law& law) {
        if constexpr (Redrawable<Law>) {
          if (!law.redraw) return;
          Subspaces drawn = law.generate(sizes_of(condition), draw);
          try {
            apply_stages(condition.mechanism, drawn);
          } catch (const ParameterError& error) {
            throw RunFailed("heads.mechanism." + error.key() + ": in draw " + std::to_string(draw) +
                            ", " + error.what());
          }
          plan.projections = drawn.numbers();
          plan.query_projections = drawn.queries();
        }
      },
      *condition.subspaces);
  std::visit(
      [&]<class Law>(const Law& law) {
        if constexpr (Redrawable<Law>) {
          if (!law.redraw) return;
          DesignSampler independent = *plan.design;
          if (auto* rows = std::get_if<FileDesign::Sampler>(&independent)) rows->successive = 0;
          set_queries(plan, condition, law.generate(plan.d, independent, plan.table, draw));
        }
      },
      *condition.queries);
}

std::vector<std::string> stages_in_force(const Condition& condition) {
  std::vector<std::string> names;
  if (any_stage(condition.mechanism)) {
    names = stages_in_force(condition.mechanism, condition.n, condition.heads, condition.k);
  }
  std::visit(
      [&](const auto& law) {
        if (!law.off()) names.insert(names.begin(), std::string(law.name) + " sequence");
      },
      *condition.sequence);
  return names;
}

bool projects_queries_apart(const Condition& condition) {
  if (const auto* given = std::get_if<ExplicitSubspaces>(&*condition.subspaces)) {
    return !given->query_matrices.empty();
  }
  if (const auto* file = std::get_if<FileSubspaces>(&*condition.subspaces)) return file->query_key;
  const auto* learned = std::get_if<LearnedSubspaces>(&*condition.subspaces);
  return learned != nullptr && learned->form() == HeadMatrixKind::query_key;
}

Learning make_learning(const Condition& condition) {
  const auto& law = std::get<LearnedSubspaces>(*condition.subspaces);
  const Sizes sizes = sizes_of(condition);
  const Subspaces start = law.start_subspaces(sizes);
  // Optimal weights are found for the heads that are learned, with equal ones meanwhile.
  const std::vector<double> weights =
      std::holds_alternative<OptimalWeights>(*condition.weights)
          ? UniformWeights{}.values(sizes)
          : std::visit([&](const auto& of) { return of.values(sizes); }, *condition.weights);
  HeadParameters heads{.heads = start.heads(),
                       .d = start.d(),
                       .k = start.k(),
                       .keys = start.numbers(),
                       .queries = {},
                       .weights = weights};
  if (law.form() == HeadMatrixKind::query_key) heads.queries = heads.keys;
  return {.start = std::move(heads),
          .form = law.form(),
          .learns_weights = std::holds_alternative<LearnedWeights>(*condition.weights),
          .steps = law.steps,
          .batch = law.batch,
          .learning_rate = law.learning_rate,
          .diversity = law.diversity,
          .held_out = law.held_out,
          .patience = law.patience,
          .seed = law.seed};
}

bool learns_heads_once(const Condition& condition) {
  const auto* law = std::get_if<LearnedSubspaces>(&*condition.subspaces);
  return law != nullptr && law->once();
}

std::string source_location(const Condition& condition, const std::string& key) {
  const Value parameters = condition.parameters.tree();
  const Value* value = &parameters;
  std::istringstream path(key);
  std::string name;
  while (std::getline(path, name, '.')) {
    const Value* member = value->find(name);
    if (member == nullptr) break;
    value = member;
  }
  const Location::Source& source = value->location.source;
  return source && !source->empty() ? value->location.text() : "";
}

void require_one_draw(const Condition& condition, const std::string& reason) {
  if (!redraws(condition)) return;
  std::vector<std::string> keys;
  if (redraws(*condition.subspaces)) keys.emplace_back("heads.subspaces.redraw");
  if (redraws(*condition.queries)) keys.emplace_back("queries.redraw");
  std::string advice;
  for (const std::string& key : keys) advice += " --set " + key + "=false";
  reject(condition, keys.front(), "is true, but " + reason + " - write" + advice);
}

void reject(const Condition& condition, const std::string& key, const std::string& problem) {
  const std::string where = source_location(condition, key);
  throw InvalidInput((where.empty() ? "" : where + ": ") + key + ": " + problem);
}

}  // namespace headlab
