// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/table_file.h"
#include "engine/replay/replicate_figures.h"
#include "tools/cli/commands/plot.h"
#include "tools/report/figure.h"
#include "tools/report/replicates_figure.h"
#include "tools/tables/select_table.h"

namespace headlab::tools {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t keys_of_replicates = 3;  // condition, replicate, query come first

/// The columns of a file of --replicate-figures.
class ReplicateTable : public TableSource {
 public:
  explicit ReplicateTable(const std::string& path) {
    const auto visit = [&](const char* name, const auto&, const char*) {
      figures.emplace_back(name);
    };
    ReplicateFigure().fields(visit);
    fs::path(path).extension() == ".nc" ? read_netcdf(path) : read_csv(path);
    if (rows == 0) throw InvalidInput(one_line(path) + ": holds no replicates");
    keys.assign(columns_.begin(), columns_.begin() + keys_of_replicates);
    figures.erase(figures.begin(), figures.begin() + keys_of_replicates);
  }

  TableColumn figure(const std::string& name) const override {
    return *std::ranges::find(columns_, name, &TableColumn::name);
  }
  bool has(const std::string& name) const override {
    return std::ranges::find(columns_, name, &TableColumn::name) != columns_.end();
  }

 private:
  [[noreturn]] static void reject_file(const std::string& path) {
    throw InvalidInput(
        one_line(path) +
        ": is not a file of single replicates - give a folder of --out, or a file of "
        "headlab run --replicate-figures");
  }

  void add(const std::string& name, std::vector<double> values) {
    rows = values.size();
    TableColumn column{.name = name};
    column.cells = std::move(values);
    columns_.push_back(std::move(column));
  }

  void read_csv(const std::string& path) {
    const DataTable table = read_table(path, true);
    if (table.column_names != figures) reject_file(path);
    for (std::size_t c = 0; c < table.columns; ++c) {
      std::vector<double> values;
      for (std::size_t row = 0; row < table.rows; ++row) values.push_back(table.at(row, c));
      add(figures[c], std::move(values));
    }
  }

  void read_netcdf(const std::string& path) {
    try {
      const NetcdfInput file(path);
      const NetcdfGroup root = file.root();
      for (const std::string& name : figures) {
        if (!root.has_variable(name) || root.dimensions(name) != Texts{"row"}) reject_file(path);
        if (root.holds_integers(name)) {
          const std::vector<std::int64_t> values = root.integers(name);
          add(name, {values.begin(), values.end()});
        } else {
          add(name, root.doubles(name));
        }
      }
    } catch (const NetcdfError& error) {
      throw InvalidInput(one_line(path) + ": " + error.what());
    }
  }

  std::vector<TableColumn> columns_;
};

/// A sample for each condition and query.
std::vector<ReplicateSample> samples_of(const ReplicateTable& table, const PlotArguments& arguments,
                                        const std::string& figure) {
  const auto numbers = [&](const char* name) {
    return std::get<std::vector<double>>(table.figure(name).cells);
  };
  const std::vector<double> conditions = numbers("condition"), queries = numbers("query");
  const std::vector<double> truths = numbers("truth"), values = numbers(figure.c_str());
  std::map<std::pair<double, double>, ReplicateSample> found;
  std::set<double> all_conditions, all_queries;
  for (const std::size_t row : rows_where(table, parse_where(arguments.where))) {
    if (!std::isfinite(values[row])) {
      throw InvalidInput(one_line(arguments.result) + ": " + figure + " of row " +
                         std::to_string(row) + " is not finite");
    }
    ReplicateSample& sample = found[{conditions[row], queries[row]}];
    sample.values.push_back(values[row]);
    if (figure == "estimate") sample.truth = truths[row];
    all_conditions.insert(conditions[row]);
    all_queries.insert(queries[row]);
  }
  if (found.size() > max_plot_panels) {
    throw InvalidInput("--where: " + std::to_string(found.size()) +
                       " conditions and queries are left, of which a picture has " +
                       std::to_string(max_plot_panels) + " at most - write --where query=0");
  }
  std::vector<ReplicateSample> samples;
  for (auto& [of, sample] : found) {
    if (all_conditions.size() > 1) sample.title = "condition #" + number_text(of.first);
    if (all_queries.size() > 1) {
      sample.title += (sample.title.empty() ? "query " : ", query ") + number_text(of.second);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace

bool is_replicate_file(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  std::error_code error;
  return (ending == ".csv" || ending == ".nc") && fs::is_regular_file(path, error);
}

Picture replicates_plot(const PlotArguments& arguments) {
  if (const std::string option = arguments.option_of_keys(); !option.empty()) {
    throw InvalidInput(option +
                       ": is for results over swept keys - of single replicates choose with "
                       "--where condition=0");
  }
  const Texts known = {"estimate", "squared_error", "zip"};
  const std::string figure = arguments.figure.empty() ? known.front() : arguments.figure;
  known_word("--figure", figure, known);
  const ReplicateTable table(arguments.result);
  const bool zip = figure == "zip";
  const std::vector<ReplicateSample> samples =
      samples_of(table, arguments, zip ? "squared_error" : figure);
  if (!zip) {
    return histogram_picture(figure == "estimate" ? "estimate of the ensemble" : "squared error",
                             samples);
  }
  for (const ReplicateSample& sample : samples) {
    if (zip_group(sample.values.size()) > 0) continue;
    throw InvalidInput("--figure: zip needs 320 replicates or more, and there are " +
                       std::to_string(sample.values.size()) + " - take --figure squared_error");
  }
  return zip_picture("squared error", samples);
}

}  // namespace headlab::tools
