// SPDX-License-Identifier: Apache-2.0
#include "engine/results/summary_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/json_fields.h"
#include "engine/moments/measures.h"
#include "engine/results/condition_record.h"
#include "engine/results/results_id.h"
#include "engine/scenario/scenario.h"

namespace headlab {
namespace {

/// Levels on lines of their own: the members of the document and the conditions.
constexpr std::size_t lines = 2;

/// Beyond this many numbers the matrices of all queries go to results.nc alone.
constexpr double max_matrix_numbers = 1e5;

/// What made a summary; of closed forms no backend and no seed.
struct SummaryHead {
  const Provenance& program;
  const RunResult* result;  ///< null for closed forms
  int threads;
  std::optional<std::uint64_t> seed;
  std::string replay = {};  ///< of closed forms

  template <class Visitor>
  void fields(Visitor& visit) const {
    auto of_run = [&](std::string Machine::*text) {
      return result ? std::optional(result->machine.*text) : std::nullopt;
    };
    visit("version", program.version, "version of headlab");
    visit("git", program.git, "commit");
    visit("backend", of_run(&Machine::backend), "backend");
    visit("simd", of_run(&Machine::simd), "SIMD target");
    visit("device", of_run(&Machine::device), "processor or GPU");
    visit("threads", threads, "threads");
    visit("seed", seed, "seed of all conditions");
  }
};

/// The targets of a run and its looks at them.
struct PrecisionRecord {
  const Precision& precision;

  struct OneTarget {
    const PrecisionTarget& target;
    template <class Visitor>
    void fields(Visitor& visit) const {
      visit("figure", target.figure_text(), "figure");
      visit("condition", target.condition, "that alone, from 0");
      visit("limit", target.limit, "largest standard error, or percent of the figure");
      visit("relative", target.relative, "the limit is in percent");
    }
  };
  struct OneLook {
    const Look& look;
    const std::vector<PrecisionTarget>& targets;
    template <class Visitor>
    void fields(Visitor& visit) const {
      visit("replicates", look.replicates, "training sets");
      visit("ratio", look.ratio, "largest MCSE over target");
      visit("condition", look.condition, "that has it, from 0");
      visit("figure", targets.at(look.target).figure_text(), "that has it");
      visit("undefined", look.undefined, "figures that are undefined");
    }
  };

  template <class Visitor>
  void fields(Visitor& visit) const {
    std::vector<OneTarget> targets;
    for (const PrecisionTarget& target : precision.targets) targets.push_back({target});
    std::vector<OneLook> looks;
    for (const Look& look : precision.looks) looks.push_back({look, precision.targets});
    visit("text", until_text(precision.targets), "as in --until");
    visit("most", precision.most, "replicates, never to be exceeded");
    visit("targets", targets, "largest standard errors");
    visit("looks", looks, "at the standard errors");
  }
};

/// Closed forms next to the simulation of the condition: without what that says already, with z.
struct ComparedRecord {
  const ComputedCondition& computed;

  template <class Visitor>
  void fields(Visitor& visit) const {
    head_fields(visit, computed.result);
    if (computed.condition->stack) {
      visit("layers", layer_records(computed.result.layers, computed.result.listed),
            "metrics of each layer", {.item = "layer"});
    } else {
      record_of(computed).error_fields(visit);
    }
    std::vector<std::pair<std::string, double>> z;
    for (const ComparedFigure& one : computed.simulated.figures) z.emplace_back(one.name, one.z);
    visit("z", by_name(z), "(simulated - computed)/sqrt(MCSE^2 + remainder^2 + rounding^2)",
          {.item = "z"});
    visit("largest_z", computed.simulated.largest, "largest |z| of bias, variance, covariance",
          {.item = "largest"});
  }

  template <class Visitor>
  static void head_fields(Visitor& visit, const TheoryResult& closed) {
    visit("source", closed.source, "exact or first_order");
    visit("certificate", closed.normalisation_error,
          "largest deviation of the sum of the weights from 1");
  }
};

/// A replicate that is extreme by some key.
struct ExtremeRecord {
  Extreme extreme;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("replicate", extreme.replicate, "replicate, from 0");
    visit("key", extreme.key, "what it is extreme by");
  }
};

std::vector<ExtremeRecord> records_of(const ExtremeList& list) {
  std::vector<ExtremeRecord> records;
  for (const Extreme& extreme : list.all()) records.push_back({extreme});
  return records;
}

/// The most extreme replicates of a condition.
struct ExtremesRecord {
  Extremes extremes;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("max_error", records_of(extremes.max_error),
          "squared error of the ensemble, averaged over queries");
    const auto& sizes = extremes.min_sample_size;
    visit("min_sample_size", sizes ? std::optional(records_of(*sizes)) : std::nullopt,
          "least effective sample size of heads and queries");
  }
};

std::optional<ExtremesRecord> extremes_of(const MomentTree& tree) {
  std::optional<Extremes> extremes = tree.extremes();
  if (!extremes) return std::nullopt;
  return ExtremesRecord{std::move(*extremes)};
}

/// The seed all conditions share, or none where the sweep varies it.
std::optional<std::uint64_t> seed_of(const Scenario& scenario) {
  const auto& conditions = scenario.conditions;
  const bool one =
      !conditions.empty() && std::ranges::all_of(conditions, [&](const Condition& condition) {
        return condition.seed == conditions.front().seed;
      });
  return one ? std::optional(conditions.front().seed) : std::nullopt;
}

/// Writes a document around the fields of `count` conditions.
template <class Fields>
void write_document(const TextSink& sink, const SummaryHead& head, bool complete, std::size_t count,
                    const Fields& condition_fields) {
  JsonWriter out(sink, {.lines = lines, .sum = true});
  JsonFields document(out);
  out.begin_object();
  document("headlab", head, "what made the summary");
  document("results_id", head.result ? std::optional(results_id(*head.result)) : std::nullopt,
           "the same in results.nc");
  if (!head.replay.empty()) {
    document("replay", head.replay, "command that gives the same numbers");
  }
  document("complete", complete, "every replicate was computed");
  if (head.result && head.result->precision) {
    const Precision& precision = *head.result->precision;
    document("target_met", complete ? std::optional(precision.met()) : std::nullopt,
             "standard errors are as small as asked for");
    document("until", PrecisionRecord{precision}, "what was asked for");
  }
  if (head.result && !head.result->difference_to.empty()) {
    document("difference_to", head.result->difference_to, "what differences subtract");
  }
  document.close();
  out.key("conditions");
  out.begin_array();
  for (std::size_t i = 0; i < count; ++i) {
    out.begin_object();
    condition_fields(i, out);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  out.finish();
}

std::vector<std::string> doubtful_measures(const ErrorTerms<Estimate>& terms) {
  std::vector<std::string> names;
  for (const Measured<Estimate>& measure : terms.measures) {
    if (divides_by_noise(measure)) names.push_back(name_of(*measure.of));
  }
  return names;
}

bool has_matrices(const Plan& plan) {
  return plan.moments == MomentMode::pairwise &&
         static_cast<double>(plan.queries) * plan.heads * plan.heads <= max_matrix_numbers;
}

}  // namespace

void write_summary_json(const TextSink& out, const Scenario& scenario, const RunResult& result,
                        const std::vector<ConditionIndices>& indices, const Provenance& program,
                        const std::vector<ComputedCondition>& theory) {
  write_document(
      out, {program, &result, result.machine.threads, seed_of(scenario)}, result.outcome.complete,
      result.conditions.size(), [&](std::size_t i, JsonWriter& to) {
        const ConditionResult& one = result.conditions[i];
        const ConditionIndices of_condition = i < indices.size() ? indices[i] : ConditionIndices{};
        JsonFields visit(to, has_matrices(one.plan));
        visit_condition(one, of_condition, visit);
        if (one.difference) visit("difference", *one.difference, "difference between conditions");
        const std::vector<RareFigure> rare = rare_figures(one.estimates);
        if (!rare.empty()) {
          visit("few_carriers", rare, "figures that fewer than 20 replicates carry",
                {.item = "figure"});
        }
        const std::vector<std::string> doubtful = doubtful_measures(one.estimates);
        if (!doubtful.empty()) {
          visit("doubtful_measures", doubtful, "measures that divide by what may be 0");
        }
        visit("extremes", extremes_of(one.tree), "most extreme replicates");
        if (i < theory.size()) visit("theory", ComparedRecord{theory[i]}, "closed forms");
        visit.close();
      });
}

void write_theory_json(const TextSink& out, const std::vector<ComputedCondition>& theory,
                       int threads, const Provenance& program, const std::string& replay) {
  write_document(out, {program, nullptr, threads, std::nullopt, replay}, true, theory.size(),
                 [&](std::size_t i, JsonWriter& to) {
                   const TheoryResult& closed = theory[i].result;
                   JsonFields visit(to, has_matrices(*closed.plan));
                   ComparedRecord::head_fields(visit, closed);
                   visit_condition(theory[i], visit);
                   visit.close();
                 });
}

}  // namespace headlab
