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
#include "validation/claims/counterexample_of.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

/// One value of each of some swept keys.
using SweptValues = std::vector<std::pair<std::string, Value>>;

/// A figure of one condition.
struct FigureAt {
  FigureName figure;
  std::size_t condition = 0;
  Location location;
  std::string key;   ///< "claim.compare[0].less"
  std::string text;  ///< "mse at heads.count = 4"
};

/// How far from the letter a claim may be.
struct Margin {
  double value = 0;
  bool relative = false;
};

bool same_value(const Value& a, const Value& b) {
  const auto number = [](const Value& value) -> std::optional<double> {
    if (const auto* whole = std::get_if<std::int64_t>(&value.data)) {
      return static_cast<double>(*whole);
    }
    if (const auto* real = std::get_if<double>(&value.data)) return *real;
    return std::nullopt;
  };
  if (number(a) && number(b)) return number(a) == number(b);
  const auto* one = std::get_if<Value::Array>(&a.data);
  const auto* other = std::get_if<Value::Array>(&b.data);
  if (one && other) return std::ranges::equal(*one, *other, same_value);
  return to_toml(a) == to_toml(b);
}

/// The name of a law, where the value is the table of one.
const std::string* law_of(const Value& value) {
  const Value* law = value.find("law");
  return law == nullptr ? nullptr : std::get_if<std::string>(&law->data);
}

/// True where `written` in a claim means the swept value: by value, or a law by its name.
bool means(const Value& written, const Value& swept) {
  const auto* name = std::get_if<std::string>(&written.data);
  const std::string* law = law_of(swept);
  return name && law ? *name == *law : same_value(written, swept);
}

std::string short_text(const Value& value) {
  const std::string* law = law_of(value);
  return law ? *law : to_toml(value);
}

std::string short_text(const SweptValues& values) {
  std::string text;
  for (const auto& [key, value] : values) {
    text += (text.empty() ? "" : ", ") + key + " = " + short_text(value);
  }
  return text;
}

/// The conditions of a scenario by their swept values.
class Conditions {
 public:
  explicit Conditions(const Scenario& scenario) : keys_(scenario.swept) {
    for (const Condition& condition : scenario.conditions) {
      const Value tree = condition.parameters.tree();
      SweptValues& values = values_.emplace_back();
      for (const std::string& key : keys_) {
        if (const Value* value = value_at(tree, key)) values.emplace_back(key, *value);
      }
    }
  }

  const SweptValues& at(std::size_t i) const { return values_[i]; }

  void require_swept(const Location& location, const std::string& key,
                     const std::string& swept) const {
    if (std::ranges::find(keys_, swept) != keys_.end()) return;
    reject(location, key,
           "\"" + one_line(swept) + "\" is not swept" +
               (keys_.empty() ? " - there is no [sweep]" : suggestion(swept, keys_)));
  }

  /// The one condition with these values.
  std::size_t find(const Location& location, const std::string& key,
                   const SweptValues& wanted) const {
    std::vector<std::size_t> found(values_.size());
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = i;
    for (const auto& [name, value] : wanted) {
      std::erase_if(found, [&](std::size_t i) { return !means(value, *value_of(i, name)); });
      if (!found.empty()) continue;
      std::vector<std::string> swept;
      for (std::size_t i = 0; i < values_.size(); ++i) {
        const std::string text = short_text(*value_of(i, name));
        if (std::ranges::find(swept, text) == swept.end()) swept.push_back(text);
      }
      reject(location, key,
             "no condition has " + short_text(wanted) + " (" + name + " is " + listed(swept) + ")");
    }
    if (found.size() == 1) return found[0];
    std::vector<std::string> open;
    for (const std::string& name : keys_) {
      const auto differs = [&](std::size_t i) {
        return !same_value(*value_of(i, name), *value_of(found[0], name));
      };
      if (std::ranges::any_of(found, differs)) open.push_back(name);
    }
    reject(location, key,
           "fits " + std::to_string(found.size()) + " conditions - add " + listed(open) +
               " to `at`, or to `for_each`");
  }

  /// The distinct values of `keys` together, in the order of the conditions; one empty choice for
  /// no key.
  std::vector<SweptValues> choices(const std::vector<std::string>& keys) const {
    std::vector<SweptValues> all;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      SweptValues one;
      for (const std::string& key : keys) one.emplace_back(key, *value_of(i, key));
      const auto same = [&](const SweptValues& other) {
        return std::ranges::equal(one, other, [](const auto& a, const auto& b) {
          return same_value(a.second, b.second);
        });
      };
      if (std::ranges::none_of(all, same)) all.push_back(std::move(one));
    }
    return all;
  }

 private:
  const Value* value_of(std::size_t i, const std::string& key) const {
    for (const auto& [name, value] : values_[i]) {
      if (name == key) return &value;
    }
    return nullptr;
  }

  std::vector<std::string> keys_;
  std::vector<SweptValues> values_;  ///< [conditions]
};

Jackknifed magnitude(const Jackknifed& a) {
  return apply([](double x) { return std::abs(x); }, a);
}

[[noreturn]] void reject_undefined(const FigureAt& side, const Experiment& experiment) {
  const Condition& condition = experiment.condition(side.condition);
  reject(side.location, side.key,
         side.figure.text() + " is undefined in condition #" + std::to_string(side.condition) +
             " (" + std::to_string(condition.heads) + " heads, " +
             std::to_string(experiment.plan(side.condition).queries) + " queries, " +
             (condition.moments == MomentMode::pairwise ? "pairwise" : "aggregate") + " moments)");
}

const Jackknifed& observed(Experiment& experiment, const FigureAt& side) {
  const Jackknifed* figure =
      find_figure<Jackknifed>(experiment.observed(side.condition), side.figure);
  if (figure == nullptr || !std::isfinite(figure->value)) reject_undefined(side, experiment);
  return *figure;
}

/// "low is at most high", up to the margin, which is relative to `high`.
Comparison at_most(Experiment& experiment, std::string what, const Jackknifed& low,
                   const Jackknifed& high, const Margin& margin) {
  const Jackknifed room = high - low;
  Comparison comparison =
      at_least_zero(std::move(what), margin.relative ? room / magnitude(high) : room, 1,
                    margin.value, experiment.node_counts());
  comparison.observed = low.value;
  comparison.expected = high.value;
  return comparison;
}

/// "a equals b", up to the margin, which is relative to `b`.
Comparison equal(Experiment& experiment, std::string what, const Jackknifed& a, const Jackknifed& b,
                 const Margin& margin, double theory_error = 0) {
  const double scale = margin.relative ? std::abs(b.value) : 1;
  Comparison comparison =
      b.leave_one_out.empty()
          ? equal_to(std::move(what), a, b.value, scale, margin.value, experiment.node_counts(),
                     theory_error / scale)
          : equal_to(std::move(what), margin.relative ? (a - b) / magnitude(b) : a - b, 0, 1,
                     margin.value, experiment.node_counts());
  comparison.observed = a.value;
  comparison.expected = b.value;
  return comparison;
}

/// Reads one table [[claim.compare]].
class ClaimReader {
 public:
  ClaimReader(const Value& table, std::string key, const Conditions& conditions)
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
      for (const auto& compare : comparisons) finding.comparisons.push_back(compare(experiment));
      return std::vector{std::move(finding)};
    };
    return claim;
  }

 private:
  using Compare = std::function<Comparison(Experiment&)>;
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
    const std::string where = short_text(conditions_.at(side.condition));
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
      return at_most(experiment, low.text + " less than " + high.text, observed(experiment, low),
                     observed(experiment, high), margin);
    });
  }

  void read_less() { add_order(side("less"), side("than")); }

  void read_equal() {
    const auto [a, b] = sides("equal");
    comparisons_.push_back([=, margin = margin_](Experiment& experiment) {
      return equal(experiment, a.text + " equal to " + b.text, observed(experiment, a),
                   observed(experiment, b), margin);
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
        return equal(experiment, text + " equal to" + number_is, figure, number, margin);
      }
      const Margin of_number{margin.relative ? margin.value * std::abs(number) : margin.value};
      return relation == "at_most"
                 ? at_most(experiment, text + " at most" + number_is, figure, number, of_number)
                 : at_most(experiment, text + " at least" + number_is, number, figure, of_number);
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
      const double remainder = std::isfinite(form->remainder) ? std::abs(form->remainder) : 0;
      return equal(experiment, of.text + " equal to its closed form", observed(experiment, of),
                   form->value, margin, remainder);
    });
  }

  /// The conditions that `swept` tells apart with the rest as in a table's `at`, in the order of
  /// the sweep.
  std::vector<FigureAt> along(const TableReader& table, const std::string& key,
                              const std::string& swept) const {
    const FigureName figure = figure_of(table);
    const SweptValues rest = values_of(table);
    conditions_.require_swept(table_.location, key, swept);
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
  const Conditions& conditions_;
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

bool states_claims(const Scenario& scenario) {
  return stated_in(scenario.conditions.at(0).parameters.tree()) != nullptr;
}

std::vector<StatedClaim> read_stated_claims(const Scenario& scenario) {
  const Value parameters = scenario.conditions.at(0).parameters.tree();
  const Value* stated = stated_in(parameters);
  const auto* array = stated == nullptr ? nullptr : std::get_if<Value::Array>(&stated->data);
  if (array == nullptr || array->empty()) {
    reject(stated == nullptr ? parameters.location : stated->location, "claim.compare",
           "needs tables - write [[claim.compare]]");
  }
  for (const std::string& key : scenario.swept) {
    if (key == "run.replicates") {
      reject(stated->location, "claim.compare",
             "compares conditions of equally many replicates, and run.replicates is swept");
    }
  }
  const Conditions conditions(scenario);
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
