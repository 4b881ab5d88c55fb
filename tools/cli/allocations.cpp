// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/allocations.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <variant>

#include "engine/files/document.h"
#include "engine/run/units.h"
#include "engine/scenario/condition.h"
#include "kernels/counted.h"
#include "kernels/kernel_laws.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

std::string sizes_text(const AllocationStudy& study) {
  return "D " + std::to_string(study.budget) + ", n " + std::to_string(study.n);
}

bool is_study_reached(const AllocationStudy& study) {
  return std::ranges::any_of(study.rows,
                             [](const AllocationRow& row) { return row.replicates > 0; });
}

/// The candidates of a study with the advice.
std::string allocation_table(const AllocationStudy& study) {
  const bool softmax = std::holds_alternative<SoftmaxKernel>(study.rows.front().kernel);
  using Row = const AllocationRow&;
  std::vector<std::string> best =
      cells_of(study.rows, [](Row row) { return std::string(row.in_best_set ? "yes" : "no"); });
  if (study.advised) best[*study.advised] += ", advised";
  Columns columns;
  columns.add_key("H", cells_of(study.rows, [](Row row) { return std::to_string(row.heads); }),
                  true);
  columns.add_key("d_k", cells_of(study.rows, [](Row row) { return std::to_string(row.k); }), true);
  columns.add("heads", cells_of(study.rows, [](Row row) { return row.subspaces; }));
  columns.add(softmax ? "temperature" : "bandwidth",
              cells_of(study.rows, [](Row row) { return short_number(kernel_width(row.kernel)); }),
              true);
  columns.add_figures("MSE", cells_of(study.rows, [](Row row) { return row.mse; }));
  columns.add("replicates", cells_of(study.rows, [](Row row) { return grouped(row.replicates); }),
              true);
  columns.add("may be best", best);
  const std::string kernel =
      std::visit([](const auto& law) { return std::string(law.name); }, study.rows.front().kernel);
  std::string text =
      sizes_text(study) + ", " + kernel + " kernel, rule " + rule_name(study.rule) + ", " +
      counted(static_cast<std::uint64_t>(study.queries), "query", "queries") + ", " +
      study.machine.text() + "\n\n" + columns.text("  ") + "\n" +
      wrapped(advice_text(study) + "\n" + advice_limits(study) + "\n", output_width());
  if (study.tuning.settings > 0) {
    text += "bandwidths: " + grouped(study.tuning.settings) + " tried in a pilot of " +
            counted(study.tuning.replicates, "replicate") + " each";
    if (study.tuning.at_boundary > 0) {
      text += "; " +
              counted(static_cast<std::uint64_t>(study.tuning.at_boundary), "allocation is",
                      "allocations are") +
              " best at the end of the range searched";
    }
    text += "\n";
  }
  return text;
}

/// Throws InvalidInput for what any of the settings is rejected for, before the first: a shard has
/// few of them, or none.
void require_allocations(const Condition& base, std::span<const std::uint64_t> budgets,
                         std::span<const std::uint64_t> sizes, bool growth,
                         const AllocateOptions& options) {
  require_replicates(options);
  if (growth) require_growth(sizes, options);
  for (const std::uint64_t budget : budgets) {
    allocation_conditions(base, static_cast<int>(budget), options.rule, options.dims);
  }
}

/// Simulates what a shard has of the growth under one budget.
Outcome growth_of_shard(const Condition& base, int budget, std::span<const std::uint64_t> sizes,
                        const Session& session, const AllocateOptions& options,
                        const std::function<bool()>& is_here) {
  const Stopwatch watch;
  bool complete = true;
  try {
    for (const std::uint64_t n : sizes) {
      if (is_here()) simulate_growth_point(base, budget, n, session, options);
    }
  } catch (const TimeIsUp&) {
    complete = false;
  }
  return session.outcome(complete, watch);
}

}  // namespace

void add_allocations(Allocations& all, Condition base, std::span<const std::uint64_t> budgets,
                     std::span<const std::uint64_t> sizes, bool growth,
                     const std::function<std::string(const AllocationStudy&)>& replay,
                     const Session& session, const AllocateOptions& options) {
  base.n = sizes.front();
  require_allocations(base, budgets, sizes, growth, options);
  const auto add = [&](const Outcome& part) {
    all.outcome.complete = all.outcome.complete && part.complete;
    all.outcome.interrupted = all.outcome.interrupted || part.interrupted;
    all.outcome.seconds += part.seconds;
  };
  const bool is_shard = session.units && session.units->is_shard();
  std::uint64_t part = 0;
  const auto is_here = [&] { return !session.units || session.units->has_part(part++); };
  for (const std::uint64_t budget : budgets) {
    const std::string setting = "D " + std::to_string(budget);
    for (const std::uint64_t n : sizes) {
      base.n = n;
      if (!is_here()) continue;
      AllocationStudy one = allocate(base, static_cast<int>(budget),
                                     session.part(setting + ", n " + std::to_string(n)), options);
      add(one.outcome);
      std::string again = replay(one);
      all.studies.push_back({std::move(one), std::move(again)});
    }
    if (!growth) continue;
    if (is_shard) {
      add(growth_of_shard(base, static_cast<int>(budget), sizes, session.part(setting), options,
                          is_here));
      continue;
    }
    all.growths.push_back(
        study_growth(base, static_cast<int>(budget), sizes, session.part(setting), options));
    add(all.growths.back().outcome);
  }
}

std::vector<HeadGrowthAt> Allocations::head_growths(std::span<const std::uint64_t> sizes,
                                                    std::uint64_t seed) const {
  std::vector<HeadGrowthAt> all;
  std::vector<const GrowthStudy*> complete;
  for (const GrowthStudy& growth : growths) {
    if (growth.outcome.complete) complete.push_back(&growth);
  }
  if (complete.size() < min_budgets) return all;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    all.emplace_back(sizes[i], head_growth(complete, i, seed));
  }
  return all;
}

bool Allocations::is_reached() const {
  return std::ranges::any_of(studies,
                             [](const auto& one) { return is_study_reached(one.study); }) ||
         std::ranges::any_of(growths,
                             [](const GrowthStudy& growth) { return growth.outcome.complete; });
}

std::string allocations_table(const std::string& name, const Allocations& all,
                              const std::vector<HeadGrowthAt>& heads, const std::string& again) {
  const auto replay = [](const std::string& command) {
    return command.empty() ? "\n" : "again: " + command + "\n\n";
  };
  std::string text = one_line(name) + "\n";
  for (const ReplayedAllocation& one : all.studies) {
    if (is_study_reached(one.study)) text += allocation_table(one.study) + replay(one.replay);
  }
  for (const GrowthStudy& growth : all.growths) text += growth_table(growth);
  text += head_growth_table(heads);
  if (!all.growths.empty()) text += replay(again);
  return text + duration_text(all.outcome.seconds) + "\n± is one Monte Carlo standard error\n";
}

namespace {

std::string interval_text(const GrowthFit& fit) {
  return " [" + short_number(fit.interval.low) + ", " + short_number(fit.interval.high) + "]";
}

/// "log       2.41 + 1.3 a decade [1.2, 1.4], rejected (p 0.001)"
std::string fit_text(const GrowthFit& fit, const std::string& formula, bool has_interval) {
  return "  " + left(fit.name, 10) + formula + (has_interval ? interval_text(fit) : "") +
         (fit.rejected ? ", rejected" : ", not rejected") + " (p " + short_number(fit.p_value) +
         ")\n";
}

std::string fit_text(const GrowthFit& fit) {
  std::string formula = short_number(fit.level);
  if (fit.name == "log") formula += " + " + short_number(fit.slope) + " a decade";
  if (fit.name == "power") formula += " (n/n0)^" + short_number(fit.slope);
  return fit_text(fit, formula, fit.name != "constant");
}

/// "0.16 [0.12, 0.2]"; "–" where the law was not fitted.
std::string slope_text(const Growth& growth, const std::string& law) {
  const auto fit = std::ranges::find(growth.fits, law, &GrowthFit::name);
  return fit == growth.fits.end() ? "–" : short_number(fit->slope) + interval_text(*fit);
}

/// The best dimension or number of heads at each place, then the places that were left out.
template <class Point, class LeftOut, class Place>
std::string points_table(const std::string& heading, const std::string& best,
                         const std::vector<Point>& points, const LeftOut& left_out,
                         const Place& place_of) {
  std::vector<std::string> places, figures, interpolation;
  for (const Point& point : points) {
    places.push_back(number_text(place_of(point)));
    figures.push_back(figure_text(point.best));
    interpolation.push_back(short_number(point.interpolation));
  }
  for (const auto place : left_out) {
    places.push_back(number_text(static_cast<double>(place)));
    figures.push_back("–");
    interpolation.push_back("an end of the range is best");
  }
  Columns columns;
  columns.add(heading, places, true);
  columns.add_figures(best, figures);
  columns.add("interpolation error", interpolation);
  return columns.text("  ");
}

/// The best dimension at `n`, with a bar where it is an end of the range.
std::string best_text(const Growth& growth, double n) {
  const auto in = std::ranges::find(growth.n, n);
  if (in != growth.n.end()) {
    return short_number(growth.best[static_cast<std::size_t>(in - growth.n.begin())].value);
  }
  const auto out = std::ranges::find(growth.left_out, n);
  if (out == growth.left_out.end()) return "–";
  return "|" + short_number(growth.ends[static_cast<std::size_t>(out - growth.left_out.begin())]);
}

bool stands(const Growth& growth, const std::string& law) {
  const auto fit = std::ranges::find(growth.fits, law, &GrowthFit::name);
  return fit != growth.fits.end() && !fit->rejected;
}

/// What is counted of the cells of one margin of a map.
struct Margin {
  std::string name;
  int cells = 0, rises = 0, falls = 0, full = 0, one = 0, none = 0;
  int fitted = 0, constant = 0, log = 0, power = 0;

  void count(const Growth& growth) {
    ++cells;
    const std::string verdict = cell_verdict(growth);
    if (verdict == "full dimension") {
      ++full;
    } else if (verdict == "one dimension a head") {
      ++one;
    } else if (growth.trend == "rises") {
      ++rises;
    } else if (growth.trend == "falls") {
      ++falls;
    } else {
      ++none;
    }
    if (growth.fits.empty()) return;
    ++fitted;
    constant += stands(growth, "constant");
    log += stands(growth, "log");
    power += stands(growth, "power");
  }
};

/// All cells together, then by rule, by budget and by every swept value.
std::vector<Margin> margins(const RegimeMap& map) {
  std::vector<Margin> all = {{.name = "all"}};
  const auto at = [&](const std::string& name) -> Margin& {
    const auto found = std::ranges::find(all, name, &Margin::name);
    if (found != all.end()) return *found;
    all.push_back({.name = name});
    return all.back();
  };
  const auto pass = [&](const std::function<std::string(const RegimeCell&)>& name_of) {
    for (const RegimeCell& cell : map.cells) at(name_of(cell)).count(cell.study.growth);
  };
  pass([](const RegimeCell&) { return std::string("all"); });
  pass([](const RegimeCell& cell) { return std::string("rule ") + rule_name(cell.study.rule); });
  pass([](const RegimeCell& cell) { return "D " + std::to_string(cell.study.budget); });
  for (std::size_t key = 0; key < map.keys.size(); ++key) {
    pass([&](const RegimeCell& cell) {
      return map.keys[key] + " " + setting_value_text(map.settings.at(cell.condition)[key]);
    });
  }
  return all;
}

std::string margins_table(const RegimeMap& map) {
  Columns columns;
  const std::vector<Margin> all = margins(map);
  columns.add("", cells_of(all, [](const Margin& margin) { return margin.name; }));
  const auto add = [&](const std::string& heading, int Margin::*number) {
    columns.add(heading, cells_of(all, [&](const Margin& m) { return std::to_string(m.*number); }),
                true);
  };
  add("cells", &Margin::cells);
  add("rises", &Margin::rises);
  add("falls", &Margin::falls);
  add("none seen", &Margin::none);
  add("full", &Margin::full);
  add("d_k 1", &Margin::one);
  add("fitted", &Margin::fitted);
  add("constant stands", &Margin::constant);
  add("log stands", &Margin::log);
  add("power stands", &Margin::power);
  return columns.text("  ");
}

std::string heads_summary(const RegimeMap& map) {
  if (map.heads.empty()) return "";
  std::map<std::string, int> verdicts;
  for (const RegimeHeads& heads : map.heads) ++verdicts[heads.growth.verdict];
  std::string text =
      "the best H over D, of " + std::to_string(map.heads.size()) + " settings, rules and n: ";
  bool first = true;
  for (const auto& [verdict, count] : verdicts) {
    text += (first ? "" : ", ") + verdict + " " + std::to_string(count);
    first = false;
  }
  return text + "\n";
}

}  // namespace

std::string growth_table(const GrowthStudy& study) {
  std::string text = "growth of the best d_k with n, D " + std::to_string(study.budget) +
                     ", rule " + rule_name(study.rule) + "\n";
  if (!study.outcome.complete) {
    return text + (study.outcome.interrupted ? "  interrupted" : "  time was up") +
           ": nothing is known\n\n";
  }
  const Growth& growth = study.growth;
  text += points_table("n", "best d_k", growth.points(), growth.left_out,
                       [](const BestDimensionAt& point) { return point.n; });
  std::string compared;
  for (const int k : study.dims) compared += (compared.empty() ? "" : ", ") + std::to_string(k);
  text += "  between d_k " + compared + ", the divisors of D; " +
          counted(study.replicates, "replicate") + " each\n";
  for (const GrowthFit& fit : growth.fits) text += fit_text(fit);
  text += "  verdict: " + growth.verdict + "\n";
  if (!growth.fits.empty()) {
    text += std::isnan(growth.smallest_exponent)
                ? "  no power of n up to n^2 could be told from a log here\n"
                : "  the smallest power of n that could be told from a log here: n^" +
                      short_number(growth.smallest_exponent) + "\n";
  }
  return text + "\n";
}

std::string head_growth_table(const std::vector<HeadGrowthAt>& growths) {
  std::string text;
  for (const auto& [n, growth] : growths) {
    text += "growth of the best H with D, n " + std::to_string(n) + "\n";
    text +=
        points_table("D", "best H", growth.points(), growth.left_out,
                     [](const BestHeadsAt& point) { return static_cast<double>(point.budget); });
    for (const GrowthFit& fit : growth.fits) {
      text += fit_text(fit, "D^" + short_number(fit.slope), fit.name != "linear");
    }
    text += "  verdict: " + growth.verdict + "\n\n";
  }
  return text;
}

std::string regime_table(const RegimeMap& map) {
  Columns columns;
  const auto add = [&](const std::string& heading, bool number,
                       const std::function<std::string(const RegimeCell&)>& text_of) {
    columns.add(heading, cells_of(map.cells, text_of), number);
  };
  for (std::size_t key = 0; key < map.keys.size(); ++key) {
    const std::string& name = map.keys[key];
    add(name.substr(name.find('.') + 1), false, [&](const RegimeCell& cell) {
      return setting_value_text(map.settings.at(cell.condition)[key]);
    });
  }
  add("rule", false,
      [](const RegimeCell& cell) { return std::string(rule_name(cell.study.rule)); });
  add("D", true, [](const RegimeCell& cell) { return std::to_string(cell.study.budget); });
  for (const std::uint64_t n : map.sizes) {
    add("k* " + number_text(static_cast<double>(n)), true, [&](const RegimeCell& cell) {
      return best_text(cell.study.growth, static_cast<double>(n));
    });
  }
  add("verdict", false, [](const RegimeCell& cell) { return cell_verdict(cell.study.growth); });
  add("exponent", false,
      [](const RegimeCell& cell) { return slope_text(cell.study.growth, "power"); });
  add("a decade", false,
      [](const RegimeCell& cell) { return slope_text(cell.study.growth, "log"); });
  return columns.text("  ") +
         "  | before k*: an end of the range; exponent of k* = c n^p and dimensions a decade of "
         "n, with 95 % intervals; " +
         counted(map.cells.front().study.replicates, "replicate") +
         " of each dimension at each n\n\n" + margins_table(map) + "\n" + heads_summary(map);
}

std::string setting_value_text(std::string toml) {
  const std::string law = "law = ";
  if (const std::size_t at = toml.find(law); at != std::string::npos) toml.erase(at, law.size());
  std::string text;
  int depth = 0;  // of arrays, which are too long for a cell
  for (std::size_t i = 0; i < toml.size(); ++i) {
    const char c = toml[i];
    if (c == ']' && --depth == 0) text += "…]";
    if (c == '[' && depth++ == 0) text += c;
    if (depth > 0 || c == ']') continue;
    if (c == '"' || c == '{' || c == '}' || c == ',') continue;
    if (c == ' ' && (toml.compare(i, 2, " =") == 0 || (i > 0 && toml[i - 1] == '='))) continue;
    text += c;
  }
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace headlab::tools
