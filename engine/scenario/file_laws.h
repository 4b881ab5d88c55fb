// SPDX-License-Identifier: Apache-2.0
/// \file Fills the laws whose numbers stand in a data file.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/files/table_file.h"
#include "engine/scenario/data_arrays.h"
#include "engine/scenario/design_rounding.h"
#include "engine/scenario/law/subspaces/file.h"
#include "engine/scenario/table_form.h"
#include "kernels/law/regression/file.h"

namespace headlab {

/// Data files read so far: the conditions of a sweep share what they hold.
class DataFiles {
 public:
  /// Relative paths are relative to `directory`; a path among `arrays` is that array.
  explicit DataFiles(std::string directory, DataArrays arrays = {})
      : directory_(std::move(directory)), arrays_(std::move(arrays)) {}

  /// The table in a file, which a later call may take away. Throws InvalidInput as read_table().
  DataTable& at(const std::string& path, const TableForm& form = {});

  /// Fills `rows` with the columns asked for, or with all but `regression_column`; standardised to
  /// mean 0 and variance 1 (of the population, divided by N) where the law says so, constant
  /// columns to 0. Equal requests share their rows. Throws ParameterError, and InvalidInput as
  /// at().
  void fill(FileDesign& design, std::optional<int> regression_column, const TableForm& form = {});

  /// Fills `values` with the column as it stands in the file at `path`. Throws ParameterError, and
  /// InvalidInput as at().
  void fill(FileRegression& regression, const std::string& path, const TableForm& form = {});

  /// spreads_of() a design; of one of law `file`, once for all conditions with its rows.
  std::vector<DesignSpread> spreads(const DesignLaw& design);

  /// H matrices of a file of heads; with `query_key` those of W_K = Q R and W_Q R^T, which have the
  /// logits of W_K and W_Q. Throws InvalidInput as read_head_layer().
  const SharedHeads& heads(const std::string& path, std::optional<int> layer, bool query_key);

  /// All files that were read.
  std::vector<std::string> paths() const;

 private:
  std::string full(const std::string& path) const;

  std::string directory_;
  DataArrays arrays_;
  using Header = std::optional<bool>;
  std::optional<DataTable> table_;  ///< read last
  std::pair<std::string, Header> table_form_;
  std::set<std::string> table_paths_;
  std::map<std::tuple<std::string, std::vector<double>, bool, std::optional<int>, Header>, FileRows>
      rows_;
  std::map<const float*, std::vector<DesignSpread>> spreads_;  ///< by the numbers of rows_
  std::map<std::tuple<std::string, int, Header>, Table> values_;
  std::map<std::tuple<std::string, std::optional<int>, bool>, SharedHeads> heads_;
};

}  // namespace headlab
