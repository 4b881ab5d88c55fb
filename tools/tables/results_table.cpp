// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "engine/files/available_memory.h"
#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/words.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/results_scenario.h"
#include "tools/tables/table_source.h"

namespace headlab::tools {
namespace {

constexpr std::string_view swept_prefix = "swept parameter ";
constexpr std::string_view coordinate_prefix = "x_";
constexpr const char* difference_prefix = "difference_";

/// The axes of the rows besides the condition.
std::vector<std::string> axes_of_rows(TableOf of) {
  switch (of) {
    case TableOf::queries:
      return {"query"};
    case TableOf::heads:
      return {"query", "head"};
    case TableOf::pairs:
      return {"query", "head", "head_2"};
    case TableOf::growth:
    case TableOf::conditions:
      break;
  }
  return {};
}

class ResultsTable : public TableSource {
 public:
  ResultsTable(std::shared_ptr<const NetcdfInput> input, const std::string& file, TableOf of)
      : input_(std::move(input)), root_(input_->root()), axes_(axes_of_rows(of)) {
    if (!root_.has_attribute("results_id") || !root_.has_attribute("swept")) {
      throw InvalidInput(file + ": was not written by headlab run");
    }
    if (!has_layout_of_today(root_.integer_attribute("format_version"))) {
      throw InvalidInput(file + ": is of another format version - run the scenario again");
    }
    if (of == TableOf::growth) {
      throw InvalidInput("--of growth: " + file + " has no growth - leave it out");
    }
    conditions_ = root_.dimension("condition");
    blocks_ = results_blocks(root_);
    const bool of_layers = !blocks_.empty() && blocks_.front().group.has_dimension("layer");
    if (of == TableOf::conditions && of_layers) axes_ = {"layer"};
    for (const ResultsBlock& block : blocks_) {
      if (axes_.empty() || block.group.has_dimension(axes_.back())) continue;
      throw InvalidInput(std::string("--of ") + name_of(of) + ": " + file + " has no " +
                         name_of(of) + " - leave it out");
    }
    make_rows(of);
    find_keys();
    find_figures();
    shown = of == TableOf::conditions
                ? shown_of_run(*this, conditions_ > 1, of_layers ? first_parameters() : Value(),
                               measures())
            : of == TableOf::queries ? std::vector<std::string>{"query_mse"}
            : of == TableOf::heads   ? std::vector<std::string>{"head_bias"}
                                     : std::vector<std::string>{"head_covariance"};
    std::erase_if(shown, [&](const std::string& name) { return !has(name); });
    if (of != TableOf::conditions && !has_values()) {
      throw InvalidInput(std::string("--of ") + name_of(of) + ": " + file + " has no figures of " +
                         name_of(of) + " (drawn again, or of aggregate moments)");
    }
  }

  bool has(const std::string& name) const override {
    return is_column(root_, name, true) ||
           std::ranges::any_of(blocks_, [&](const ResultsBlock& block) {
             return is_column(block.group, name, false);
           });
  }

  TableColumn figure(const std::string& name) const override {
    TableColumn column = column_of(name);
    const std::string error = name + "_mcse";
    if (!column.is_text() && has(error)) {
      column.error = "mcse";
      column.errors = std::get<std::vector<double>>(column_of(error).cells);
      column.degrees_of_freedom = freedom_of(name.starts_with(difference_prefix));
    }
    return column;
  }

 private:
  /// One less than the nodes of the jackknife; that of a difference runs over the nodes of both
  /// conditions together, or has no number that is known.
  std::shared_ptr<const std::vector<double>> freedom_of(bool of_difference) const {
    auto& kept = freedom_[of_difference ? 1 : 0];
    if (kept) return kept;
    auto freedom = std::get<std::vector<double>>(of_conditions("jackknife_nodes").cells);
    for (double& one : freedom) one = one > 1 ? one - 1 : no_number;
    if (of_difference && root_.has_variable("difference_paired")) {
      const auto paired = std::get<std::vector<double>>(of_conditions("difference_paired").cells);
      for (std::size_t r = 0; r < rows; ++r) {
        if (paired[r] != 1) freedom[r] = no_number;
      }
    }
    kept = std::make_shared<const std::vector<double>>(std::move(freedom));
    return kept;
  }

  /// Where a row is in the arrays of a block.
  struct Place {
    std::uint32_t block, row;
    std::array<std::uint32_t, 3> index;  ///< along axes_
  };

  void make_rows(TableOf of) {
    if (axes_.empty()) {
      rows = conditions_;
      conditions.resize(rows);
      std::iota(conditions.begin(), conditions.end(), std::size_t{0});
      return;
    }
    std::map<std::size_t, std::pair<std::uint32_t, std::uint32_t>> found;
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      const auto& of_block = blocks_[b].conditions;
      for (std::uint32_t row = 0; row < of_block.size(); ++row) found[of_block[row]] = {b, row};
    }
    // A damaged file may state any lengths.
    double bytes = 0;
    for (const ResultsBlock& block : blocks_) {
      double of_block = static_cast<double>(block.conditions.size()) * sizeof(Place);
      for (const std::string& axis : axes_) {
        of_block *= static_cast<double>(block.group.dimension(axis));
      }
      bytes += of_block;
    }
    if (bytes > static_cast<double>(available_bytes())) {
      throw NetcdfError("has more rows than memory has room for");
    }
    for (const auto& [condition, at] : found) {
      const NetcdfGroup& group = blocks_[at.first].group;
      std::array<std::uint32_t, 3> lengths = {1, 1, 1};
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        lengths[a] = static_cast<std::uint32_t>(group.dimension(axes_[a]));
      }
      for (std::uint32_t i = 0; i < lengths[0]; ++i) {
        for (std::uint32_t h = 0; h < lengths[1]; ++h) {
          for (std::uint32_t l = of == TableOf::pairs ? h : 0; l < lengths[2]; ++l) {
            places_.push_back({at.first, at.second, {i, h, l}});
            conditions.push_back(condition);
          }
        }
      }
    }
    rows = places_.size();
  }

  /// Whether any row has a value of what is shown.
  bool has_values() const {
    return std::ranges::any_of(shown, [&](const std::string& name) {
      return std::ranges::any_of(std::get<std::vector<double>>(column_of(name).cells),
                                 [](double number) { return number == number; });
    });
  }

  /// The whole key of a variable of swept values; empty of others.
  std::string swept_key(const std::string& name) const {
    for (const auto& [attribute, value] : root_.attributes(name)) {
      const auto* text = std::get_if<std::string>(&value);
      if (attribute == "long_name" && text != nullptr && text->starts_with(swept_prefix)) {
        return text->substr(swept_prefix.size());
      }
    }
    return "";
  }

  void find_keys() {
    std::vector<std::string> whole, variables;
    for (const std::string& name : root_.variables()) {
      const std::string key = swept_key(name);
      if (key.empty()) continue;
      swept_.push_back(name);
      // Under the dotted key they are there once more.
      if (std::ranges::count(whole, key) > 0) continue;
      whole.push_back(key);
      variables.push_back(name);
    }
    // In the order of the scenario.
    const std::string swept = root_.text_attribute("swept") + " ";
    std::vector<std::size_t> order(whole.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t s) {
      return (" " + swept).find(" " + swept_name(whole[s]) + " ");
    });
    std::vector<std::string> sorted;
    for (const std::size_t s : order) sorted.push_back(whole[s]);
    for (std::size_t s = 0; s < sorted.size(); ++s) {
      TableColumn& key = keys.emplace_back(of_conditions(variables[order[s]]));
      key.name = short_key(sorted, s);
      key.key = sorted[s];
    }
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      std::vector<double> numbers;
      for (const Place& place : places_) numbers.push_back(place.index[a]);
      keys.push_back({.name = axes_[a], .cells = std::move(numbers), .whole = true});
    }
  }

  /// Names of the measures of the scenario.
  std::vector<std::string> measures() const {
    if (!root_.has_attribute(measures_attribute)) return {};
    std::istringstream words(root_.text_attribute(measures_attribute));
    std::vector<std::string> names;
    for (std::string name; words >> name;) names.push_back(name);
    return names;
  }

  /// Of the scenario of the first condition.
  Value first_parameters() const {
    const std::vector<std::string> all = root_.texts("parameters");
    return parse_json(all.empty() ? "" : all.front()).value_or(Value());
  }

  void find_figures() {
    const auto add = [&](const NetcdfGroup& group, bool of_root) {
      for (const std::string& name : group.variables()) {
        const bool error =
            name.ends_with("_mcse") && group.has_variable(name.substr(0, name.size() - 5));
        const bool long_text = name == "parameters" || name.ends_with("_sha256");
        if (error || long_text || !is_column(group, name, of_root)) continue;
        if (std::ranges::count(figures, name) == 0 &&
            std::ranges::count(keys, name, &TableColumn::name) == 0) {
          figures.push_back(name);
        }
      }
    };
    add(root_, true);
    for (const ResultsBlock& block : blocks_) add(block.group, false);
    if (axes_.empty() || axes_.front() != "query") return;
    std::size_t coordinates = 0;
    for (const ResultsBlock& block : blocks_) {
      if (block.group.has_variable("x")) {
        coordinates = std::max(coordinates, block.group.dimension("coordinate"));
      }
    }
    for (std::size_t i = 0; i < coordinates; ++i) {
      figures.push_back(std::string(coordinate_prefix) + std::to_string(i));
    }
  }

  /// Whether a variable has one value for each row, or for several rows.
  bool is_column(const NetcdfGroup& group, const std::string& name, bool of_root) const {
    if (coordinate_of(name)) return !of_root && group.has_variable("x");
    if (!group.has_variable(name) || std::ranges::count(swept_, name) > 0) return false;
    const std::vector<std::string> dimensions = group.dimensions(name);
    if (dimensions.empty() || dimensions.front() != "condition" || name == "condition")
      return false;
    if (dimensions.size() == 1) return true;
    return !of_root && std::ranges::all_of(dimensions.begin() + 1, dimensions.end(),
                                           [&](const std::string& axis) {
                                             return std::ranges::count(axes_, axis) > 0;
                                           });
  }

  /// The i of "x_i", where rows have queries.
  std::optional<std::size_t> coordinate_of(const std::string& name) const {
    if (axes_.empty() || axes_.front() != "query" || !name.starts_with(coordinate_prefix))
      return {};
    const std::string digits = name.substr(coordinate_prefix.size());
    if (digits.empty() || digits.size() > 6 ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
      return {};
    }
    return std::stoul(digits);
  }

  /// One value a condition, at every row.
  TableColumn of_conditions(const std::string& name) const {
    const NetcdfGroup::Values all = root_.values(name);
    TableColumn column{.name = name};
    std::visit(
        [&](const auto& values) {
          using Item = std::decay_t<decltype(values[0])>;
          if (values.size() != conditions_) throw NetcdfError(name + ": is of another length");
          column.whole = std::is_same_v<Item, std::int64_t>;
          if constexpr (std::is_same_v<Item, std::string>) {
            std::vector<std::string> cells;
            for (const std::size_t c : conditions) cells.push_back(visible(values[c]));
            column.cells = std::move(cells);
          } else {
            std::vector<double> cells;
            cells.reserve(rows);
            for (const std::size_t c : conditions) cells.push_back(static_cast<double>(values[c]));
            column.cells = std::move(cells);
          }
        },
        all);
    return column;
  }

  TableColumn column_of(const std::string& name) const {
    if (!coordinate_of(name) && root_.has_variable(name) &&
        root_.dimensions(name) == std::vector<std::string>{"condition"}) {
      return of_conditions(name);
    }
    std::vector<double> cells(rows, no_number);
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      if (is_column(blocks_[b].group, name, false)) fill(b, name, cells);
    }
    return {.name = name, .cells = std::move(cells)};
  }

  /// Fills the rows of a block.
  void fill(std::uint32_t b, const std::string& name, std::vector<double>& cells) const {
    const NetcdfGroup& group = blocks_[b].group;
    const std::optional<std::size_t> coordinate = coordinate_of(name);
    const std::string variable = coordinate ? "x" : name;
    const std::vector<double> values = group.doubles(variable);
    const std::vector<std::string> dimensions = group.dimensions(variable);
    const std::vector<std::size_t> shape = group.shape(variable);
    for (std::size_t r = 0; r < rows; ++r) {
      const Place& place = places_[r];
      if (place.block != b) continue;
      std::size_t at = place.row;
      bool inside = true;
      for (std::size_t i = 1; i < dimensions.size(); ++i) {
        const auto axis = std::ranges::find(axes_, dimensions[i]);
        const std::size_t index = axis == axes_.end()
                                      ? coordinate.value_or(0)
                                      : place.index[static_cast<std::size_t>(axis - axes_.begin())];
        inside = inside && index < shape[i];
        at = at * shape[i] + index;
      }
      if (inside && at < values.size()) cells[r] = values[at];
    }
  }

  std::shared_ptr<const NetcdfInput> input_;
  NetcdfGroup root_;
  std::vector<std::string> axes_;  ///< of the rows, besides the condition
  std::size_t conditions_ = 0;
  std::vector<ResultsBlock> blocks_;
  std::vector<Place> places_;       ///< of the rows; none where these are the conditions
  std::vector<std::string> swept_;  ///< variables of swept values
  /// Of figures, and of differences.
  mutable std::array<std::shared_ptr<const std::vector<double>>, 2> freedom_;
};

}  // namespace

std::unique_ptr<TableSource> table_of_results(std::shared_ptr<const NetcdfInput> input,
                                              const std::string& file, TableOf of) {
  return std::make_unique<ResultsTable>(std::move(input), file, of);
}

}  // namespace headlab::tools
