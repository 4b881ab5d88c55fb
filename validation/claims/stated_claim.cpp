// SPDX-License-Identifier: Apache-2.0
// Every kind of comparison becomes one of two: a number that is at least 0, or a number that is 0,
// each up to the margin. Conditions are found when the file is read, before anything is simulated.
#include "validation/claims/stated_claim.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <variant>

#include "engine/files/document.h"
#include "engine/files/words.h"
#include "engine/moments/figure_name.h"
#include "engine/scenario/law_reader.h"
#include "validation/claims/experiment.h"
#include "validation/claims/figure_comparison.h"
#include "validation/claims/swept_conditions.h"

namespace headlab {
namespace {

/// Reads one table [[claim.compare]].
class ClaimReader {
 public:
  ClaimReader(const Value& table, std::string key, const SweptConditions& conditions)
      : table_(table), reader_(table, key), key_(std::move(key)), conditions_(conditions) {}

  StatedClaim read() {
    reader_.allow({"name", "statement", "less", "than", "equal", "of", "ratio", "equals", "at_most",
                   "at_least", "equals_theory", "monotone", "argmin", "for_each", "margin",
                   "expected"});
    StatedClaim claim;
    reader_.required("name", claim.form.name, "what is claimed, in words");
    reader_.optional("statement", claim.form.statement, "");
    reader_.optional("expected", claim.expected, "");
    const std::vector<std::string> verdicts = {"supported", "refuted", "unresolved",
                                               "limited by theory"};
    if (reader_.find("expected") && std::ranges::find(verdicts, claim.expected) == verdicts.end()) {
      reader_.reject_word("expected", claim.expected, verdicts);
    }
    read_margin();
    claim.margin = margin_.value;
    const std::vector<std::string> keys = reader_.words("for_each");
    for (const std::string& key : keys) {
      conditions_.require_swept(reader_.need("for_each", "").location, reader_.path("for_each"),
                                key);
    }
    const auto read_kind = kind();
    for (const SweptValues& fixed : conditions_.choices(keys)) {
      fixed_ = fixed;
      (this->*read_kind)();
    }
    if (claim.form.statement.empty()) claim.form.statement = claim.form.name + ".";
    claim.form.assumptions =
        "The conditions of the scenario, at its queries" +
        (keys.empty() ? std::string(".") : ", for each value of " + listed(keys) + ".");
    claim.form.refuted_by = "A comparison beyond the margin of " + number_text(margin_.value) +
                            (margin_.relative ? ", relative to what is compared with." : ".");
    claim.form.examine = [comparisons = std::move(comparisons_)](Experiment& experiment) {
      Finding finding;
      for (std::size_t i = 0; i < comparisons.size(); ++i) {
        FigureComparison compared = comparisons[i](experiment);
        finding.comparisons.push_back(std::move(compared.comparison));
        if (compared.counterexample) {
          finding.counterexamples.emplace(i, std::move(*compared.counterexample));
        }
      }
      return std::vector{std::move(finding)};
    };
    return claim;
  }

 private:
  using Compare = std::function<FigureComparison(Experiment&)>;
  using ReadKind = void (ClaimReader::*)();

  void read_margin() {
    const Value& margin =
        reader_.need("margin",
                     "what still counts as equal, or as no order; a number or { relative "
                     "= fraction }");
    if (!std::holds_alternative<Value::Members>(margin.data)) {
      reader_.required("margin", margin_.value, at_least(0), "");
      return;
    }
    const TableReader table(margin, reader_.path("margin"));
    table.allow({"relative"});
    table.required("relative", margin_.value, at_least(0), "fraction of what is compared with");
    margin_.relative = true;
  }

  /// The one kind of comparison that the table states.
  ReadKind kind() const {
    const std::vector<std::pair<std::string, ReadKind>> kinds = {
        {"less", &ClaimReader::read_less},         {"equal", &ClaimReader::read_equal},
        {"of", &ClaimReader::read_number},         {"ratio", &ClaimReader::read_number},
        {"monotone", &ClaimReader::read_monotone}, {"argmin", &ClaimReader::read_argmin}};
    std::vector<std::string> names;
    std::vector<std::string> found;
    ReadKind read_found = nullptr;
    for (const auto& [name, function] : kinds) {
      names.push_back(name);
      if (reader_.find(name.c_str()) == nullptr) continue;
      found.push_back(name);
      read_found = function;
    }
    if (found.empty()) {
      reject(table_.location, key_, "states no comparison (allowed: " + listed(names) + ")");
    }
    if (found.size() > 1) {
      reject(table_.location, key_,
             "states " + listed(found) +
                 " at once - write a [[claim.compare]] "
                 "for each");
    }
    const bool has_number = found[0] == "of" || found[0] == "ratio";
    for (const char* key : {"equals", "at_most", "at_least", "equals_theory"}) {
      if (!has_number && reader_.find(key)) {
        reject(reader_.find(key)->location, reader_.path(key), "needs `of` or `ratio`");
      }
    }
    if (found[0] != "less" && reader_.find("than")) {
      reject(reader_.find("than")->location, reader_.path("than"), "needs `less`");
    }
    return read_found;
  }

  /// The figure of a table that has a `figure`.
  FigureName figure_of(const TableReader& side) const {
    std::string name;
    side.required("figure", name, "a figure of summary.json, as \"mse\"");
    const Value& value = side.need("figure", "");
    return parse_figure(value.location.text() + ": " + side.path("figure"), name);
  }

  /// The swept values of a table's `at`, with those of for_each.
  SweptValues values_of(const TableReader& side) const {
    SweptValues values = fixed_;
    const Value* at = side.find("at");
    if (at == nullptr) return values;
    const auto* members = std::get_if<Value::Members>(&at->data);
    if (members == nullptr) {
      reject(at->location, side.path("at"),
             std::string("is ") + at->kind() + ", needs a table { \"swept.key\" = value }");
    }
    add_members(*members, "", side.path("at"), values);
    return values;
  }

  /// Keys may be quoted whole or written as nested tables: heads.count = 4.
  void add_members(const Value::Members& members, const std::string& prefix,
                   const std::string& path, SweptValues& values) const {
    for (const Value::Entry& entry : members) {
      const std::string key = prefix.empty() ? entry.key : prefix + "." + entry.key;
      const auto* inner = std::get_if<Value::Members>(&entry.value.data);
      if (inner != nullptr && law_of(entry.value) == nullptr) {
        add_members(*inner, key, path, values);
        continue;
      }
      conditions_.require_swept(entry.location, path, key);
      const auto same = [&](const auto& one) { return one.first == key; };
      if (std::ranges::any_of(values, same)) {
        reject(entry.location, path,
               "\"" + key + "\" is in `for_each` too - leave one of them out");
      }
      values.emplace_back(key, entry.value);
    }
  }

  FigureAt figure_at(FigureName figure, const Location& location, const std::string& key,
                     const SweptValues& values) const {
    FigureAt side{.figure = std::move(figure),
                  .condition = conditions_.find(location, key, values),
                  .location = location,
                  .key = key,
                  .text = {}};
    side.text = side.figure.text();
    const std::string where = conditions_.text(side.condition);
    if (!where.empty()) side.text += " at " + where;
    return side;
  }

  FigureAt side(const Value& value, const std::string& key) const {
    const TableReader table(value, key);
    table.allow({"figure", "at"});
    return figure_at(figure_of(table), value.location, key, values_of(table));
  }
  FigureAt side(const char* key) const {
    return side(reader_.need(key, "{ figure = \"...\", at = { \"swept.key\" = value } }"),
                reader_.path(key));
  }

  /// Two sides in an array.
  std::pair<FigureAt, FigureAt> sides(const char* key) const {
    const Value& value = reader_.need(key, "");
    const auto* array = std::get_if<Value::Array>(&value.data);
    if (array == nullptr || array->size() != 2) {
      reject(value.location, reader_.path(key),
             "needs an array of two tables { figure = \"...\", at = { ... } }");
    }
    return {side((*array)[0], reader_.path(key) + "[0]"),
            side((*array)[1], reader_.path(key) + "[1]")};
  }

  void add_order(const FigureAt& low, const FigureAt& high) {
    comparisons_.push_back([=, margin = margin_](Experiment& experiment) {
      return less_than(experiment, low, high, margin);
    });
  }

  void read_less() { add_order(side("less"), side("than")); }

  void read_equal() {
    const auto [a, b] = sides("equal");
    comparisons_.push_back([=, margin = margin_](Experiment& experiment) {
      return equal_to(experiment, a, b, margin);
    });
  }

  /// A figure, or the ratio of two, against a number or its closed form.
  void read_number() {
    std::vector<std::string> found;
    for (const char* key : {"equals", "at_most", "at_least", "equals_theory"}) {
      if (reader_.find(key)) found.push_back(key);
    }
    if (found.size() != 1) {
      reject(table_.location, key_,
             "needs one of equals, at_most, at_least, equals_theory; has " +
                 (found.empty() ? "none" : listed(found)));
    }
    if (found[0] == "equals_theory") {
      read_theory();
      return;
    }
    double number = 0;
    reader_.required(found[0].c_str(), number, finite(), "a number");
    if (margin_.relative && number == 0) {
      reject(reader_.need(found[0].c_str(), "").location, reader_.path(found[0]),
             "a margin relative to 0 is 0 - give an absolute one, margin = 0.01");
    }
    std::vector<FigureAt> terms;
    if (reader_.find("ratio")) {
      const auto [top, bottom] = sides("ratio");
      terms = {top, bottom};
    } else {
      terms = {side("of")};
    }
    comparisons_.push_back([=, relation = found[0], margin = margin_](Experiment& experiment) {
      Jackknifed figure = observed(experiment, terms[0]);
      std::string text = terms[0].text;
      if (terms.size() == 2) {
        figure = figure / observed(experiment, terms[1]);
        text += " over " + terms[1].text;
      }
      const std::string number_is = " " + number_text(number);
      if (relation == "equals") {
        return FigureComparison{
            equal(experiment, text + " equal to" + number_is, figure, number, margin)};
      }
      const Margin of_number{margin.relative ? margin.value * std::abs(number) : margin.value};
      return FigureComparison{
          relation == "at_most"
              ? at_most(experiment, text + " at most" + number_is, figure, number, of_number)
              : at_most(experiment, text + " at least" + number_is, number, figure, of_number)};
    });
  }

  void read_theory() {
    if (!reader_.find("of")) {
      reject(reader_.need("equals_theory", "").location, reader_.path("equals_theory"),
             "needs `of`: closed forms are of single figures");
    }
    TheorySource source = TheorySource::automatic;
    reader_.choice("equals_theory", source,
                   {{"auto", TheorySource::automatic},
                    {"exact", TheorySource::exact},
                    {"first_order", TheorySource::first_order}});
    const FigureAt of = side("of");
    comparisons_.push_back([=, margin = margin_](Experiment& experiment) {
      const Remainder* form =
          find_figure<Remainder>(experiment.theory(of.condition, source).figures, of.figure);
      if (form == nullptr || !std::isfinite(form->value)) {
        throw ClosedFormDeclines("No closed form has " + of.figure.text() + ".");
      }
      if (margin.relative && form->value == 0) {
        reject(of.location, of.key,
               of.figure.text() +
                   " has a closed form of 0, and a margin relative to 0 is 0 - give "
                   "an absolute one, margin = 0.01");
      }
      const double remainder = std::isfinite(form->remainder) ? std::abs(form->remainder) : 0;
      return FigureComparison{equal(experiment, of.text + " equal to its closed form",
                                    observed(experiment, of), form->value, margin, remainder)};
    });
  }

  /// The conditions that `swept` tells apart with the rest as in a table's `at`, in the order of
  /// the sweep.
  std::vector<FigureAt> along(const TableReader& table, const std::string& key,
                              const std::string& swept) const {
    const FigureName figure = figure_of(table);
    const SweptValues rest = values_of(table);
    conditions_.require_swept(table_.location, key, swept);
    const auto fixed = [&](const auto& one) { return one.first == swept; };
    if (std::ranges::any_of(rest, fixed)) {
      reject(table_.location, key,
             "goes along \"" + swept + "\", which `at` or `for_each` fixes - leave it out there");
    }
    std::vector<FigureAt> all;
    for (const SweptValues& one : conditions_.choices({swept})) {
      SweptValues values = rest;
      values.push_back(one[0]);
      all.push_back(figure_at(figure, table_.location, key, values));
    }
    if (all.size() < 2) reject(table_.location, key, "\"" + swept + "\" has one value");
    return all;
  }

  void read_monotone() {
    const std::string path = reader_.path("monotone");
    const TableReader table(reader_.need("monotone", ""), path);
    table.allow({"figure", "in", "direction", "at"});
    std::string swept;
    table.required("in", swept, "a swept key");
    table.need("direction", "increasing or decreasing");
    bool increasing = true;
    table.choice("direction", increasing,
                 {{std::string("increasing"), true}, {std::string("decreasing"), false}});
    const std::vector<FigureAt> all = along(table, path, swept);
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (increasing) {
        add_order(all[i - 1], all[i]);
      } else {
        add_order(all[i], all[i - 1]);
      }
    }
  }

  void read_argmin() {
    const std::string path = reader_.path("argmin");
    const TableReader table(reader_.need("argmin", ""), path);
    table.allow({"figure", "over", "is", "at"});
    std::string swept;
    table.required("over", swept, "a swept key");
    const Value& is = table.need("is", "the value of the key at which the figure is least");
    const std::vector<FigureAt> all = along(table, path, swept);
    SweptValues values = values_of(table);
    values.emplace_back(swept, is);
    const std::size_t least = conditions_.find(is.location, table.path("is"), values);
    for (const FigureAt& other : all) {
      if (other.condition != least) {
        add_order(figure_at(other.figure, is.location, path, values), other);
      }
    }
  }

  const Value& table_;
  TableReader reader_;
  std::string key_;
  const SweptConditions& conditions_;
  Margin margin_;
  SweptValues fixed_;  ///< of for_each
  std::vector<Compare> comparisons_;
};

/// The array [[claim.compare]], or nullptr.
const Value* stated_in(const Value& parameters) {
  const Value* claim = parameters.find("claim");
  return claim == nullptr ? nullptr : claim->find("compare");
}

}  // namespace

std::size_t count_stated_claims(const Scenario& scenario) {
  const Value parameters = scenario.conditions.at(0).parameters.tree();
  const Value* stated = stated_in(parameters);
  if (stated == nullptr) return 0;
  const auto* array = std::get_if<Value::Array>(&stated->data);
  // One that is no array, or is empty, is rejected where claims are read.
  return array == nullptr || array->empty() ? 1 : array->size();
}

std::vector<StatedClaim> read_stated_claims(const Scenario& scenario) {
  const Value parameters = scenario.conditions.at(0).parameters.tree();
  const Value* stated = stated_in(parameters);
  const auto* array = stated == nullptr ? nullptr : std::get_if<Value::Array>(&stated->data);
  if (array == nullptr || array->empty()) {
    reject(stated == nullptr ? parameters.location : stated->location, "claim.compare",
           "needs tables - write [[claim.compare]]");
  }
  const Value& claim = *parameters.find("claim");
  for (const char* key : {"name", "form", "index", "expected", "margin"}) {
    if (const Value* value = claim.find(key)) {
      reject(value->location, std::string("claim.") + key,
             "is of a built-in claim - write it in [[claim.compare]]");
    }
  }
  for (const std::string& key : scenario.swept) {
    if (key == "run.replicates") {
      reject(stated->location, "claim.compare",
             "compares conditions of equally many replicates, and run.replicates is swept");
    }
  }
  const SweptConditions conditions(scenario);
  std::vector<StatedClaim> claims;
  for (std::size_t i = 0; i < array->size(); ++i) {
    claims.push_back(
        ClaimReader((*array)[i], "claim.compare[" + std::to_string(i) + "]", conditions).read());
    for (std::size_t j = 0; j < i; ++j) {
      if (claims[j].form.name == claims[i].form.name) {
        reject((*array)[i].location, "claim.compare[" + std::to_string(i) + "].name",
               "\"" + one_line(claims[i].form.name, 80) + "\" is the name of another claim");
      }
    }
  }
  return claims;
}

}  // namespace headlab
