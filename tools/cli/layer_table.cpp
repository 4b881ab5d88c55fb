// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/layer_table.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>

#include "engine/files/words.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/stack/stack_setting.h"
#include "kernels/counted.h"
#include "kernels/stack/stack.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/result_notes.h"

namespace headlab::tools {
namespace {

/// A metric of tables and its heading there.
struct TableMetric {
  const char* name;
  const char* heading;
};

/// In the order of a table; those that a condition does not have are left out.
constexpr TableMetric table_metrics[] = {
    {"log_residual", "log residual"},
    {"residual_share", "share"},
    {"cosine", "cosine"},
    {"participation", "participation"},
    {"entropy", "entropy"},
    {"dobrushin", "Dobrushin"},
    {"residual_factor", "factor"},
    {"sink_fidelity", "fidelity"},
    {"target_distance", "from target"},
    {"rank_at_least", "rank, at least"},
    {"rank_at_most", "rank, at most"},
    {"rank_undecided", "rank undecided"},
};

std::string title(const Scenario& scenario) {
  return one_line(scenario.conditions.front().name) + "\n";
}

/// "n 16, d 12, H 2, 7 layers, skip 0, softmax attention": what all conditions have in common.
std::string sizes_line(const Scenario& scenario, const std::vector<const Plan*>& plans) {
  const std::vector<std::string (*)(const StackSetting&, const Plan&)> texts = {
      [](const StackSetting& s, const Plan&) { return "n " + std::to_string(s.n); },
      [](const StackSetting&, const Plan& plan) { return "d " + std::to_string(plan.d); },
      [](const StackSetting& s, const Plan&) { return "H " + std::to_string(s.heads); },
      [](const StackSetting& s, const Plan&) {
        return s.dim ? "d_k " + std::to_string(*s.dim) : std::string();
      },
      [](const StackSetting& s, const Plan&) {
        return std::visit([](const auto& law) { return std::string(law.name); }, s.kernel) +
               " attention";
      },
      [](const StackSetting& s, const Plan&) {
        return counted(static_cast<std::uint64_t>(s.layers), "layer");
      },
      [](const StackSetting& s, const Plan&) { return "skip " + short_number(s.skip); },
      [](const StackSetting& s, const Plan&) {
        return s.memory > 0 ? "memory " + short_number(s.memory) : std::string();
      },
      [](const StackSetting& s, const Plan&) {
        const auto* rms = std::get_if<RmsNorm>(&s.norm);
        const auto* layer = std::get_if<LayerNorm>(&s.norm);
        if (rms != nullptr) return rms->place + " rms norm";
        return layer != nullptr ? layer->place + " layer norm" : std::string();
      },
      [](const StackSetting& s, const Plan&) { return std::string(s.causal ? "causal mask" : ""); },
      [](const StackSetting& s, const Plan&) {
        return std::string(std::holds_alternative<NoMlp>(s.mlp) ? "" : "MLP");
      }};
  std::string line;
  for (const auto text : texts) {
    const auto of = [&](std::size_t i) { return text(*scenario.conditions[i].stack, *plans[i]); };
    const std::string first = of(0);
    bool same = !first.empty();
    for (std::size_t i = 1; i < plans.size(); ++i) same &= of(i) == first;
    if (same) line += (line.empty() ? "" : ", ") + first;
  }
  return line + "\n";
}

std::string run_line(const RunResult& result) {
  const ConditionResult& first = result.conditions.front();
  std::string text;
  const bool same = std::ranges::all_of(result.conditions, [&](const ConditionResult& one) {
    return one.estimates.replicates == first.estimates.replicates &&
           one.condition->replicates == first.condition->replicates;
  });
  if (same) {
    const std::uint64_t done = first.estimates.replicates;
    text = count_text(static_cast<double>(done));
    if (done != first.condition->replicates) {
      text += " of " + count_text(static_cast<double>(first.condition->replicates));
    }
    text += text == "1" ? " replicate, " : " replicates, ";
  }
  return text + result.machine.text() + "\n";
}

/// Adds estimates, as values alone where none has a standard error.
void add_estimates(const std::string& heading, const std::vector<Estimate>& figures,
                   Columns& columns) {
  const bool any =
      std::ranges::any_of(figures, [](const Estimate& figure) { return !std::isnan(figure.mcse); });
  if (any) {
    columns.add_figures(heading, figures);
    return;
  }
  columns.add_figures(heading, cells_of(figures, [](const Estimate& figure) {
                        return short_number(figure.value, 6);
                      }));
}

/// Numbers of the metrics that a table shows of a stack: fidelity for given walks alone.
std::vector<std::size_t> shown_of(const Stack& stack) {
  std::vector<std::size_t> listed = metrics_of(stack);
  if (stack.kernel != AttentionKernel::fixed) std::erase(listed, layer_metric("sink_fidelity"));
  return listed;
}

/// Metrics of a table that are listed of every condition.
template <class Listed>
std::vector<TableMetric> shown_metrics(std::size_t conditions, const Listed& listed_of) {
  std::vector<TableMetric> shown;
  for (const TableMetric& metric : table_metrics) {
    bool all = true;
    for (std::size_t i = 0; i < conditions; ++i) {
      const std::vector<std::size_t> listed = listed_of(i);
      all &= std::ranges::count(listed, layer_metric(metric.name)) == 1;
    }
    if (all) shown.push_back(metric);
  }
  return shown;
}

std::vector<std::string> layer_numbers(std::size_t rows) {
  std::vector<std::string> numbers;
  for (std::size_t l = 0; l < rows; ++l) numbers.push_back(std::to_string(l));
  return numbers;
}

/// Replicates in which all tokens became equal.
std::string collapse_text(const RunResult& result) {
  std::uint64_t collapsed = 0, all = 0;
  for (const ConditionResult& one : result.conditions) {
    all += one.estimates.replicates;
    collapsed += one.layers->rows.empty() ? 0 : one.layers->rows.back().collapsed.value_or(0);
  }
  if (collapsed == 0) return "";
  return "in " + std::to_string(collapsed) + " of " + std::to_string(all) +
         " replicates all tokens are exactly equal after the last layer: their log residual is "
         "undefined\n";
}

/// From which layer on plain float64 could not tell the tokens apart, in one condition.
std::string rounding_text(const ConditionResult& one) {
  const auto& rows = one.layers->rows;
  const auto value = [&](std::size_t l, const char* metric) {
    return rows[l].metrics[layer_metric(metric)].value;
  };
  std::size_t from = rows.size();
  while (from > 0) {
    const double size = value(from - 1, "residual_squared") +
                        static_cast<double>(one.plan.n) * value(from - 1, "mean_squared");
    if (!(value(from - 1, "log_residual") < float64_floor(size))) break;
    --from;
  }
  if (from == rows.size()) return "";
  return "from layer " + std::to_string(from) +
         " on differences between tokens are below the rounding of plain float64, which would show "
         "a log residual of about " +
         short_number(std::round(
             float64_floor(value(from, "mean_squared") * static_cast<double>(one.plan.n)))) +
         " or none\n";
}

std::string errors_text(const RunResult& result, bool compact) {
  const bool few = std::ranges::any_of(result.conditions, [](const ConditionResult& one) {
    return one.estimates.replicates < min_replicates_for_mcse;
  });
  if (few) return "no standard errors below 8 replicates; – is undefined\n";
  return mcse_line(compact) + "– is undefined; headlab help figures explains the columns\n";
}

Columns of_one(const ConditionResult& one) {
  Columns columns;
  const auto& rows = one.layers->rows;
  columns.add_key("layer", layer_numbers(rows.size()), true);
  for (const auto& [name, heading] :
       shown_metrics(1, [&](std::size_t) { return shown_of(*one.plan.stack); })) {
    const std::size_t metric = layer_metric(name);
    add_estimates(heading, cells_of(rows, [&](const auto& row) { return row.metrics[metric]; }),
                  columns);
  }
  return columns;
}

Columns of_sweep(const Scenario& scenario, const std::vector<ConditionResult>& conditions) {
  Columns columns;
  add_swept(scenario.swept, conditions, columns);
  const auto metrics = shown_metrics(
      conditions.size(), [&](std::size_t i) { return shown_of(*conditions[i].plan.stack); });
  const auto last = [](const LayerEstimates& layers, const char* name) {
    return layers.rows.empty() ? Estimate{} : layers.rows.back().metrics[layer_metric(name)];
  };
  for (const auto& [name, heading] : metrics) {
    const auto cell = [&, name = name](const ConditionResult& one) {
      return last(*one.layers, name);
    };
    add_estimates(heading, cells_of(conditions, cell), columns);
  }
  for (const auto& [name, heading] : metrics) {
    if (!conditions.front().difference) break;
    const auto cell = [&, name = name](const ConditionResult& one) {
      return last(one.difference->layers, name);
    };
    add_estimates(std::string(heading) + " difference", cells_of(conditions, cell), columns);
  }
  return columns;
}

/// One condition has a row a layer, several have a row each.
bool is_single(const Scenario& scenario, const std::vector<ComputedCondition>& theory) {
  return scenario.swept.empty() && theory.size() == 1;
}

/// A table with the keys of its rows alone.
Columns keys_of(const Scenario& scenario, const std::vector<ComputedCondition>& theory) {
  Columns columns;
  if (is_single(scenario, theory)) {
    columns.add_key("layer", layer_numbers(theory.front().result.layers.rows.size()), true);
  } else {
    add_swept(scenario.swept, theory, columns);
  }
  return columns;
}

std::vector<const Plan*> plans_of(const std::vector<ComputedCondition>& theory) {
  std::vector<const Plan*> plans;
  for (const ComputedCondition& one : theory) plans.push_back(&*one.result.plan);
  return plans;
}

/// Names and headings of what there are closed forms of: those of tables, else the others.
std::vector<std::pair<std::string, std::string>> computed_metrics(
    const std::vector<ComputedCondition>& theory) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [name, heading] :
       shown_metrics(theory.size(), [&](std::size_t i) { return theory[i].result.listed; })) {
    all.emplace_back(name, heading);
  }
  if (!all.empty()) return all;
  for (const std::size_t i : theory.front().result.listed) {
    const std::string& name = layer_metric_descriptions()[i].name;
    all.emplace_back(name, name);
  }
  return all;
}

const ComparedFigure* figure_of(const ComputedCondition& one, std::size_t layer,
                                const std::string& metric) {
  const std::string name = "layers[" + std::to_string(layer) + "]." + metric;
  const auto& figures = one.simulated.figures;
  const auto at = std::ranges::find(figures, name, &ComparedFigure::name);
  return at == figures.end() ? nullptr : &*at;
}

/// A column each of simulation, theory and z for a metric of some layers of some conditions.
void add_comparison(const std::vector<const ComparedFigure*>& figures, const std::string& heading,
                    Columns& columns) {
  std::vector<Estimate> simulated;
  std::vector<std::string> computed, z;
  for (const ComparedFigure* figure : figures) {
    simulated.push_back(figure ? figure->simulated : Estimate{});
    computed.push_back(computed_text(figure ? figure->computed : Remainder{}));
    z.push_back(z_text(figure ? figure->z : std::nan("")));
  }
  add_estimates(heading, simulated, columns);
  columns.add_figures("theory", computed);
  if (std::ranges::any_of(
          figures, [](const ComparedFigure* figure) { return figure && !std::isnan(figure->z); })) {
    columns.add("z", z, true);
  }
}

/// Most metrics in a comparison: a table of 80 columns has room for them.
constexpr std::size_t max_compared = 3;

}  // namespace

std::string layer_heading(const std::string& metric) {
  const auto at = std::ranges::find(table_metrics, metric, &TableMetric::name);
  return at == std::end(table_metrics) ? "" : at->heading;
}

std::string layer_table(const Scenario& scenario, const RunResult& result) {
  std::string text = title(scenario);
  if (result.conditions.empty()) return text + "\n  nothing was simulated\n";
  std::vector<const Plan*> plans;
  for (const ConditionResult& one : result.conditions) plans.push_back(&one.plan);
  text += sentences(sizes_line(scenario, plans) + run_line(result)) + "\n";
  const bool one = scenario.swept.empty() && result.conditions.size() == 1;
  const Columns columns =
      one ? of_one(result.conditions.front()) : of_sweep(scenario, result.conditions);
  text += columns.sweep_text(table_margin) + "\n";
  if (one) text += sentences(rounding_text(result.conditions.front()));
  if (!one) text += sentences("figures are of the last layer; --json and --out have all layers\n");
  return text + sentences(collapse_text(result) + difference_text(result) + speed_text(result) +
                          errors_text(result, columns.compact(table_margin)));
}

std::string layer_theory_table(const Scenario& scenario,
                               const std::vector<ComputedCondition>& theory) {
  const bool one = is_single(scenario, theory);
  Columns columns = keys_of(scenario, theory);
  for (const auto& [name, heading] : computed_metrics(theory)) {
    std::vector<std::string> cells;
    for (const ComputedCondition& of : theory) {
      const auto& rows = of.result.layers.rows;
      for (std::size_t l = one ? 0 : rows.size() - 1; l < rows.size(); ++l) {
        cells.push_back(computed_text(rows[l].metrics[layer_metric(name)]));
      }
    }
    columns.add_figures(heading, cells);
  }
  return title(scenario) + sentences(sizes_line(scenario, plans_of(theory))) + "\n" +
         columns.sweep_text(table_margin) + "\n" +
         (one ? "" : "figures are of the last layer; --json has all layers\n") +
         sentences(forms_line(theory));
}

std::string layer_comparison_table(const Scenario& scenario,
                                   const std::vector<ComputedCondition>& theory) {
  const bool one = is_single(scenario, theory);
  Columns columns = keys_of(scenario, theory);
  auto metrics = computed_metrics(theory);
  metrics.resize(std::min(metrics.size(), max_compared));
  for (const auto& [name, heading] : metrics) {
    std::vector<const ComparedFigure*> figures;
    for (const ComputedCondition& of : theory) {
      const std::size_t rows = of.result.layers.rows.size();
      for (std::size_t l = one ? 0 : rows - 1; l < rows; ++l) {
        figures.push_back(figure_of(of, l, name));
      }
    }
    add_comparison(figures, heading, columns);
  }
  std::size_t count = 0;
  const ComparedFigure* largest = nullptr;
  for (const ComputedCondition& of : theory) {
    for (const ComparedFigure& figure : of.simulated.figures) {
      count += std::isnan(figure.z) ? 0 : 1;
    }
    for (const ComparedFigure& figure : of.simulated.largest) {
      if (!largest || std::abs(figure.z) > std::abs(largest->z)) largest = &figure;
    }
  }
  std::string notes =
      "z = (simulation - theory)/sqrt(MCSE² + remainder²); none where the MCSE is "
      "0, and none of bounds\n";
  if (largest) {
    notes += "largest |z| of " + counted(count, "figure") + ": " + z_text(std::abs(largest->z)) +
             " (" + largest->name + ")\n";
  }
  return columns.sweep_text(table_margin) + "\n" + sentences(forms_line(theory)) + sentences(notes);
}

}  // namespace headlab::tools
