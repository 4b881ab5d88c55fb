// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/file_laws.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/head_file.h"
#include "engine/scenario/law/subspaces/explicit.h"
#include "kernels/decompositions.h"

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
  if (!(column < static_cast<double>(table.columns()))) {
    throw ParameterError(key, "names column " + number_text(column) +
                                  ", the file has columns 0 to " +
                                  std::to_string(table.columns() - 1));
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
    for (std::size_t column = 0; column < table.columns(); ++column) {
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

void standardise(std::vector<std::vector<double>>& rows, std::size_t column) {
  double largest = 0;
  bool constant = true;
  for (const auto& row : rows) {
    largest = std::max(largest, std::abs(row[column]));
    constant = constant && row[column] == rows[0][column];
  }
  if (constant) {
    for (auto& row : rows) row[column] = 0;
    return;
  }
  // Scaled by a power of two first, which is exact, so that no square leaves float64; centred
  // twice, because the mean of nearly equal numbers is rounded.
  const int exponent = std::ilogb(largest);
  const auto count = static_cast<double>(rows.size());
  for (auto& row : rows) row[column] = std::scalbn(row[column], -exponent);
  for (int pass = 0; pass < 2; ++pass) {
    double mean = 0;
    for (const auto& row : rows) mean += row[column] / count;
    for (auto& row : rows) row[column] -= mean;
  }
  double variance = 0;
  for (const auto& row : rows) variance += row[column] * row[column] / count;
  for (auto& row : rows) row[column] /= std::sqrt(variance);
}

void require_size(const std::string& key, double number, std::size_t row, const char* advice) {
  if (!(std::abs(number) <= largest_number)) {
    throw ParameterError(key, "file has " + number_text(number) + " in row " + std::to_string(row) +
                                  ", must be in [-1000000, 1000000]" + advice);
  }
}

}  // namespace

const DataTable& DataFiles::at(const std::string& path) {
  const auto found = tables_.find(path);
  if (found != tables_.end()) return found->second;
  return tables_.emplace(path, read_table(full(path))).first->second;
}

const SharedHeads& DataFiles::heads(const std::string& path, std::optional<int> layer,
                                    bool query_key) {
  const auto key = std::tuple(path, layer, query_key);
  const auto found = heads_.find(key);
  if (found != heads_.end()) return found->second;
  const HeadLayer read = read_head_layer(full(path), layer, query_key);
  auto law = std::make_shared<ExplicitSubspaces>();
  if (query_key) {
    use_query_key(read, full(path), *law);
  } else {
    law->matrices = rows_of(read.subspaces);
  }
  return heads_.emplace(key, std::move(law)).first->second;
}

std::vector<std::string> DataFiles::paths() const {
  std::set<std::string> paths;
  for (const auto& [path, table] : tables_) paths.insert(full(path));
  for (const auto& [key, heads] : heads_) paths.insert(full(std::get<0>(key)));
  return {paths.begin(), paths.end()};
}

std::string DataFiles::full(const std::string& path) const {
  return (std::filesystem::path(directory_) / path).lexically_normal().string();
}

void fill_design(FileDesign& design, const DataTable& table, std::optional<int> regression_column) {
  if (table.rows.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw ParameterError("path", "file has too many rows (allowed: below 2^32)");
  }
  const auto chosen = chosen_columns(design, table, regression_column);
  design.rows.clear();
  design.rows.reserve(table.rows.size());
  for (const auto& row : table.rows) {
    auto& point = design.rows.emplace_back();
    for (const std::size_t column : chosen) point.push_back(row[column]);
  }
  if (design.standardise) {
    for (std::size_t j = 0; j < chosen.size(); ++j) standardise(design.rows, j);
  }
  for (std::size_t i = 0; i < design.rows.size(); ++i) {
    for (const double number : design.rows[i]) {
      require_size("path", number, i, " - try standardise = true");
    }
  }
}

void fill_regression(FileRegression& regression, const DataTable& table) {
  const std::size_t column = checked_column("column", regression.column, table);
  regression.values.clear();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    regression.values.push_back(table.rows[i][column]);
    require_size("column", regression.values.back(), i, "");
  }
}

}  // namespace headlab
