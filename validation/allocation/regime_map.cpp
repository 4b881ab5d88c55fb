// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/regime_map.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "engine/files/netcdf_file.h"
#include "engine/results/results_scenario.h"

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
          if (one.subspaces.index() == condition.subspaces.index()) continue;
          throw InvalidInput("--budget " + std::to_string(budget) + ": heads of law " +
                             name_of(condition.subspaces) +
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

/// Figures of cells, NaN where there is none.
class CellTable {
 public:
  CellTable(const RegimeMap& map) : map_(map) {}

  /// One figure a cell.
  template <class Read>
  std::vector<double> numbers(const Read& read) const {
    std::vector<double> all;
    for (const RegimeCell& cell : map_.cells) all.push_back(read(cell.study.growth));
    return all;
  }
  template <class Read>
  std::vector<std::string> texts(const Read& read) const {
    std::vector<std::string> all;
    for (const RegimeCell& cell : map_.cells) all.push_back(read(cell));
    return all;
  }
  /// One figure a cell and n: `inside` reads it from point i of the growth, `at_end` from n left
  /// out number i.
  template <class Inside, class AtEnd>
  std::vector<double> by_n(const Inside& inside, const AtEnd& at_end) const {
    std::vector<double> all;
    for (const RegimeCell& cell : map_.cells) {
      const Growth& growth = cell.study.growth;
      for (const std::uint64_t size : map_.sizes) {
        const double n = static_cast<double>(size);
        const auto in = std::ranges::find(growth.n, n);
        const auto out = std::ranges::find(growth.left_out, n);
        double figure = std::numeric_limits<double>::quiet_NaN();
        if (in != growth.n.end()) {
          figure = inside(growth, static_cast<std::size_t>(in - growth.n.begin()));
        } else if (out != growth.left_out.end()) {
          figure = at_end(growth, static_cast<std::size_t>(out - growth.left_out.begin()));
        }
        all.push_back(figure);
      }
    }
    return all;
  }

 private:
  const RegimeMap& map_;
};

/// The fit of a law, or NaN where there is none.
template <class Read>
double of_law(const Growth& growth, const std::string& law, const Read& read) {
  const auto fit = std::ranges::find(growth.fits, law, &GrowthFit::name);
  return fit == growth.fits.end() ? std::numeric_limits<double>::quiet_NaN() : read(*fit);
}

void write_cells(const NetcdfGroup& root, const RegimeMap& map) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const CellTable table(map);
  const auto none = [](const Growth&, std::size_t) { return nan; };
  const std::vector<std::string> cell = {"cell"}, cell_n = {"cell", "n"};
  std::vector<std::int64_t> budgets, replicates;
  for (const RegimeCell& one : map.cells) {
    budgets.push_back(one.study.budget);
    replicates.push_back(static_cast<std::int64_t>(one.study.replicates));
  }
  root.write("budget", cell, {"budget D = H d_k"}, budgets);
  root.write("replicates", cell, {"training sets of each dimension at each n"}, replicates);
  root.write("rule", cell, {"bandwidth rule", ""},
             table.texts([](const RegimeCell& c) { return std::string(rule_name(c.study.rule)); }));
  root.write("trend", cell, {"of the best dimension from the first n to the last", ""},
             table.texts([](const RegimeCell& c) { return c.study.growth.trend; }));
  root.write("verdict", cell, {"what the cell says of the law", ""},
             table.texts([](const RegimeCell& c) { return cell_verdict(c.study.growth); }));

  root.write("best_dim", cell_n, {"best dimension of a head k*"},
             table.by_n([](const Growth& g, std::size_t i) { return g.best[i].value; },
                        [](const Growth& g, std::size_t i) { return g.ends[i]; }));
  root.write("best_dim_mcse", cell_n, {"Monte Carlo standard error of best_dim"},
             table.by_n([](const Growth& g, std::size_t i) { return g.errors[i]; }, none));
  root.write(
      "interpolation", cell_n, {"interpolation error of best_dim"},
      table.by_n([](const Growth& g, std::size_t i) { return g.best[i].interpolation; }, none));
  root.write("at_the_end", cell_n, {"1 where best_dim is an end of the range compared"},
             table.by_n([](const Growth&, std::size_t) { return 0.0; },
                        [](const Growth&, std::size_t) { return 1.0; }));

  const auto law = [&](const std::string& name, const std::string& of, const std::string& text,
                       const auto& read) {
    root.write(name, cell, {text},
               table.numbers([&](const Growth& growth) { return of_law(growth, of, read); }));
  };
  law("exponent", "power", "p of k* = c n^p", [](const GrowthFit& fit) { return fit.slope; });
  law("exponent_low", "power", "95 % interval of exponent, low end",
      [](const GrowthFit& fit) { return fit.interval.low; });
  law("exponent_high", "power", "95 % interval of exponent, high end",
      [](const GrowthFit& fit) { return fit.interval.high; });
  law("log_slope", "log", "dimensions a decade of n",
      [](const GrowthFit& fit) { return fit.slope; });
  law("log_slope_low", "log", "95 % interval of log_slope, low end",
      [](const GrowthFit& fit) { return fit.interval.low; });
  law("log_slope_high", "log", "95 % interval of log_slope, high end",
      [](const GrowthFit& fit) { return fit.interval.high; });
  for (const char* name : {"constant", "log", "power"}) {
    law(std::string("p_") + name, name, std::string("p-value of the law ") + name,
        [](const GrowthFit& fit) { return fit.p_value; });
  }
  root.write("smallest_exponent", cell, {"least exponent that could be told from a log"},
             table.numbers([](const Growth& growth) { return growth.smallest_exponent; }));
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
                .cells = {},
                .heads = {}};
  const std::size_t all = scenario.conditions.size() * rules.size() * budgets.size();
  const Stopwatch watch;
  bool complete = true;
  for (const Condition& condition : scenario.conditions) map.settings.push_back(condition.swept);
  for (std::size_t c = 0; c < scenario.conditions.size() && complete; ++c) {
    for (std::size_t r = 0; r < rules.size() && complete; ++r) {
      const std::size_t first = map.cells.size();
      for (const int budget : budgets) {
        options.rule = rules[r];
        const Session part = session.part("cell " + std::to_string(map.cells.size() + 1) + " of " +
                                          std::to_string(all));
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

void write_regime_map(const std::string& path, const Scenario& scenario, const RegimeMap& map,
                      const Provenance& program, const std::string& command) {
  try {
    NetcdfImage image;
    const NetcdfGroup root = image.root();
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
    write_swept(root, "cell", scenario.swept, conditions);
    write_cells(root, map);
    image.save(path);
  } catch (const NetcdfError& error) {
    throw RunFailed(path + ": cannot be written (" + error.what() + ")");
  }
}

}  // namespace headlab
