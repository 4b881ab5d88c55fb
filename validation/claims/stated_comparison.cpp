// SPDX-License-Identifier: Apache-2.0
// Conditions are found when the file is read, before anything is simulated.
#include "validation/claims/stated_comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "engine/files/notes.h"
#include "engine/files/toml_advice.h"
#include "engine/files/words.h"
#include "engine/moments/figure_name.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

/// Reads what a table compares.
class ComparisonReader {
 public:
  ComparisonReader(const Value& table, std::string key, const SweptConditions& conditions,
                   ComparisonSetting setting)
      : table_(table),
        reader_(table, key),
        key_(std::move(key)),
        conditions_(conditions),
        setting_(std::move(setting)) {}

  std::vector<StatedComparison> read() {
    const auto read_kind = kind();
    for (const SweptValues& fixed : conditions_.choices(setting_.for_each)) {
      fixed_ = fixed;
      (this->*read_kind)();
    }
    return std::move(comparisons_);
  }

 private:
  using ReadKind = void (ComparisonReader::*)();

  /// The one kind of comparison that the table states.
  ReadKind kind() const {
    const std::vector<std::pair<std::string, ReadKind>> kinds = {
        {"less", &ComparisonReader::read_less},
        {"equal", &ComparisonReader::read_equal},
        {"of", &ComparisonReader::read_number},
        {"ratio", &ComparisonReader::read_number},
        {"monotone", &ComparisonReader::read_monotone},
        {"argmin", &ComparisonReader::read_argmin},
        {"slope", &ComparisonReader::read_slope},
        {"crossing", &ComparisonReader::read_crossing}};
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
        reject(reader_.find(key)->location, reader_.path(key),
               found[0] == "slope" && key != std::string("equals_theory")
                   ? "belongs into the table of `slope`"
                   : "needs `of` or `ratio`");
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
    const std::string option = value.location.text() + ": " + side.path("figure");
    return conditions_.layers(0) ? parse_layer_figure(option, name)
                                 : parse_figure(option, name, conditions_.measures());
  }

  /// The swept values of a table's `at`, with those of for_each.
  SweptValues values_of(const TableReader& side) const {
    SweptValues values = fixed_;
    const Value* at = side.find("at");
    if (at == nullptr) return values;
    const auto* members = std::get_if<Value::Members>(&at->data);
    if (members == nullptr) {
      reject(at->location, side.path("at"),
             kind_problem(*at, "a table { \"swept.key\" = value }", ValueKind::table));
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
      if (inner != nullptr && law_of(entry.value) == nullptr && !conditions_.is_swept(key)) {
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
                  .text = {},
                  .noise_unit = setting_.noise_unit};
    if (side.figure.layer && *side.figure.layer > *conditions_.layers(side.condition)) {
      reject(location, key,
             side.figure.text() + " is not there: condition #" + std::to_string(side.condition) +
                 " has layers 0 to " + std::to_string(*conditions_.layers(side.condition)));
    }
    side.text = setting_.noise_unit ? "n " + side.figure.text() + " / s2" : side.figure.text();
    const std::string where = conditions_.text(side.condition);
    if (!where.empty()) side.text += " at " + where;
    return side;
  }

  FigureAt side(const Value& value, const std::string& key) const {
    if (!value.is<Value::Members>()) {
      const bool is_number = value.number().has_value();
      reject(value.location, key,
             kind_problem(value, "a table", ValueKind::table) +
                 (is_number
                      ? std::string(" - a figure is compared with a number by `of` and `equals`, "
                                    "`at_most` or `at_least`")
                  : value.is<std::string>() ? " - write { figure = " + to_toml(value) + " }"
                                            : ""));
    }
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
    const FigureAt first = side((*array)[0], reader_.path(key) + "[0]");
    const FigureAt second = side((*array)[1], reader_.path(key) + "[1]");
    require_different(first, second);
    return {first, second};
  }

  /// A figure less itself is 0, whatever is claimed.
  void require_different(const FigureAt& one, const FigureAt& other) const {
    if (one.condition != other.condition || !(one.figure == other.figure)) return;
    reject(other.location, other.key, "is " + other.text + ", which it is compared with");
  }

  void add_order(const FigureAt& low, const FigureAt& high) {
    comparisons_.push_back([=, margin = setting_.margin](Experiment& experiment) {
      return less_than(experiment, low, high, margin);
    });
  }

  void read_less() {
    const FigureAt high = side("than"), low = side("less");
    require_different(low, high);
    add_order(low, high);
  }

  void read_equal() {
    const auto [first, second] = sides("equal");
    comparisons_.push_back(
        [a = first, b = second, margin = setting_.margin](Experiment& experiment) {
          return equal_to(experiment, a, b, margin);
        });
  }

  /// The one of some keys that a table has.
  static std::string one_of(const std::vector<std::string>& keys, const TableReader& table,
                            const Location& location, const std::string& path) {
    std::vector<std::string> found;
    for (const std::string& key : keys) {
      if (table.find(key.c_str())) found.push_back(key);
    }
    if (found.size() != 1) {
      reject(location, path,
             "needs one of " + listed(keys) + "; has " + (found.empty() ? "none" : listed(found)));
    }
    return found[0];
  }

  /// A number, and how something is to stand to it.
  struct Bound {
    Relation relation;
    double number;
    std::string text;  ///< " at most 0.1"
  };
  Bound bound_of(const TableReader& table, const std::string& word) const {
    double number = 0;
    table.required(word.c_str(), number, finite(), "a number");
    if (setting_.margin.relative && number == 0) {
      reject(table.need(word.c_str(), "").location, table.path(word),
             "a margin relative to 0 is 0 - give an absolute one, margin = 0.01");
    }
    const std::string text = number_text(number);
    if (word == "equals") return {Relation::equals, number, " equal to " + text};
    if (word == "at_most") return {Relation::at_most, number, " at most " + text};
    return {Relation::at_least, number, " at least " + text};
  }

  /// A figure, or the ratio of two, against a number or its closed form.
  void read_number() {
    const std::string found =
        one_of({"equals", "at_most", "at_least", "equals_theory"}, reader_, table_.location, key_);
    if (found == "equals_theory") {
      read_theory();
      return;
    }
    const Bound bound = bound_of(reader_, found);
    std::vector<FigureAt> terms;
    if (reader_.find("ratio")) {
      const auto [top, bottom] = sides("ratio");
      terms = {top, bottom};
    } else {
      terms = {side("of")};
    }
    const std::string text =
        terms[0].text + (terms.size() == 2 ? " over " + terms[1].text : "") + bound.text;
    comparisons_.push_back([=, margin = setting_.margin](Experiment& experiment) {
      return FigureComparison{
          against_number(experiment, text, terms, bound.relation, bound.number, margin)};
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
    comparisons_.push_back([=, margin = setting_.margin](Experiment& experiment) {
      const Theory& theory = experiment.theory(of.condition, source);
      if (theory.source == "bound") {
        throw ClosedFormDeclines("The closed form of " + of.figure.text() + " is " + theory.form +
                                 ".");
      }
      const Remainder* form = of.figure.layer ? find_figure<Remainder>(theory.layers, of.figure)
                                              : find_figure<Remainder>(theory.figures, of.figure);
      if (form == nullptr || !std::isfinite(form->value)) {
        throw ClosedFormDeclines("No closed form has " + of.figure.text() + ".");
      }
      if (margin.relative && form->value == 0) {
        reject(of.location, of.key,
               of.figure.text() +
                   " has a closed form of 0, and a margin relative to 0 is 0 - give "
                   "an absolute one, margin = 0.01");
      }
      const double unit = unit_of(experiment, of);
      const double remainder =
          std::isfinite(form->remainder) ? std::abs(form->remainder) / unit : 0;
      return FigureComparison{against_number(experiment, of.text + " equal to its closed form",
                                             {of}, Relation::equals, form->value / unit, margin,
                                             remainder)};
    });
  }

  /// The values of a swept key, numbers from the least on, and arrays of numbers where none of
  /// their numbers falls.
  std::vector<SweptValues> along_values(const TableReader& table, const std::string& key,
                                        const std::string& swept) const {
    std::vector<SweptValues> values = conditions_.choices({swept});
    const auto numbers = [](const SweptValues& one) { return numbers_of(one[0].second); };
    bool ordered =
        std::ranges::all_of(values, [&](const auto& one) { return numbers(one).has_value(); });
    if (ordered) {
      std::ranges::stable_sort(values, {}, [&](const SweptValues& one) { return *numbers(one); });
      for (std::size_t i = 1; i < values.size(); ++i) {
        const std::vector<double> below = *numbers(values[i - 1]), above = *numbers(values[i]);
        ordered = ordered && std::ranges::equal(below, above, std::less_equal());
      }
    }
    if (!ordered && reader_.find("monotone")) {
      reject(table.need("in", "").location, key,
             "goes along \"" + swept +
                 "\", whose values have no order - numbers have one; compare others with `less`");
    }
    return values;
  }

  /// The conditions that `swept` tells apart with the rest as in a table's `at`, in the order of
  /// along_values().
  std::vector<FigureAt> along(const TableReader& table, const std::string& key,
                              const std::string& swept) const {
    return along(table, key, swept, values_of(table));
  }
  /// \param rest  what fixes the other keys
  std::vector<FigureAt> along(const TableReader& table, const std::string& key,
                              const std::string& swept, const SweptValues& rest) const {
    const FigureName figure = figure_of(table);
    conditions_.require_swept(table_.location, key, swept);
    const auto fixed = [&](const auto& one) { return one.first == swept; };
    if (std::ranges::any_of(rest, fixed)) {
      reject(table_.location, key,
             "goes along \"" + swept + "\", which `at` or `for_each` fixes - leave it out there");
    }
    std::vector<FigureAt> all;
    for (const SweptValues& one : along_values(table, key, swept)) {
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

  /// The values of a swept key that along() goes through.
  std::vector<double> numbers_along(const TableReader& table, const std::string& key,
                                    const std::string& swept) const {
    std::vector<double> numbers;
    for (const SweptValues& one : along_values(table, key, swept)) {
      const auto found = one[0].second.number();
      if (!found) {
        reject(table.need("over", "").location, key,
               "goes along \"" + swept + "\", whose values are not numbers");
      }
      numbers.push_back(*found);
    }
    return numbers;
  }

  void read_slope() {
    const std::string path = reader_.path("slope");
    const Value& value = reader_.need("slope", "");
    const TableReader table(value, path);
    table.allow({"figure", "over", "at", "equals", "at_most", "at_least"});
    std::string swept;
    table.required("over", swept, "a swept key");
    const Bound bound =
        bound_of(table, one_of({"equals", "at_most", "at_least"}, table, value.location, path));
    const std::vector<FigureAt> points = along(table, path, swept);
    const std::vector<double> x = numbers_along(table, path, swept);
    if (x.front() <= 0) {
      reject(table.need("over", "").location, path,
             "has no slope along \"" + swept + "\": logarithms are of numbers above 0");
    }
    const std::string text = "slope of log " + points.front().figure.text() + " on log " + swept +
                             where_of(table) + bound.text;
    comparisons_.push_back([=, margin = setting_.margin](Experiment& experiment) {
      return FigureComparison{
          slope_against_number(experiment, text, points, x, bound.relation, bound.number, margin)};
    });
  }

  /// " at KEY = VALUE" of what fixes the other keys.
  std::string where_of(const TableReader& table) const {
    std::string text;
    for (const auto& [key, value] : values_of(table)) {
      const std::string* law = law_of(value);
      text +=
          (text.empty() ? " at " : ", ") + key + " = " + (law ? *law : one_line(to_toml(value)));
    }
    return text;
  }

  /// The first of two curves is lower up to a value of the key, the second from another value on.
  void read_crossing() {
    const std::string path = reader_.path("crossing");
    const TableReader table(reader_.need("crossing", ""), path);
    table.allow({"figure", "over", "at", "first", "second", "between"});
    std::string swept;
    table.required("over", swept, "a swept key");
    const auto curve = [&](const char* key) {
      const Value& fixed = table.need(key, "the curve's settings { \"swept.key\" = value }");
      const auto* members = std::get_if<Value::Members>(&fixed.data);
      if (members == nullptr) {
        reject(fixed.location, table.path(key),
               kind_problem(fixed, "a table { \"swept.key\" = value }", ValueKind::table));
      }
      SweptValues values = values_of(table);
      add_members(*members, "", table.path(key), values);
      return along(table, path, swept, values);
    };
    const std::vector<FigureAt> first = curve("first"), second = curve("second");
    const std::vector<double> x = numbers_along(table, path, swept);
    const Value& between = table.need("between", "two values, as [100, 200]");
    const auto ends = numbers_of(between);
    if (!ends || ends->size() != 2 || !((*ends)[0] < (*ends)[1])) {
      reject(between.location, table.path("between"), "needs two numbers that rise, as [100, 200]");
    }
    if (x.front() > (*ends)[0] || x.back() < (*ends)[1]) {
      reject(between.location, table.path("between"),
             "is not within the values of \"" + swept + "\", " + number_text(x.front()) + " to " +
                 number_text(x.back()));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] <= (*ends)[0]) add_order(first[i], second[i]);
      if (x[i] >= (*ends)[1]) add_order(second[i], first[i]);
    }
  }

  const Value& table_;
  TableReader reader_;
  std::string key_;
  const SweptConditions& conditions_;
  ComparisonSetting setting_;
  SweptValues fixed_;  ///< of for_each
  std::vector<StatedComparison> comparisons_;
};

Margin read_margin(const TableReader& reader) {
  Margin margin;
  const Value& value = reader.need("margin",
                                   "what still counts as equal, or as no order; a number or { "
                                   "relative = fraction }");
  const auto* text = std::get_if<std::string>(&value.data);
  if (text != nullptr && text->ends_with('%') && !number_meant(*text).empty()) {
    reject(value.location, reader.path("margin"),
           "is " + to_toml(value) +
               ", needs a number, or { relative = fraction } - write { relative = " +
               number_meant(*text) + " }");
  }
  if (!std::holds_alternative<Value::Members>(value.data)) {
    reader.required("margin", margin.value, at_least(0), "");
    return margin;
  }
  const TableReader table(value, reader.path("margin"));
  if (const Value* absolute = table.find("absolute")) {
    reject(absolute->location, table.path("absolute"),
           "is no key - a margin that is not relative is the number itself: margin = 0.05");
  }
  table.allow({"relative"});
  table.required("relative", margin.value, at_least(0), "fraction of what is compared with");
  margin.relative = true;
  if (margin.value >= 1) {
    note(table.path("relative") + ": is " + number_text(margin.value) + ": " +
         number_text(1 + margin.value) +
         " times what is compared with still counts as equal to it, and so does 0");
  }
  return margin;
}

}  // namespace

const std::vector<std::string>& comparison_keys() {
  static const std::vector<std::string> keys = {
      "less",     "than",          "equal",    "of",     "ratio", "equals",  "at_most",
      "at_least", "equals_theory", "monotone", "argmin", "slope", "crossing"};
  return keys;
}

const std::vector<std::string>& setting_keys() {
  static const std::vector<std::string> keys = {"for_each", "margin", "unit"};
  return keys;
}

ComparisonSetting read_setting(const TableReader& reader, const SweptConditions& conditions,
                               const ComparisonSetting* defaults) {
  ComparisonSetting setting = defaults == nullptr ? ComparisonSetting{} : *defaults;
  if (defaults == nullptr || reader.find("margin")) setting.margin = read_margin(reader);
  reader.choice("unit", setting.noise_unit, {{std::string("s2/n"), true}});
  if (const Value* keys = reader.find("for_each")) {
    setting.for_each = reader.words("for_each");
    for (const std::string& key : setting.for_each) {
      conditions.require_swept(keys->location, reader.path("for_each"), key);
    }
  }
  return setting;
}

std::vector<StatedComparison> read_comparisons(const Value& table, const std::string& key,
                                               const SweptConditions& conditions,
                                               const ComparisonSetting& setting) {
  return ComparisonReader(table, key, conditions, setting).read();
}

}  // namespace headlab
