// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/regime_map.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "engine/results/netcdf_fields.h"
#include "engine/results/results_scenario.h"
#include "engine/run/units.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"

namespace headlab {
namespace {

std::string name_of(const SubspaceLaw& law) {
  return std::visit([](const auto& one) { return std::string(one.name); }, law);
}

/// Every cell is put together once before any is simulated: what is refused is refused at once.
void require_cells(const Scenario& scenario, std::span<const BandwidthRule> rules,
                   std::span<const int> budgets) {
  for (const Condition& condition : scenario.conditions) {
    for (const BandwidthRule rule : rules) {
      for (const int budget : budgets) {
        for (const Condition& one : allocation_conditions(condition, budget, rule)) {
          if (one.subspaces->index() == condition.subspaces->index()) continue;
          throw InvalidInput("--budget " + std::to_string(budget) + ": heads of law " +
                             name_of(*condition.subspaces) +
                             " need H d_k <= d - leave it out, or map the law haar alone");
        }
      }
    }
  }
}

/// H* over the budgets of one setting and rule, at each n that all of them have.
std::vector<RegimeHeads> heads_over_budgets(std::span<const RegimeCell> cells,
                                            std::span<const std::uint64_t> sizes,
                                            std::uint64_t seed) {
  std::vector<RegimeHeads> all;
  if (cells.size() < min_budgets) return all;
  std::vector<const GrowthStudy*> studies;
  for (const RegimeCell& cell : cells) studies.push_back(&cell.study);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    all.push_back({.condition = cells.front().condition,
                   .rule = cells.front().study.rule,
                   .n = sizes[i],
                   .growth = head_growth(studies, i, seed)});
  }
  return all;
}

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// The best dimension of a cell at one n; undefined where the cell has none.
struct CellPoint {
  Estimate best_dim;
  double interpolation = undefined;
  double at_boundary = undefined;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("best_dim", best_dim, "best dimension of a head k*");
    visit("interpolation", interpolation, "interpolation error of best_dim");
    visit("at_the_end", at_boundary, "1 where best_dim is an end of the range compared");
  }
};

/// One cell as the file has it.
struct CellRecord {
  const GrowthStudy& study;
  const std::vector<std::uint64_t>& sizes;

  template <class Visitor>
  void fields(Visitor& visit) const {
    const Growth& growth = study.growth;
    visit("budget", study.budget, "budget D = H d_k");
    visit("replicates", study.replicates, "training sets of each dimension at each n");
    visit("rule", rule_name(study.rule), "bandwidth rule");
    visit("trend", growth.trend, "of the best dimension from the first n to the last");
    visit("verdict", cell_verdict(growth), "what the cell says of the law");
    visit("points", points(), "best dimensions", {.item = "n"});
    const GrowthFit power = fit_of("power"), log = fit_of("log");
    visit("exponent", power.slope, "p of k* = c n^p");
    visit("exponent_low", power.interval.low, "95 % interval of exponent, low end");
    visit("exponent_high", power.interval.high, "95 % interval of exponent, high end");
    visit("log_slope", log.slope, "dimensions a decade of n");
    visit("log_slope_low", log.interval.low, "95 % interval of log_slope, low end");
    visit("log_slope_high", log.interval.high, "95 % interval of log_slope, high end");
    visit("p_constant", fit_of("constant").p_value, "p-value of the law constant");
    visit("p_log", log.p_value, "p-value of the law log");
    visit("p_power", power.p_value, "p-value of the law power");
    visit("smallest_exponent", growth.smallest_exponent,
          "least exponent that could be told from a log");
  }

 private:
  /// The fit of a law, undefined where there is none.
  GrowthFit fit_of(const std::string& law) const {
    const auto fit = std::ranges::find(study.growth.fits, law, &GrowthFit::name);
    if (fit != study.growth.fits.end()) return *fit;
    return {.slope = undefined, .interval = {undefined, undefined}, .p_value = undefined};
  }
  std::vector<CellPoint> points() const {
    const Growth& growth = study.growth;
    std::vector<CellPoint> all;
    for (const std::uint64_t size : sizes) {
      CellPoint& point = all.emplace_back();
      const double n = static_cast<double>(size);
      const auto in = std::ranges::find(growth.n, n);
      const auto out = std::ranges::find(growth.left_out, n);
      if (in != growth.n.end()) {
        const auto i = static_cast<std::size_t>(in - growth.n.begin());
        point = {{growth.best[i].value, growth.errors[i]}, growth.best[i].interpolation, 0};
      } else if (out != growth.left_out.end()) {
        point.best_dim.value = growth.ends[static_cast<std::size_t>(out - growth.left_out.begin())];
        point.at_boundary = 1;
      }
    }
    return all;
  }
};

void write_cells(const NetcdfGroup& root, const RegimeMap& map) {
  FieldTable table({{"cell", map.cells.size()}, {"n", map.sizes.size()}});
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    const NetcdfFields::Place place{&table, FieldTable::Position{{"cell"}, {i}}};
    NetcdfFields visit(place, place);
    CellRecord{map.cells[i].study, map.sizes}.fields(visit);
  }
  table.write(root);
}

}  // namespace

namespace {

std::string cell_name(std::size_t cell, std::size_t cells) {
  return "cell " + std::to_string(cell + 1) + " of " + std::to_string(cells);
}

/// Simulates the points of cells that are this shard's. False where it was stopped.
bool simulate_shard(const Scenario& scenario, std::span<const BandwidthRule> rules,
                    std::span<const int> budgets, std::span<const std::uint64_t> sizes,
                    const Session& session, AllocateOptions options) {
  require_growth(sizes, options);
  const std::size_t cells = scenario.conditions.size() * rules.size() * budgets.size();
  std::size_t cell = 0;
  std::uint64_t part = 0;
  try {
    for (const Condition& condition : scenario.conditions) {
      for (const BandwidthRule rule : rules) {
        options.rule = rule;
        for (const int budget : budgets) {
          const Session here = session.part(cell_name(cell++, cells));
          for (const std::uint64_t n : sizes) {
            if (!session.units->has_part(part++)) continue;
            simulate_growth_point(condition, budget, n, here, options);
          }
        }
      }
    }
  } catch (const TimeIsUp&) {
    return false;
  }
  return true;
}

}  // namespace

RegimeMap map_regimes(const Scenario& scenario, std::span<const BandwidthRule> rules,
                      std::span<const int> budgets, std::span<const std::uint64_t> sizes,
                      const Session& session, AllocateOptions options) {
  require_cells(scenario, rules, budgets);
  RegimeMap map{.keys = scenario.swept,
                .settings = {},
                .sizes = {sizes.begin(), sizes.end()},
                .seed = scenario.conditions.at(0).seed,
                .parameters = scenario.conditions.at(0).parameters,
                .cells = {},
                .heads = {}};
  const std::size_t all = scenario.conditions.size() * rules.size() * budgets.size();
  const Stopwatch watch;
  bool complete = true;
  if (session.units && session.units->is_shard()) {
    complete = simulate_shard(scenario, rules, budgets, sizes, session, options);
    map.outcome = session.outcome(complete, watch);
    return map;
  }
  for (const Condition& condition : scenario.conditions) map.settings.push_back(condition.swept);
  for (std::size_t c = 0; c < scenario.conditions.size() && complete; ++c) {
    for (std::size_t r = 0; r < rules.size() && complete; ++r) {
      const std::size_t first = map.cells.size();
      for (const int budget : budgets) {
        options.rule = rules[r];
        const Session part = session.part(cell_name(map.cells.size(), all));
        GrowthStudy one;
        try {
          one = study_growth(scenario.conditions[c], budget, sizes, part, options);
        } catch (const std::exception& error) {
          if (map.cells.empty()) throw;
          map.failure = error.what();  // the cells before it are kept
          complete = false;
          break;
        }
        complete = one.outcome.complete;
        if (!complete) break;  // a cell is whole or not there
        map.cells.push_back({.condition = c, .study = std::move(one)});
      }
      const std::span<const RegimeCell> row = std::span(map.cells).subspan(first);
      if (row.size() == budgets.size()) {
        for (RegimeHeads& heads : heads_over_budgets(row, sizes, map.seed)) {
          map.heads.push_back(std::move(heads));
        }
      }
    }
  }
  map.outcome = session.outcome(complete, watch);
  return map;
}

std::string cell_verdict(const Growth& growth) {
  const std::vector<double>& ends = growth.ends;
  const bool same = std::ranges::all_of(ends, [&](double end) { return end == ends.front(); });
  if (growth.n.empty() && same) {
    return ends.at(0) == 1 ? "one dimension a head" : "full dimension";
  }
  if (growth.fits.empty() || growth.trend != "rises") {
    return growth.trend == "none seen" ? "no growth seen" : growth.trend;
  }
  if (growth.verdict == "not distinguishable") return "rises, log or power";
  if (growth.verdict == "constant") return "rises";
  return "rises, " + growth.verdict;
}

void put_regime_map(const NetcdfGroup& root, const Scenario& scenario, const RegimeMap& map,
                    const Provenance& program, const std::string& command) {
  root.define_dimension("cell", map.cells.size());
  root.define_dimension("n", map.sizes.size());
  write_scenario(root, scenario, program);
  root.put_attribute("command", command);
  root.put_attribute("complete", std::int64_t{map.outcome.complete ? 1 : 0});
  root.write("n", {"n"}, {"training points"},
             std::vector<std::int64_t>(map.sizes.begin(), map.sizes.end()));
  std::vector<const Condition*> conditions;
  for (const RegimeCell& cell : map.cells) {
    conditions.push_back(&scenario.conditions.at(cell.condition));
  }
  write_cells(root, map);
  write_swept(root, "cell", scenario.swept, conditions);
}

void write_regime_map(const std::string& path, const Scenario& scenario, const RegimeMap& map,
                      const Provenance& program, const std::string& command) {
  try {
    NetcdfImage image;
    put_regime_map(image.root(), scenario, map, program, command);
    image.save(path);
  } catch (const NetcdfError& error) {
    throw RunFailed(path + ": cannot be written (" + error.what() + ")");
  }
}

}  // namespace headlab
