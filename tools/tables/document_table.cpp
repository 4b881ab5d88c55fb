// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/results/results_scenario.h"
#include "tools/report/source.h"
#include "tools/report/sweep.h"
#include "tools/tables/document_rows.h"
#include "tools/tables/table_source.h"

namespace headlab::tools {
namespace {

/// The element of nested arrays; null where it is not there.
const Value& element(const Value& array, std::span<const std::size_t> place) {
  static const Value none;
  if (place.empty()) return array;
  const Value::Array& items = items_of(array);
  return place[0] < items.size() ? element(items[place[0]], place.subspan(1)) : none;
}

/// How many arrays stand inside one another.
std::size_t depth_of(const Value& value) {
  const Value::Array& items = items_of(value);
  return value.is<Value::Array>() ? 1 + (items.empty() ? 0 : depth_of(items.front())) : 0;
}

/// Puts the element of every array of as many axes as `place`, or fewer, in an object.
void put_elements(DocumentTable& table, const Value& object, std::span<const std::size_t> place,
                  const std::string& prefix = "") {
  for (const auto& [key, location, value] : members_of(object)) {
    const std::string name = prefix.empty() ? key : prefix + "_" + key;
    if (key == "x" || key == "head_numbers" || key == "parameters") continue;
    if (key == "correlations") put_elements(table, value, place, name);
    const std::size_t depth = depth_of(value);
    if (depth == 0 || depth > place.size()) continue;
    const Value& one = element(value, place.first(depth));
    if (one.is<Value::Null>() || one.number()) table.put(name, one);
  }
}

Value whole(std::size_t number) {
  return {static_cast<std::int64_t>(number), Location()};
}

/// Calls row(place) for every head, or every pair of heads: h <= l, or different ones in both
/// orders.
void for_each_head(TableOf of, std::size_t heads, bool both_orders,
                   const std::function<void(std::span<const std::size_t>)>& row) {
  for (std::size_t h = 0; h < heads; ++h) {
    if (of == TableOf::heads) row(std::vector{h});
    for (std::size_t l = both_orders ? 0 : h; l < heads && of == TableOf::pairs; ++l) {
      if (!both_orders || l != h) row(std::vector{h, l});
    }
  }
}

void put_heads(DocumentTable& table, std::span<const std::size_t> place) {
  table.put("head", whole(place[0]));
  if (place.size() > 1) table.put("head_2", whole(place[1]));
}

void put_query(DocumentTable& table, const Value& condition, const Value& query) {
  for (const auto& [key, location, value] : members_of(query)) {
    table.put_one(condition.find(key) != nullptr ? "query_" + key : key, value);
  }
  const Value::Array& x = items_of(member(query, "x"));
  for (std::size_t i = 0; i < x.size(); ++i) table.put("x_" + std::to_string(i), x[i]);
}

void add_condition(DocumentTable& table, const Value& condition, TableOf of,
                   const std::function<void()>& begin) {
  if (of == TableOf::conditions) {
    const Value& layers = member(condition, "layers");
    if (!layers.is<Value::Array>()) {
      begin();
      table.put_all("", condition);
    }
    for (std::size_t l = 0; l < items_of(layers).size(); ++l) {
      begin();
      table.put_all("", condition);
      table.put("layer", whole(l));
      table.put_all("", items_of(layers)[l]);
    }
    return;
  }
  const Value::Array& queries = items_of(member(condition, "queries"));
  const std::size_t heads = items_of(member(condition, "head_weights")).size();
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto row = [&](std::span<const std::size_t> place) {
      begin();
      table.put_all("", condition);
      table.put("query", whole(q));
      if (!place.empty()) put_heads(table, place);
      put_query(table, condition, queries[q]);
      put_elements(table, condition, place);
      put_elements(table, queries[q], place);
    };
    if (of == TableOf::queries) {
      row({});
    } else {
      for_each_head(of, heads, false, row);
    }
  }
}

/// Columns of the keys by which conditions differ.
std::vector<TableColumn> swept_columns(const Value::Array& of) {
  const std::vector<DifferingKey> differing = differing_keys(of);
  std::vector<std::string> names;
  for (const DifferingKey& key : differing) names.push_back(key.key);
  std::vector<TableColumn> columns;
  for (std::size_t s = 0; s < differing.size(); ++s) {
    const std::vector<const Value*>& values = differing[s].values;
    TableColumn column{.name = short_key(names, s), .key = names[s]};
    if (std::ranges::all_of(values,
                            [](const Value* value) { return value->number().has_value(); })) {
      std::vector<double> numbers;
      for (const Value* value : values) numbers.push_back(*value->number());
      column.cells = std::move(numbers);
      column.whole =
          std::ranges::all_of(values, [](const Value* value) { return is_whole(*value); });
    } else {
      std::vector<std::string> texts;
      for (const Value* value : values) texts.push_back(text_in(*value));
      column.cells = std::move(texts);
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

void add_conditions(DocumentTable& table, const Value& document, TableOf of) {
  const Value::Array& all = items_of(member(document, "conditions"));
  for (std::size_t c = 0; c < all.size(); ++c) {
    add_condition(table, all[c], of, [&] {
      table.begin_row();
      table.conditions.push_back(c);
    });
  }
  for (TableColumn& of_conditions : swept_columns(all)) {
    TableColumn& key = table.keys.emplace_back(std::move(of_conditions));
    std::visit(
        [&](auto& cells) {
          std::decay_t<decltype(cells)> of_rows;
          for (const std::size_t c : table.conditions) of_rows.push_back(cells[c]);
          cells = std::move(of_rows);
        },
        key.cells);
  }
  for (const char* key : {"layer", "query", "head", "head_2"}) table.make_key(key);
  table.finish();
  const Value parameters = all.empty() ? Value() : member(all[0], "parameters");
  std::vector<std::string> measures;
  for (const auto& [name, location, formula] : members_of(member(parameters, "measures"))) {
    measures.push_back(name);
  }
  table.shown = of == TableOf::conditions
                    ? shown_of_run(table, all.size() > 1, parameters, measures)
                : of == TableOf::queries ? std::vector<std::string>{"query_mse"}
                : of == TableOf::heads   ? std::vector<std::string>{"head_bias"}
                                         : std::vector<std::string>{"head_covariance"};
}

void add_layers(DocumentTable& table, const Value& document, TableOf of, bool both_orders) {
  for (const Value& layer : items_of(member(document, "layers"))) {
    const auto row = [&](std::span<const std::size_t> place) {
      table.begin_row();
      table.put_all("", layer);
      if (place.empty()) return;
      put_heads(table, place);
      put_elements(table, layer, place);
    };
    if (of == TableOf::conditions) row({});
    for_each_head(of, static_cast<std::size_t>(count_of(member(layer, "heads")).value_or(0)),
                  both_orders, row);
  }
  for (const char* key : {"layer", "head", "head_2"}) table.make_key(key);
  table.finish();
}

void add_layers_of_heads(DocumentTable& table, const Value& document, TableOf of) {
  add_layers(table, document, of, false);
  for (const std::string& name : table.figures) {
    const bool of_layer = name.starts_with("index_") && !name.ends_with("_ceiling") &&
                          !name.ends_with("_mcse") && !name.ends_with("_sd");
    const bool of_heads = name == "condition_number" || name.starts_with("correlations_");
    if ((of == TableOf::conditions ? of_layer : of_heads) && table.has_values(name)) {
      table.shown.push_back(name);
    }
  }
}

/// A pair stands in both orders: what one head is to another is not what that is to it.
void add_measured_heads(DocumentTable& table, const Value& document, TableOf of) {
  add_layers(table, document, of, true);
  table.shown = of == TableOf::conditions
                    ? std::vector<std::string>{"output_variance", "output_correlation", "stream",
                                               "contexts_mse", "loo_mse"}
                : of == TableOf::heads
                    ? std::vector<std::string>{"spread", "spread_share", "refit_cost_share",
                                               "second_order", "tokens_effective"}
                    : std::vector<std::string>{"exchange_share", "total_variation",
                                               "weight_correlation", "spread_correlation"};
}

void add_rows(DocumentTable& table, const Value& list, std::initializer_list<const char*> keys,
              std::initializer_list<const char*> shown) {
  for (const Value& row : items_of(list)) {
    table.begin_row();
    table.put_all("", row);
  }
  for (const char* key : keys) {
    if (table.has_values(key)) table.make_key(key);
  }
  table.finish();
  for (const char* name : shown) {
    if (table.has(name)) table.shown.emplace_back(name);
  }
}

/// Points of the curves along a key, a row each.
void add_curves(DocumentTable& table, const Value& document) {
  const std::string over = text_of(member(document, "over"));
  const std::string figure = text_of(member(document, "figure"));
  const std::string min_over = text_of(member(document, "min_over"));
  for (const Value& curve : items_of(member(document, "curves"))) {
    for (const Value& point : items_of(member(curve, "points"))) {
      table.begin_row();
      table.put("curve", member(curve, "name"));
      table.put(over, member(point, "x"));
      if (!min_over.empty()) table.put(min_over, member(point, "chosen"));
      table.put_all(figure, member(point, "figure"));
      table.put("may_be_lowest", member(point, "may_be_lowest"));
      table.put_all("slope", member(curve, "slope"));
    }
  }
  if (table.has_values("curve")) table.make_key("curve");
  table.make_key(over);
  table.finish();
  table.shown = {min_over, figure};
}

void add_allocations(DocumentTable& table, const Value& document) {
  const Value& many = member(document, "studies");
  const Value::Array alone = {document};
  for (const Value& study : many.is<Value::Array>() ? items_of(many) : alone) {
    for (const Value& row : items_of(member(study, "allocations"))) {
      table.begin_row();
      for (const char* key : {"budget", "n", "rule"}) {
        table.put(key, study.find(key) != nullptr ? member(study, key) : member(document, key));
      }
      table.put_all("", row);
    }
  }
  for (const char* key : {"budget", "n", "rule", "heads", "dim"}) table.make_key(key);
  table.finish();
  table.show({"subspaces", "bandwidth", "temperature", "mse", "replicates", "in_best_set"});
}

/// A number or a text that stands as TOML; an array and a table stay text.
Value of_toml(const std::string& text) {
  Value value = parse_value(text, "setting", Location());
  const bool single = !value.is<Value::Array>() && !value.is<Value::Members>();
  return single ? std::move(value) : Value(text, Location());
}

/// The best dimension at each n: inside the range, at an end of it, or by theory.
std::map<double, const Value*> best_dimensions(const Value& growth, const Value& document) {
  std::map<double, const Value*> best;
  for (const Value& point : items_of(member(growth, "points"))) {
    best[number_of(member(point, "n"))] = &member(point, "best_dim");
  }
  const Value::Array& left_out = items_of(member(growth, "at_the_end"));
  const Value::Array& ends = items_of(member(growth, "ends"));
  for (std::size_t i = 0; i < std::min(left_out.size(), ends.size()); ++i) {
    best[number_of(left_out[i])] = &ends[i];
  }
  for (const Value& study : items_of(member(document, "studies"))) {
    const Value* by_theory = study.find("best_dim");
    if (by_theory == nullptr || member(study, "budget") != member(growth, "budget")) continue;
    best[number_of(member(study, "n"))] = by_theory;
  }
  return best;
}

/// All n of a document, ascending.
std::set<double> sizes_of(const Value& document) {
  std::set<double> sizes;
  for (const Value& n : items_of(member(document, "n"))) sizes.insert(number_of(n));
  for (const Value& study : items_of(member(document, "studies"))) {
    sizes.insert(number_of(member(study, "n")));
  }
  return sizes;
}

void put_growth(DocumentTable& table, const Value& growth, const Value& document) {
  const std::map<double, const Value*> best = best_dimensions(growth, document);
  for (const double n : sizes_of(document)) {
    const std::string name = "dim@" + number_text(n);
    const auto at = best.find(n);
    const Value& dim = at == best.end() ? Value() : *at->second;
    if (dim.is<Value::Members>()) {
      table.put_all(name, dim);
    } else {
      table.put(name, dim);
      table.put(name + "_at_the_end", at == best.end() ? Value() : Value(true, Location()));
    }
  }
  for (const Value& law : items_of(member(growth, "laws"))) {
    if (text_of(member(law, "law")) != "power") continue;
    table.put("exponent", member(law, "slope"));
    const std::size_t low = 0, high = 1;
    table.put("exponent_low", element(member(law, "interval"), std::span(&low, 1)));
    table.put("exponent_high", element(member(law, "interval"), std::span(&high, 1)));
  }
}

/// How the best dimension grows, a row for each setting of a map, rule and budget.
void add_growths(DocumentTable& table, const Value& list, const Value& document) {
  std::vector<std::string> keys;
  for (const Value& growth : items_of(list)) {
    table.begin_row();
    for (const auto& [key, location, value] : members_of(member(growth, "setting"))) {
      if (std::ranges::count(keys, key) == 0) keys.push_back(key);
      table.put(key, of_toml(text_of(value)));
    }
    if (growth.find("rule") == nullptr) table.put("rule", member(document, "rule"));
    for (const auto& [key, location, value] : members_of(growth)) {
      if (key != "setting") table.put(key, value);
    }
    put_growth(table, growth, document);
  }
  for (const std::string& key : keys) table.make_key(key);
  for (std::size_t s = 0; s < keys.size(); ++s) {
    table.keys[s].key = keys[s];
    table.keys[s].name = short_key(keys, s);
  }
  for (const char* key : {"rule", "budget"}) table.make_key(key);
  table.finish();
  for (const std::string& key : keys) std::erase(table.figures, key);
  for (const std::string& name : table.figures) {
    const bool detail = name.ends_with("_interpolation") || name.ends_with("_at_the_end");
    if (name.starts_with("dim@") && !detail) table.shown.push_back(name);
  }
  table.shown.emplace_back(table.has("words") ? "words" : "verdict");
  table.show(
      {"exponent", "exponent_low", "exponent_high", "first_order", "condensation", "asymptotic"});
}

}  // namespace

std::unique_ptr<TableSource> table_of_document(const Value& document, const std::string& file,
                                               TableOf of) {
  auto table = std::make_unique<DocumentTable>();
  const std::optional<SourceKind> kind = kind_of(document);
  const bool of_diff = document.find("differences") != nullptr && document.find("matching");
  if (!kind && !of_diff) return nullptr;
  const bool of_heads = !of_diff && (*kind == SourceKind::run || *kind == SourceKind::theory ||
                                     *kind == SourceKind::heads ||
                                     (*kind == SourceKind::measured && of != TableOf::queries));
  const bool has_rows = of == TableOf::growth ? !of_diff && *kind == SourceKind::allocation &&
                                                    !items_of(member(document, "growth")).empty()
                                              : of == TableOf::conditions || of_heads;
  if (!has_rows) {
    throw InvalidInput(std::string("--of ") + name_of(of) + ": " + file + " has no figures of " +
                       name_of(of) + " - leave it out");
  }
  if (of_diff) {
    add_rows(*table, member(document, "differences"), {"condition", "figure"},
             {"in_mcse", "difference", "a", "b"});
    return table;
  }
  switch (*kind) {
    case SourceKind::run:
    case SourceKind::theory:
      add_conditions(*table, document, of);
      break;
    case SourceKind::verdicts:
      add_rows(*table, member(document, "claims"),
               {"claim", "form", "index", "kernel", "regression", "stages"},
               {"verdict", "effect", "margin"});
      break;
    case SourceKind::allocation:
      if (of == TableOf::growth) {
        add_growths(*table, member(document, "growth"), document);
      } else {
        add_allocations(*table, document);
      }
      break;
    case SourceKind::map:
      add_growths(*table, member(document, "cells"), document);
      break;
    case SourceKind::heads:
      add_layers_of_heads(*table, document, of);
      break;
    case SourceKind::measured:
      add_measured_heads(*table, document, of);
      break;
    case SourceKind::curves:
      add_curves(*table, document);
      break;
  }
  std::erase_if(table->shown, [&](const std::string& name) { return !table->has(name); });
  const auto has_values = [&](const std::string& name) { return table->has_values(name); };
  if (of != TableOf::conditions && std::ranges::none_of(table->shown, has_values)) {
    throw InvalidInput(std::string("--of ") + name_of(of) + ": " + file + " has no figures of " +
                       name_of(of) +
                       " (drawn again, of aggregate moments, or too many for a summary.json)");
  }
  return table;
}

}  // namespace headlab::tools
