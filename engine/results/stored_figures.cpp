// SPDX-License-Identifier: Apache-2.0
#include "engine/results/stored_figures.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/foreign_files.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_sum.h"
#include "engine/files/json_writer.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/words.h"
#include "engine/moments/layer_estimates.h"
#include "engine/moments/measures.h"
#include "engine/results/condition_record.h"
#include "engine/results/results_id.h"
#include "engine/results/results_netcdf.h"

namespace headlab {

/// Throws NetcdfError and JsonMismatch; StoredResults makes them one line.
class StoredResults::Source {
 public:
  virtual ~Source() = default;
  virtual std::size_t size() const = 0;
  virtual std::string parameters(std::size_t i) const = 0;
  virtual StoredFigures figures(std::size_t i) const = 0;
  virtual bool has_nodes() const { return false; }
  virtual StoredCondition nodes(std::size_t) const { return {}; }

  std::vector<std::pair<std::string, std::string>> origin;
  bool complete = false;
};

namespace {

namespace fs = std::filesystem;
constexpr std::size_t max_summary_bytes = std::size_t{1} << 33;

/// Terms of the shape of a condition, without numbers.
/// \param parameters  its scenario
ErrorTerms<Estimate> empty_terms(const Value& parameters, std::size_t queries, std::size_t heads,
                                 bool pairwise) {
  ErrorTerms<Estimate> terms;
  for (const auto& measure : read_measures(parameters)) terms.measures.push_back({.of = measure});
  terms.queries.resize(queries);
  for (QueryErrorTerms<Estimate>& query : terms.queries) {
    query.head_bias.resize(heads);
    if (pairwise) query.head_covariance.resize(heads * heads);
  }
  return terms;
}

std::string layer_figure(std::size_t layer, const std::string& metric) {
  return "layers[" + std::to_string(layer) + "]." + metric;
}

class NetcdfSource : public StoredResults::Source {
 public:
  explicit NetcdfSource(const std::string& path) : file_(path), root_(file_.root()) {
    if (!root_.has_attribute("results_id")) throw NetcdfError("no results_id");
    const std::int64_t version = root_.integer_attribute("format_version");
    if (!has_layout_of_today(version)) {
      throw NetcdfError("format version " + std::to_string(version) + ", this headlab compares " +
                        std::to_string(results_format_version));
    }
    for (const char* name :
         {"headlab_version", "git", "compiler", "build_type", "backend", "simd", "device"}) {
      origin.emplace_back(name, root_.text_attribute(name));
    }
    complete = root_.integer_attribute("complete") != 0;
    size_ = root_.dimension("condition");
    if (size_ == 0) return;
    parameters_ = texts("parameters");
    plan_sums_ = texts("plan_sha256");
    node_sums_ = texts("nodes_sha256");
    moments_ = texts("moments");
    if (root_.has_variable("redraw")) redraws_ = texts("redraw");
    for (const std::string& name : root_.variables()) {
      constexpr std::string_view prefix = "index_";
      const std::string index = name.substr(std::min(name.size(), prefix.size()));
      const bool exact = !root_.has_variable(name + "_mcse");
      if (name.starts_with(prefix) && exact && root_.has_variable(name + "_ceiling")) {
        exact_indices_.push_back(index);
      }
    }
    for (const ResultsBlock& block : results_blocks(root_)) {
      for (std::size_t row = 0; row < block.conditions.size(); ++row) {
        places_[block.conditions[row]] = {block.group, row};
      }
    }
    if (!root_.has_attribute(no_nodes_attribute)) reader_.emplace(root_);
  }

  std::size_t size() const override { return size_; }
  std::string parameters(std::size_t i) const override { return parameters_.at(i); }
  bool has_nodes() const override { return reader_.has_value(); }
  StoredCondition nodes(std::size_t i) const override { return reader_->read(i); }

  StoredFigures figures(std::size_t i) const override {
    const auto found = places_.find(i);
    if (found == places_.end()) throw NetcdfError(numbered_condition(i) + " is missing");
    const auto& [group, row] = found->second;
    if (group.has_dimension("layer")) return figures_of_layers(i, group, row);
    const std::size_t queries = group.dimension("query");
    const std::size_t heads = group.dimension("head");
    const bool pairwise = moments_[i] == name_of(MomentMode::pairwise);
    const auto array = [&, of_group = group, at = row](const std::string& name,
                                                       std::vector<std::size_t> lengths) {
      std::vector<std::size_t> start(lengths.size() + 1, 0);
      start[0] = at;
      lengths.insert(lengths.begin(), 1);
      return of_group.doubles(name, {start, lengths});
    };
    const auto estimates = [&](const std::string& name, const std::vector<std::size_t>& lengths) {
      const std::vector<double> values = array(name, lengths),
                                errors = array(name + "_mcse", lengths);
      std::vector<Estimate> all(values.size());
      for (std::size_t j = 0; j < all.size(); ++j) all[j] = {values[j], errors[j]};
      return all;
    };
    const std::vector<Estimate> mse = estimates("query_mse", {queries});
    const std::vector<Estimate> bias = estimates("head_bias", {queries, heads});
    std::vector<Estimate> covariance;
    if (pairwise) covariance = estimates("head_covariance", {queries, heads, heads});

    // These lengths are safe to allocate: arrays of this size were just read from the file.
    const Value scenario = parse_json(parameters_[i]).value_or(Value());
    ErrorTerms<Estimate> terms = empty_terms(scenario, queries, heads, pairwise);
    NumberList<Estimate> averages, indices;
    terms.fields(averages);
    terms.index_fields(indices);
    for (const auto& one : averages.all) *one.number = estimate_at(one.name, i);
    for (const auto& one : indices.all)
      *one.number = estimate_at("index_" + std::string(one.name), i);
    for (std::size_t q = 0; q < queries; ++q) {
      QueryErrorTerms<Estimate>& at = terms.queries[q];
      at.mse = mse[q];
      for (std::size_t h = 0; h < heads; ++h) at.head_bias[h] = bias[q * heads + h];
      for (std::size_t c = 0; c < at.head_covariance.size(); ++c) {
        at.head_covariance[c] = covariance[q * heads * heads + c];
      }
    }

    StoredFigures stored{.replicates = count_at("replicates", i),
                         .per_draw = !redraws_.empty() && !redraws_[i].empty(),
                         .plan_sha256 = plan_sums_[i],
                         .nodes_sha256 = reader_ ? node_sums_[i] : "",
                         .truth = array("truth", {queries})};
    const std::uint64_t d = count_at("d", i);
    const std::vector<double> x = array("x", {queries, d});
    for (std::size_t q = 0; q < queries; ++q) {
      const auto from = x.begin() + static_cast<std::ptrdiff_t>(q * d);
      stored.x.emplace_back(from, from + static_cast<std::ptrdiff_t>(d));
    }
    for (const std::string& index : exact_indices_) {
      stored.figures.push_back({.name = "indices." + index,
                                .estimate = Estimate{.value = column("index_" + index).at(i)},
                                .exact = true});
    }
    for_each_number<const Estimate>(
        terms, [&](const std::string& name, int query, const Estimate& estimate) {
          stored.figures.push_back({.name = name, .estimate = estimate, .query = query});
        });
    return stored;
  }

 private:
  StoredFigures figures_of_layers(std::size_t i, const NetcdfGroup& group, std::size_t row) const {
    StoredFigures stored{.replicates = count_at("replicates", i),
                         .plan_sha256 = plan_sums_[i],
                         .nodes_sha256 = reader_ ? node_sums_[i] : ""};
    const std::size_t layers = group.dimension("layer");
    for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
      if (!group.has_variable(metric.name + "_mcse")) continue;
      const auto numbers = [&](const std::string& name) {
        return group.doubles(name, {{row, 0}, {1, layers}});
      };
      const std::vector<double> values = numbers(metric.name);
      const std::vector<double> errors = numbers(metric.name + "_mcse");
      for (std::size_t l = 0; l < layers; ++l) {
        stored.figures.push_back(
            {.name = layer_figure(l, metric.name), .estimate = {values[l], errors[l]}});
      }
    }
    return stored;
  }

  std::vector<std::string> texts(const std::string& name) const {
    std::vector<std::string> all = root_.texts(name);
    if (all.size() != size_) throw NetcdfError(name + ": is of another length");
    return all;
  }

  /// A number of every condition.
  const std::vector<double>& column(const std::string& name) const {
    const auto [at, is_new] = columns_.try_emplace(name);
    if (is_new) at->second = root_.doubles(name);
    if (at->second.size() != size_) throw NetcdfError(name + ": is of another length");
    return at->second;
  }
  std::uint64_t count_at(const std::string& name, std::size_t i) const {
    constexpr double most = 0x1p53;
    const double number = column(name).at(i);
    if (!(number >= 0 && number <= most)) throw NetcdfError(name + ": is not a count");
    return static_cast<std::uint64_t>(number);
  }
  Estimate estimate_at(const std::string& name, std::size_t i) const {
    return {column(name).at(i), column(name + "_mcse").at(i)};
  }

  struct Place {
    NetcdfGroup group;
    std::size_t row = 0;
  };

  NetcdfInput file_;
  NetcdfGroup root_;
  std::size_t size_ = 0;
  std::vector<std::string> parameters_, plan_sums_, node_sums_, moments_, redraws_, exact_indices_;
  std::map<std::size_t, Place> places_;  ///< of a condition in arrays
  std::optional<ResultsReader> reader_;
  mutable std::map<std::string, std::vector<double>> columns_;
};

/// NaN for null.
double number_in(const Value& json) {
  if (!json.number() && !json.is<Value::Null>()) throw JsonMismatch();
  return number_of(json);
}

/// Without elements for null.
const Value::Array& items_in(const Value& json) {
  return json.is<Value::Null>() ? items_of(json) : as<Value::Array>(json);
}

Estimate estimate_in(const Value& json) {
  return {number_in(required(json, "value")), number_in(required(json, "mcse"))};
}

/// The estimate of a figure by its name: an object, or an element of an array with its error at the
/// same place of another one.
Estimate estimate_at(const Value& condition, const std::string& name) {
  const auto at = [&](const std::string& path) -> const Value& {
    const Value* found = value_at(condition, path);
    if (found == nullptr) throw JsonMismatch();
    return *found;
  };
  const std::size_t element = name.find('[', name.rfind('.') + 1);
  if (element == std::string::npos) return estimate_in(at(name));
  return {number_in(at(name)), number_in(at(std::string(name).insert(element, "_mcse")))};
}

std::uint64_t replicates_of(const Value& condition) {
  const std::optional<std::uint64_t> count = count_of(required(condition, "replicates"));
  if (!count) throw NetcdfError("replicates: is not a count");
  return *count;
}

class SummarySource : public StoredResults::Source {
 public:
  explicit SummarySource(const std::string& path) {
    const std::string text = read_file(path, max_summary_bytes);
    const bool has_sum = check_json_sum(path, text);
    json_ = parse_json(text);
    if (!json_) throw NetcdfError("is not JSON" + end_of_json(text));
    const Value& program = required(*json_, "headlab");
    if (json_->find("conditions") == nullptr) {
      throw InvalidInput(path + ": is of another command, not results of headlab run");
    }
    if (!required(*json_, "results_id").is<std::string>()) {
      throw InvalidInput(path + ": has closed forms of headlab theory, not results of headlab run");
    }
    for (const auto& [key, name] : {std::pair("version", "headlab_version"),
                                    std::pair("git", "git"), std::pair("backend", "backend"),
                                    std::pair("simd", "simd"), std::pair("device", "device")}) {
      origin.emplace_back(name, as<std::string>(required(program, key)));
    }
    complete = as<bool>(required(*json_, "complete"));
    if (!required(*json_, "conditions").is<Value::Array>()) {
      throw NetcdfError("conditions: is not an array");
    }
    if (!has_sum) note_without_sums(path);
  }

  std::size_t size() const override { return items_of(member(*json_, "conditions")).size(); }
  std::string parameters(std::size_t i) const override {
    return to_json(required(condition(i), "parameters"));
  }

  StoredFigures figures(std::size_t i) const override {
    const Value& one = condition(i);
    if (one.find("layers") != nullptr) return figures_of_layers(one);
    const auto& queries = items_in(required(one, "queries"));
    const std::size_t heads = items_in(required(one, "head_weights")).size();
    const bool pairwise =
        !queries.empty() && required(queries[0], "head_covariance").is<Value::Array>();
    StoredFigures stored{.replicates = replicates_of(one),
                         .per_draw = one.find("redraw") != nullptr};
    for (const Value& query : queries) {
      std::vector<double>& x = stored.x.emplace_back();
      for (const Value& coordinate : as<Value::Array>(required(query, "x"))) {
        if (!coordinate.number()) throw JsonMismatch();
        x.push_back(number_of(coordinate));
      }
      stored.truth.push_back(number_in(required(query, "truth")));
    }
    for (const auto& [name, location, index] : members_of(required(one, "indices"))) {
      if (index.find("mcse") != nullptr) continue;
      stored.figures.push_back({.name = "indices." + name,
                                .estimate = Estimate{.value = number_in(required(index, "value"))},
                                .exact = true});
    }
    const ErrorTerms<Estimate> terms =
        empty_terms(required(one, "parameters"), queries.size(), heads, pairwise);
    for_each_number<const Estimate>(terms, [&](const std::string& name, int query,
                                               const Estimate&) {
      stored.figures.push_back({.name = name, .estimate = estimate_at(one, name), .query = query});
    });
    return stored;
  }

 private:
  static StoredFigures figures_of_layers(const Value& one) {
    StoredFigures stored{.replicates = replicates_of(one)};
    const auto& layers = items_in(required(one, "layers"));
    for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const Value& at = member(layers[l], metric.name);
        if (!at.is<Value::Members>()) continue;
        stored.figures.push_back(
            {.name = layer_figure(l, metric.name), .estimate = estimate_in(at)});
      }
    }
    return stored;
  }

  const Value& condition(std::size_t i) const { return required(member(*json_, "conditions"), i); }

  std::optional<Value> json_;
};

/// Returns act(), with what is wrong in a file as one line.
template <class Act>
auto of_file(const std::string& path, const Act& act) {
  try {
    return act();
  } catch (const NetcdfError& error) {
    throw InvalidInput(one_line(path) + ": no results of headlab run (" + one_line(error.what()) +
                       ")");
  } catch (const JsonMismatch&) {
    throw InvalidInput(one_line(path) + ": no results of headlab run, or damaged");
  }
}

/// The file to read: of a folder results.nc, or summary.json where that is missing.
std::string file_of(const std::string& place) {
  std::error_code none;
  if (!fs::is_directory(place, none)) {
    if (!fs::exists(place, none))
      throw InvalidInput(one_line(place) + ": there is no such file or folder");
    if (!fs::is_regular_file(place, none)) {
      throw InvalidInput(one_line(place) + ": is not a regular file");
    }
    return place;
  }
  const std::string netcdf = (fs::path(place) / "results.nc").string();
  const std::string summary = (fs::path(place) / "summary.json").string();
  if (!fs::exists(netcdf, none)) {
    if (fs::exists(summary, none)) return summary;
    throw InvalidInput(one_line(place) +
                       ": has no results of headlab run (results.nc or summary.json)");
  }
  const auto id_in_netcdf = [&] { return results_id_of_netcdf(netcdf); };
  if (fs::exists(summary, none) &&
      results_id_of_summary(summary) != of_file(netcdf, id_in_netcdf)) {
    throw InvalidInput(one_line(place) +
                       ": results.nc and summary.json are of different states of a run "
                       "(results_id) - name one of the files, or resume the run");
  }
  return netcdf;
}

bool is_json(const std::string& path) {
  const std::string text = first_bytes(path, 64);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

}  // namespace

StoredResults::StoredResults(const std::string& place) : path_(file_of(place)) {
  source_ = of_file(path_, [&]() -> std::unique_ptr<Source> {
    if (is_json(path_)) return std::make_unique<SummarySource>(path_);
    return std::make_unique<NetcdfSource>(path_);
  });
}

StoredResults::~StoredResults() = default;

const std::vector<std::pair<std::string, std::string>>& StoredResults::origin() const {
  return source_->origin;
}
bool StoredResults::complete() const {
  return source_->complete;
}
std::size_t StoredResults::size() const {
  return source_->size();
}
bool StoredResults::has_nodes() const {
  return source_->has_nodes();
}
std::string StoredResults::parameters(std::size_t i) const {
  return of_file(path_, [&] { return source_->parameters(i); });
}
StoredFigures StoredResults::figures(std::size_t i) const {
  return of_file(path_, [&] { return source_->figures(i); });
}
StoredCondition StoredResults::nodes(std::size_t i) const {
  return of_file(path_, [&] { return source_->nodes(i); });
}

}  // namespace headlab
