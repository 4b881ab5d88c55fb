// SPDX-License-Identifier: Apache-2.0
#include "tools/tables/along_curves.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/words.h"
#include "engine/moments/estimates.h"
#include "engine/moments/measures.h"
#include "tools/tables/select_table.h"

namespace headlab::tools {
namespace {

/// The figure of each condition. Throws InvalidInput where conditions have other draws, or a figure
/// is not there.
std::vector<ConditionFigure> condition_figures(const CurvesRequest& request,
                                               const StoredResults& results) {
  const std::string& figure = request.figure;
  std::vector<ConditionFigure> all(results.size());
  for (const std::size_t i : request.rows) {
    const StoredCondition stored = results.nodes(i);
    if (stored.layout.mode == MomentMode::separate) {
      throw InvalidInput(request.command + ": is of errors of ensembles, and " +
                         one_line(results.path()) + " has layers");
    }
    const JackknifedEstimates averages = jackknifed_averages(
        MomentTree(stored.layout, stored.nodes), stored.head_weights, stored.truth, stored.use(),
        {}, read_measures(parse_json(stored.parameters).value_or(Value())));
    NumberList<const Jackknifed> terms, indices;
    averages.fields(terms);
    averages.index_fields(indices);
    Texts names;
    const Jackknifed* found = nullptr;
    const auto look = [&](const std::string& name, const Jackknifed* number) {
      names.push_back(name);
      if (name == figure) found = number;
    };
    for (const auto& one : terms.all) look(one.name, one.number);
    for (const auto& one : indices.all) look("index_" + std::string(one.name), one.number);
    known_word("--figure", figure, names);
    if (std::isnan(found->value) || found->leave_one_out.empty()) {
      throw InvalidInput("--figure: " + figure + " has no standard error in " +
                         numbered_condition(i) + " - take more replicates, or another figure");
    }
    all[i] = {*found, averages.node_counts};
    if (all[i].counts != all[request.rows.front()].counts) {
      throw InvalidInput(request.command + ": " + numbered_condition(i) +
                         " has other replicates than the first - run them all with --replicates");
    }
  }
  return all;
}

/// What may be the least, of one look at so many candidates.
Screening lowest_of(const std::vector<Jackknifed>& figures, const std::vector<double>& counts) {
  const SelectionGuarantee guarantee;
  return screen(figures, counts, comparison_level(guarantee.alpha, figures.size(), 1), 0);
}

void require_numbers(const TableColumn& key, const std::string& option) {
  if (!key.is_text()) return;
  throw InvalidInput(option + ": " + key.name + " has no numbers to go along");
}

void require_one_seed(const CurvesRequest& request, const TableSource& table) {
  const TableColumn seed = key_of(table, "seed", request.option);
  const auto& seeds = std::get<std::vector<double>>(seed.cells);
  if (std::ranges::any_of(request.rows,
                          [&](std::size_t i) { return seeds[i] != seeds[request.rows.front()]; })) {
    throw InvalidInput(request.command + ": conditions have several seeds, and share no draws");
  }
}

/// The values of some keys, but for one of them.
std::string values_of(const std::vector<const TableColumn*>& keys, std::size_t i,
                      const TableColumn* without = nullptr) {
  std::string text;
  for (const TableColumn* key : keys) {
    if (key == without) continue;
    text += (text.empty() ? "" : ", ") + key->name + " = " + one_line(text_at(*key, i), 40);
  }
  return text;
}

/// Whether a key changes along `over` and follows from that and the others.
bool follows(const std::vector<std::size_t>& rows, const std::vector<const TableColumn*>& keys,
             const TableColumn* key, const TableColumn& over) {
  std::map<std::string, std::map<std::string, std::string>> found;
  bool varies = false;
  for (const std::size_t i : rows) {
    auto& along = found[values_of(keys, i, key)];
    const std::string value = text_at(*key, i);
    if (along.try_emplace(text_at(over, i), value).first->second != value) return false;
    varies = varies || along.begin()->second != value;
  }
  return varies;
}

}  // namespace

std::vector<const TableColumn*> keys_apart(const TableSource& table,
                                           const std::vector<std::size_t>& rows,
                                           const TableColumn& over,
                                           const std::optional<TableColumn>& min_over) {
  std::vector<const TableColumn*> keys;
  for (const TableColumn& key : table.keys) {
    if (key.name != over.name) keys.push_back(&key);
  }
  const auto is_min_over = [&](const TableColumn* key) {
    return min_over && key->name == min_over->name;
  };
  const std::vector<const TableColumn*> all = keys;
  for (const TableColumn* key : all) {
    if (!is_min_over(key) && follows(rows, keys, key, over)) std::erase(keys, key);
  }
  std::erase_if(keys, is_min_over);
  // What varies with a key that is named needs no name itself.
  std::vector<const TableColumn*> named;
  for (const TableColumn* key : keys) {
    std::map<std::string, std::string> found;
    bool is_free = false;
    for (const std::size_t i : rows) {
      const std::string value = text_at(*key, i);
      is_free = is_free || found.try_emplace(values_of(named, i), value).first->second != value;
    }
    if (is_free) named.push_back(key);
  }
  return named;
}

Curves::Curves(CurvesRequest request, const StoredResults& results, const TableSource& table)
    : over_(key_of(table, request.over, request.option)) {
  if (request.rows.empty()) request.rows = rows_where(table, {});
  first_ = request.rows.front();
  figures_ = condition_figures(request, results);
  if (request.min_over) min_over_ = key_of(table, *request.min_over, "--min-over");
  require_numbers(over_, request.option);
  if (min_over_ && min_over_->name == over_.name) {
    throw InvalidInput("--min-over: is " + over_.name + ", as " + request.option +
                       " - name another key");
  }
  require_one_seed(request, table);
  keys_ = keys_apart(table, request.rows, over_, min_over_);
  for (const std::size_t i : request.rows) add(request, i);
  if (std::ranges::all_of(all_, [](const NamedCurve& one) { return one.points.size() == 1; })) {
    throw InvalidInput(request.option + ": " + over_.name + " has one value alone");
  }
  for (NamedCurve& one : all_) finish(one);
}

double Curves::x_of(std::size_t i) const {
  return std::get<std::vector<double>>(over_.cells)[i];
}

void Curves::add(const CurvesRequest& request, std::size_t i) {
  const std::string name = values_of(keys_, i);
  auto curve = std::ranges::find(all_, name, &NamedCurve::name);
  if (curve == all_.end()) {
    all_.push_back({.name = name, .points = {}});
    curve = all_.end() - 1;
  }
  const double x = x_of(i);
  auto point = std::ranges::find(curve->points, x, &CurvePoint::x);
  if (point == curve->points.end()) {
    curve->points.push_back({.x = x, .conditions = {}});
    point = curve->points.end() - 1;
  } else if (!min_over_) {
    throw InvalidInput(request.command + ": " + over_.name + " = " + number_text(x) +
                       " stands twice in the sweep");
  }
  point->conditions.push_back(i);
}

void Curves::finish(NamedCurve& one) const {
  std::ranges::sort(one.points, {}, &CurvePoint::x);
  for (CurvePoint& point : one.points) {
    std::vector<Jackknifed> figures;
    for (const std::size_t c : point.conditions) figures.push_back(figures_[c].figure);
    point.choice = lowest_of(figures, counts());
    one.curve.x.push_back(point.x);
    one.curve.y.push_back(figures[point.choice.least]);
  }
  one.lowest = lowest_of(one.curve.y, counts());
}

void require_nodes(const StoredResults& results) {
  if (results.has_nodes()) return;
  throw InvalidInput(one_line(results.path()) +
                     ": has no nodes, from which standard errors come - run without --nodes none "
                     "and give the folder");
}

}  // namespace headlab::tools
