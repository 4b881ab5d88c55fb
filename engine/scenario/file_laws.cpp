// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/file_laws.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/models/head_file.h"
#include "engine/files/notes.h"
#include "engine/files/npy_file.h"
#include "engine/files/sha256.h"
#include "engine/scenario/law/subspaces/explicit.h"
#include "kernels/decompositions.h"
#include "kernels/laws.h"

namespace headlab {

namespace {

/// What laws allow for coordinates elsewhere: their squares stay inside float32.
constexpr double largest_number = 1e6;
constexpr std::size_t max_dimensions = 4096;

/// H matrices [d][k] to share.
std::vector<Rows> rows_of(const Matrices& matrices) {
  std::vector<Rows> all;
  for (const Eigen::MatrixXd& w : matrices) {
    Rows& rows = all.emplace_back();
    for (Eigen::Index i = 0; i < w.rows(); ++i) {
      auto& row = rows.emplace_back();
      for (Eigen::Index j = 0; j < w.cols(); ++j) row.push_back(w(i, j));
    }
  }
  return all;
}

void require_finite(const DataArray& array) {
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (std::isfinite(array[i])) continue;
    throw InvalidInput("element " + element_text(array.shape, i) + " is not finite");
  }
}

/// An array of rows, or of one column.
DataTable table_of(const DataArray& array) {
  if (array.shape.empty() || array.shape.size() > 2 || array.size() == 0) {
    throw InvalidInput("has shape " + shape_text(array.shape) + ", needs rows x columns");
  }
  require_finite(array);
  DataTable table{.rows = array.shape[0], .columns = array.shape.size() == 1 ? 1 : array.shape[1]};
  if (array.single) {
    table.single.assign(array.single, array.single + array.size());
  } else {
    table.exact.assign(array.exact, array.exact + array.size());
  }
  return table;
}

/// The matrices of an array H x d x k.
std::vector<Rows> matrices_of(const DataArray& array, std::optional<int> layer, bool query_key) {
  if (array.shape.size() != 3 || array.size() == 0) {
    throw InvalidInput("has shape " + shape_text(array.shape) + ", needs H x d x k");
  }
  if (query_key) {
    throw InvalidInput("has no w_q and w_k - leave out query_key, or import the heads to a file");
  }
  if (layer.value_or(0) != 0) {
    throw InvalidInput("has one layer, of number 0 - leave out layer");
  }
  require_finite(array);
  std::vector<Rows> all(array.shape[0], Rows(array.shape[1]));
  std::size_t next = 0;
  for (Rows& rows : all) {
    for (auto& row : rows) {
      for (std::size_t j = 0; j < array.shape[2]; ++j) row.push_back(array[next++]);
    }
  }
  return all;
}

/// Orthonormal keys, and the queries that have the logits of w_q and w_k with them.
void use_query_key(const HeadLayer& layer, const std::string& path, ExplicitSubspaces& law) {
  if (layer.w_q.empty()) {
    throw InvalidInput(path +
                       ": has no w_q and w_k - leave out query_key, or import the heads again");
  }
  Matrices keys, queries;
  for (std::size_t h = 0; h < layer.w_q.size(); ++h) {
    keys.push_back(signed_qr(layer.w_k[h]).q);
    queries.push_back(layer.w_q[h] * (keys[h].transpose() * layer.w_k[h]).transpose());
  }
  law.matrices = rows_of(keys);
  law.query_matrices = rows_of(queries);
}

std::size_t checked_column(const std::string& key, double column, const DataTable& table) {
  if (column != std::floor(column)) {
    throw ParameterError(key, "has " + number_text(column) + ", needs whole numbers");
  }
  if (!(column < static_cast<double>(table.columns))) {
    throw ParameterError(key, "names column " + number_text(column) +
                                  ", the file has columns 0 to " +
                                  std::to_string(table.columns - 1));
  }
  return static_cast<std::size_t>(column);
}

std::vector<std::size_t> chosen_columns(const FileDesign& design, const DataTable& table,
                                        std::optional<int> regression_column) {
  std::vector<std::size_t> chosen;
  for (const double column : design.columns) {
    chosen.push_back(checked_column("columns", column, table));
    if (std::count(chosen.begin(), chosen.end(), chosen.back()) > 1) {
      throw ParameterError("columns", "names column " + number_text(column) + " twice");
    }
  }
  if (design.columns.empty()) {
    for (std::size_t column = 0; column < table.columns; ++column) {
      if (!regression_column || column != static_cast<std::size_t>(*regression_column)) {
        chosen.push_back(column);
      }
    }
    if (chosen.empty()) throw ParameterError("path", "file has no column except the regression's");
  }
  if (chosen.size() > max_dimensions) {
    throw ParameterError("columns", "are " + std::to_string(chosen.size()) + " (allowed: at most " +
                                        std::to_string(max_dimensions) + ")");
  }
  return chosen;
}

/// A column to mean 0 and variance 1, number by number.
struct Standard {
  int exponent = 0;
  double means[2] = {};
  double sd = 1;
  bool constant = false;

  double operator()(double number) const {
    if (constant) return 0;
    return (std::scalbn(number, -exponent) - means[0] - means[1]) / sd;
  }
};

Standard standard_of(const DataTable& table, std::size_t column) {
  Standard standard{.constant = true};
  std::vector<double> numbers;
  double largest = 0;
  for (std::size_t i = 0; i < table.rows; ++i) {
    numbers.push_back(table.at(i, column));
    largest = std::max(largest, std::abs(numbers.back()));
    standard.constant = standard.constant && numbers.back() == numbers[0];
  }
  if (standard.constant) return standard;
  // Scaled by a power of two first, which is exact, so that no square leaves float64; centred
  // twice, because the mean of nearly equal numbers is rounded.
  standard.exponent = std::ilogb(largest);
  const auto count = static_cast<double>(table.rows);
  for (double& number : numbers) number = std::scalbn(number, -standard.exponent);
  for (double& mean : standard.means) {
    for (const double number : numbers) mean += number / count;
    for (double& number : numbers) number -= mean;
  }
  double variance = 0;
  for (const double number : numbers) variance += number * number / count;
  standard.sd = std::sqrt(variance);
  return standard;
}

void require_size(const std::string& key, double number, std::size_t row, const char* advice) {
  if (!(std::abs(number) <= largest_number)) {
    throw ParameterError(key, "file has " + number_text(number) + " in row " + std::to_string(row) +
                                  ", must be in [-1000000, 1000000]" + advice);
  }
}

/// Mean and standard deviation of numbers that come one at a time, about the first of them, so that
/// nothing cancels.
class Spread {
 public:
  void add(double number) {
    if (count_ == 0) first_ = number;
    const double offset = number - first_;
    const double before = offset - mean_;
    mean_ += before / ++count_;
    squares_ += before * (offset - mean_);
  }
  double mean() const { return first_ + mean_; }
  double sd() const { return std::sqrt(squares_ / count_); }

 private:
  double count_ = 0;
  double first_ = 0;
  double mean_ = 0;  ///< less the first
  double squares_ = 0;
};

/// The columns of `table` that are asked for, in float32; in its own memory where that is float32.
FileRows design_rows(const FileDesign& design, DataTable table,
                     std::optional<int> regression_column) {
  const auto chosen = chosen_columns(design, table, regression_column);
  std::vector<Standard> standards;
  if (design.standardise) {
    for (const std::size_t column : chosen) standards.push_back(standard_of(table, column));
  }
  std::vector<float> numbers = std::move(table.single);
  table.single.clear();
  const bool in_place = !numbers.empty();
  if (!in_place) numbers.resize(table.rows * chosen.size());
  const auto number = [&](std::size_t i) {
    return in_place ? static_cast<double>(numbers[i]) : table.exact[i];
  };
  const auto exact_sum = std::make_shared<Sha256>();
  std::vector<double> row(chosen.size());
  std::vector<Spread> spreads(chosen.size());
  for (std::size_t i = 0; i < table.rows; ++i) {
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      const double x = number(i * table.columns + chosen[j]);
      row[j] = standards.empty() ? x : standards[j](x);
      require_size("path", row[j], i, " - try standardise = true");
      spreads[j].add(row[j]);
    }
    exact_sum->add(std::as_bytes(std::span(row)));
    // In place, what is written lies before what is still to be read.
    for (std::size_t j = 0; j < row.size(); ++j) {
      numbers[i * row.size() + j] = static_cast<float>(row[j]);
    }
  }
  for (std::size_t j = 0; j < chosen.size(); ++j) {
    require_column_precision(chosen[j], spreads[j].mean(), spreads[j].sd());
  }
  numbers.resize(table.rows * chosen.size());
  return {std::move(numbers), chosen.size(), exact_sum};
}

}  // namespace

DataTable& DataFiles::at(const std::string& path, const TableForm& form) {
  if (!table_ || table_form_ != std::pair(path, form.header)) {
    table_.reset();  // before the next is read
    const auto array = arrays_.find(path);
    table_ = array != arrays_.end() ? table_of(array->second) : read_table(full(path), form.header);
    table_form_ = {path, form.header};
    if (array == arrays_.end()) table_paths_.insert(path);
  }
  return *table_;
}

void DataFiles::fill(FileDesign& design, std::optional<int> regression_column,
                     const TableForm& form) {
  if (regression_column && std::ranges::count(design.columns, *regression_column) > 0) {
    note("data.design.columns: has column " + std::to_string(*regression_column) +
         ", which is the regression's own: heads see what they are to tell");
  }
  const auto key =
      std::tuple(design.path, design.columns, design.standardise, regression_column, form.header);
  const auto found = rows_.find(key);
  if (found != rows_.end()) {
    design.rows = found->second;
    return;
  }
  DataTable& table = at(design.path, form);
  if (table.rows > std::numeric_limits<std::uint32_t>::max()) {
    throw ParameterError("path", "file has too many rows (allowed: below 2^32)");
  }
  // Its memory becomes that of the rows; who needs the file for something else reads it again.
  DataTable used = std::move(table);
  table_.reset();
  design.rows = design_rows(design, std::move(used), regression_column);
  rows_.emplace(key, design.rows);
}

std::vector<DesignSpread> DataFiles::spreads(const DesignLaw& design) {
  const auto* file = std::get_if<FileDesign>(&design);
  if (file == nullptr) return spreads_of(design);
  // rows_ holds the numbers as long as this is in use.
  const auto [at, is_new] = spreads_.try_emplace(file->rows.numbers().data());
  if (is_new) at->second = spreads_of(design);
  return at->second;
}

void DataFiles::fill(FileRegression& regression, const std::string& path, const TableForm& form) {
  const auto key = std::tuple(path, regression.column, form.header);
  const auto found = values_.find(key);
  if (found != values_.end()) {
    regression.values = found->second;
    return;
  }
  const DataTable& table = at(path, form);
  const std::size_t column = checked_column("column", regression.column, table);
  std::vector<double> values;
  values.reserve(table.rows);
  for (std::size_t i = 0; i < table.rows; ++i) {
    values.push_back(table.at(i, column));
    require_size("column", values.back(), i, "");
  }
  regression.values = Table(values);
  values_.emplace(key, regression.values);
}

const SharedHeads& DataFiles::heads(const std::string& path, std::optional<int> layer,
                                    bool query_key) {
  const auto key = std::tuple(path, layer, query_key);
  const auto found = heads_.find(key);
  if (found != heads_.end()) return found->second;
  const auto array = arrays_.find(path);
  HeadLayer read;
  if (array == arrays_.end()) read = read_head_layer(full(path), layer, query_key);
  auto law = std::make_shared<ExplicitSubspaces>();
  if (array != arrays_.end()) {
    law->matrices = matrices_of(array->second, layer, query_key);
  } else if (query_key) {
    use_query_key(read, full(path), *law);
  } else {
    law->matrices = rows_of(read.subspaces);
  }
  return heads_.emplace(key, std::move(law)).first->second;
}

std::vector<std::string> DataFiles::paths() const {
  std::set<std::string> paths;
  for (const std::string& path : table_paths_) paths.insert(full(path));
  for (const auto& [key, heads] : heads_) {
    if (!arrays_.contains(std::get<0>(key))) paths.insert(full(std::get<0>(key)));
  }
  return {paths.begin(), paths.end()};
}

std::string DataFiles::full(const std::string& path) const {
  return (std::filesystem::path(directory_) / path).lexically_normal().string();
}

}  // namespace headlab
