// SPDX-License-Identifier: Apache-2.0
#include "engine/run/memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <variant>
#include <vector>

#include "engine/files/table_file.h"
#include "engine/moments/moment_tree.h"
#include "engine/run/control_pilot.h"
#include "engine/run/learned_heads.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/stack/stack_setting.h"
#include "kernels/backends.h"
#include "kernels/counted.h"
#include "kernels/laws.h"
#include "kernels/learning/worker.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// A count of bytes that stays at 2^64 - 1 where it would overflow.
struct Bytes {
  std::uint64_t value = 0;

  friend Bytes operator+(Bytes a, Bytes b) {
    std::uint64_t sum = 0;
    return {__builtin_add_overflow(a.value, b.value, &sum) ? unlimited : sum};
  }
  friend Bytes operator*(Bytes a, Bytes b) {
    std::uint64_t product = 0;
    return {__builtin_mul_overflow(a.value, b.value, &product) ? unlimited : product};
  }
  bool operator<(Bytes other) const { return value < other.value; }
};

template <class Integer>
Bytes bytes(Integer count) {
  return {static_cast<std::uint64_t>(count)};
}

/// A part of the memory and the key that decides how large it is.
struct Part {
  Bytes bytes;
  std::string knob;
};

std::string queries_knob(const Condition& condition) {
  return std::holds_alternative<DesignQueries>(*condition.queries) ? "queries.count"
                                                                   : "queries.points";
}

// A number of a table is kept as double and as float, in arrays that may double to make room; while
// it is made it stands in the law once more.
constexpr std::uint64_t table_number = 2 * (sizeof(double) + sizeof(float)) + sizeof(double);

/// Numbers a law puts into the table. Laws not named here hold no more than the scenario text does.
template <class Law>
Bytes table_numbers(const Law&, Bytes) {
  return {};
}
Bytes table_numbers(const NormalDesign& law, Bytes d) {
  const bool standard = law.mean.empty() && law.covariance.empty() && !law.ar1;
  return standard ? Bytes{} : d * d * bytes(2) + d;
}
Bytes table_numbers(const MixtureDesign& law, Bytes d) {
  return bytes(law.weights.size()) * d * (d + bytes(1));
}
// The numbers of files are shared by all conditions, and there when this is asked.
Bytes table_numbers(const RandomCosinesRegression& law, Bytes d) {
  return bytes(law.terms) * (d * bytes(2) + bytes(2));
}

/// Heads and queries, each as generated, and as the plan keeps it.
Bytes table_numbers(const FileRegression& law, Bytes) {
  return bytes(law.values.size());
}

Bytes subspace_bytes(int heads, int d, int k) {
  return bytes(heads) * bytes(d) * bytes(k) * bytes(2 * sizeof(double));
}
Bytes query_bytes(int queries, int d) {
  return bytes(queries) * bytes(d + 2) * bytes(2 * sizeof(double));
}

std::vector<Part> plan_parts(const Condition& condition) {
  if (condition.stack) {
    const StackBytes all = stack_bytes(*condition.stack);
    return {{{all.tokens}, "tokens.n"}, {{all.maps}, "heads.count"}};
  }
  const Bytes d = bytes(dimension_of(condition));
  const Bytes subspaces = subspace_bytes(condition.heads, dimension_of(condition), condition.k);
  const Bytes queries = query_bytes(query_count(condition), dimension_of(condition));
  const Bytes design =
      std::visit([&](const auto& law) { return table_numbers(law, d); }, *condition.design);
  const Bytes regression =
      std::visit([&](const auto& law) { return table_numbers(law, d); }, *condition.regression);
  return {{subspaces, "heads.count"},
          {queries, queries_knob(condition)},
          {design * bytes(table_number), "data.design.dim"},
          {regression * bytes(table_number), "data.regression.terms"}};
}

Bytes sum_of(const std::vector<Part>& parts) {
  Bytes sum;
  for (const Part& part : parts) sum = sum + part.bytes;
  return sum;
}

}  // namespace

std::uint64_t moments_bytes(const MomentLayout& layout, std::uint64_t replicates, int workers) {
  const Bytes heads = bytes(layout.heads);
  const Bytes queries = bytes(layout.queries);
  const Bytes components = heads + bytes(layout.pairwise() ? 0 : 1);
  const auto h = static_cast<std::uint64_t>(layout.heads);
  const Bytes pairs = layout.pairwise() ? Bytes{h * (h + 1) / 2} : components;
  const Bytes controlled = layout.controlled() ? heads + pairs + bytes(2) : Bytes{};
  const Bytes numbers =
      components + pairs * bytes(layout.conditional ? 2 : 1) + bytes(1) + controlled;
  const Bytes leaf = queries * numbers * bytes(sizeof(double)) + bytes(sizeof(Node) + 64);
  const Bytes figures_of_draw = bytes(draw_statistics * sizeof(double) + sizeof(Node) + 64);
  const Bytes node = layout.per_draw ? figures_of_draw : leaf;

  // The nodes of a run are never more than just before the first leaf; they are held by the run, by
  // the results so far, and by what is made of those: merged for the jackknife, or three times
  // while a file is written.
  const Bytes nodes = bytes(std::min(replicates, first_leaf)) * bytes(5);
  // Each worker may be four blocks ahead of the oldest one; a block of large nodes holds one.
  const Bytes under_way = bytes(workers) * bytes(4);
  const Bytes matrices = layout.pairwise() ? heads * heads : Bytes{};
  const Bytes figures = queries * (components + matrices) * bytes(2 * sizeof(double));
  if (layout.per_draw) {
    // Each worker has the moments of a leaf, and the figures of those of its block.
    const Bytes of_worker = leaf + node * bytes(std::min(replicates, max_block_replicates) / 8);
    return (node * (nodes + under_way) + figures + bytes(workers) * of_worker).value;
  }
  // The jackknife keeps every figure of one query for every node left out, of layers those of all
  // and the moments behind them.
  const Bytes of_one = (components + pairs) * bytes(first_leaf) * bytes(sizeof(double));
  const Bytes leave_one_out =
      layout.mode == MomentMode::separate ? of_one * queries * bytes(3) : of_one;
  return (node * (nodes + under_way) + figures + leave_one_out).value;
}

std::uint64_t simulation_bytes(Plans plans, std::uint64_t replicates, const Backend& backend,
                               int workers) {
  Bytes sum = bytes(workers) * bytes(worker_bytes(backend, plans));
  for (const Plan* plan : plans) {
    sum = sum + bytes(moments_bytes(plan->kept_layout(), replicates, workers));
    if (!plan->redraws) continue;
    // Each worker has the heads and queries of its draw.
    sum = sum + bytes(workers) * (subspace_bytes(plan->heads, plan->d, plan->k) +
                                  query_bytes(plan->queries, plan->d));
  }
  return sum.value;
}

TableBytes table_bytes(const Scenario& scenario) {
  std::map<const void*, std::uint64_t> kept;
  for (const Condition& condition : scenario.conditions) {
    if (const auto* rows = std::get_if<FileDesign>(&*condition.design)) {
      kept[rows->rows.numbers().data()] = rows->rows.numbers().size_bytes();
    }
    if (const auto* values = std::get_if<FileRegression>(&*condition.regression)) {
      kept[values->values.exact()] = values->values.size() * (sizeof(double) + sizeof(float));
    }
  }
  TableBytes all;
  for (const auto& [numbers, size] : kept) all.kept += size;
  for (const std::string& path : scenario.inputs) {
    if (const auto read = table_read(path)) all.reading = std::max(all.reading, read->bytes);
  }
  if (all.reading > 0) all.reading += all.kept;
  return all;
}

std::uint64_t plan_bytes(const Condition& condition) {
  return sum_of(plan_parts(condition)).value;
}

void check_fit_memory(const Condition& condition) {
  if (!learns_heads_once(condition)) return;
  const auto& law = std::get<LearnedSubspaces>(*condition.subspaces);
  const Bytes d = bytes(dimension_of(condition));
  // As drawn in float64, as the fit has it, and projected in float32; a batch with the sums of its
  // queries; the matrices at every check.
  const Bytes points =
      bytes(law.points.value_or(condition.n)) *
      (d * bytes(20) + bytes(40) + bytes(condition.heads) * bytes(condition.k + 1) * bytes(4));
  const Bytes batch =
      bytes(law.batch) * (d * bytes(4) + bytes(fit_sums_bytes(condition.heads, condition.k)));
  const Bytes history = bytes(law.steps / check_steps + 2) * bytes(condition.heads) * d *
                        bytes(condition.k) * bytes(2 * sizeof(double));
  const std::string knob = points.value >= (batch + history).value
                               ? (law.points ? "heads.subspaces.points" : "data.n")
                           : batch.value >= history.value ? "heads.subspaces.batch"
                                                          : "heads.subspaces.steps";
  require_memory((sum_of(plan_parts(condition)) + points + batch + history).value,
                 "to learn the heads", knob, "", source_location(condition, knob));
}

namespace {

/// Of a study of depth.
void check_stack_memory(const Condition& condition, const Backend& backend, int threads) {
  const auto workers = std::min(static_cast<std::uint64_t>(threads), condition.replicates);
  std::vector<Part> parts = plan_parts(condition);
  parts.push_back(
      {bytes(moments_bytes(layout_of(condition), condition.replicates, static_cast<int>(workers))),
       "layers.count"});
  const auto require = [&](const std::string& what, const std::string& alternative) {
    const auto largest =
        std::ranges::max_element(parts, {}, [](const Part& part) { return part.bytes.value; });
    require_memory(sum_of(parts).value, what, largest->knob, alternative,
                   source_location(condition, largest->knob));
  };
  require("to set the scenario up", "");
  Plan plan = make_plan(condition);
  const Plan* const one = &plan;
  const std::uint64_t of_worker = worker_bytes(backend, {&one, 1});
  plan.n = 1;
  const bool by_tokens = worker_bytes(backend, {&one, 1}) <= of_worker / 2;
  const bool has_dim = condition.parameters.tree().find("tokens")->find("design")->find("dim");
  parts.push_back({bytes(workers) * bytes(of_worker),
                   by_tokens || !has_dim ? "tokens.n" : "tokens.design.dim"});
  require("for " + counted(static_cast<std::uint64_t>(workers), "worker"),
          workers > 1 ? "or use --threads 1" : "");
}

}  // namespace

void check_memory(const Condition& condition, const Backend& backend, int threads) {
  if (condition.stack) {
    check_stack_memory(condition, backend, threads);
    return;
  }
  const MomentLayout layout = layout_of(condition);
  // Optimal weights come from a pilot, which is pairwise whatever the run is.
  MomentLayout pilot = layout;
  pilot.mode = MomentMode::pairwise;
  pilot.conditional = true;
  const auto* optimal = std::get_if<OptimalWeights>(&*condition.weights);
  const std::uint64_t replicates =
      std::max(condition.replicates, optimal ? optimal->replicates : 0);
  // No more workers start than there are replicates.
  const int workers = static_cast<int>(std::min(static_cast<std::uint64_t>(threads), replicates));
  std::uint64_t moments = moments_bytes(layout, condition.replicates, workers);
  if (optimal) {
    moments = std::max(moments, moments_bytes(pilot, optimal->replicates, workers));
  }

  if (const auto* exact = std::get_if<ExactControls>(&*condition.controls)) {
    // The pilot keeps the statistics of every replicate; the coefficients and their means stay.
    MomentLayout of_pilot = layout;
    of_pilot.controls = ControlStatistics::sums;
    const Bytes kept = bytes(layout.queries) *
                       (bytes(layout.heads) * bytes(2 * estimate_controls) +
                        bytes(layout.pairs()) * bytes(2 * noise_controls)) *
                       bytes(sizeof(double));
    const Bytes statistics =
        bytes(exact->pilot) * bytes(of_pilot.statistics()) * bytes(sizeof(double));
    const auto means = static_cast<std::uint64_t>(control_cost(condition).bytes);
    moments = (bytes(std::max(moments, statistics.value)) + kept + bytes(means)).value;
  }

  std::vector<Part> parts = plan_parts(condition);
  if (redraws(condition)) {
    // Each worker has the heads and queries of its draw.
    for (Part& part : std::span(parts).first(2)) part.bytes = part.bytes * bytes(workers + 1);
  }
  parts.push_back({bytes(moments), queries_knob(condition)});
  const std::string aggregate =
      layout.pairwise() && layout.heads > 3 ? "or use run.moments = \"aggregate\"" : "";
  auto require = [&](Bytes needed, const std::string& what, const std::string& knob,
                     const std::string& alternative) {
    require_memory(needed.value, what, knob, alternative, source_location(condition, knob));
  };
  const auto largest = std::max_element(
      parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.bytes < b.bytes; });
  const bool by_moments = largest == parts.end() - 1;
  const Bytes before = sum_of(parts);
  require(before, by_moments ? "for the moments" : "to set the scenario up", largest->knob,
          by_moments ? aggregate : "");

  // One training set with its projections in float64: beyond 64 bits a backend could not count it.
  const Bytes sample = bytes(condition.n) *
                       (bytes(condition.heads) * bytes(condition.k + 1) +
                        bytes(dimension_of(condition)) + bytes(8)) *
                       bytes(sizeof(double));
  if (sample.value == unlimited) require(sample, "for one training set", "data.n", "");

  check_fit_memory(condition);

  Condition ready = condition;
  if (optimal) ready.weights = UniformWeights{};
  if (learns_heads_once(ready)) ready.subspaces = AlignedSubspaces{};
  Plan plan = make_plan(ready);
  const Plan* const one = &plan;
  const auto of_backend = [&] { return bytes(workers) * bytes(worker_bytes(backend, {&one, 1})); };
  const bool needs_cpu =
      std::holds_alternative<ExactControls>(*condition.controls) && pilot_needs_cpu(backend);
  const auto of_cpu = [&] {
    return needs_cpu ? bytes(worker_bytes(*make_backend("cpu"), {&one, 1})) : bytes(0);
  };
  const auto of_workers = [&] { return std::max(of_backend(), of_cpu()); };
  const Bytes with_points = of_workers();
  const bool by_cpu = of_backend() < of_cpu();
  const Bytes all = before + with_points;
  if (with_points < before) {
    require(all, by_moments ? "for the moments" : "to set the scenario up", largest->knob,
            by_moments ? aggregate : "");
    return;
  }
  // n decides where most of it goes away with n, else the number of queries does.
  plan.n = 1;
  const bool by_points = of_workers().value <= with_points.value / 2;
  require(all,
          by_cpu ? "for the worker of cpu that the pilot of controls needs"
                 : "for " + counted(static_cast<std::uint64_t>(workers), "worker"),
          by_points ? "data.n" : queries_knob(condition),
          !by_cpu && workers > 1 ? "or use --threads 1" : "");
}

}  // namespace headlab
