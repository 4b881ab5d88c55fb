// SPDX-License-Identifier: Apache-2.0
/// \file Results as columns: what names a row, and the figures of every row.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/netcdf/file.h"

namespace headlab::tools {

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// A cell a row: numbers, NaN where there is none, or texts.
using Cells = std::variant<std::vector<double>, std::vector<std::string>>;

/// Cells as texts, empty where there is no number.
std::vector<std::string> texts_of(const Cells& cells);

struct TableColumn {
  std::string name;
  Cells cells = {};
  std::string key = {};             ///< of a swept key the whole of it, "heads.kernel.bandwidth"
  bool whole = false;               ///< numbers of a kind that is always whole
  std::string error = {};           ///< what `errors` are: "mcse" or "remainder"; empty: none
  std::vector<double> errors = {};  ///< of the cells, where `error` names them
  /// Of standard errors, NaN where unknown; null: of none known.
  std::shared_ptr<const std::vector<double>> degrees_of_freedom = {};

  bool is_text() const { return std::holds_alternative<std::vector<std::string>>(cells); }
};

/// What the rows are.
enum class TableOf { conditions, heads, queries, pairs, growth };

/// The word of --of, "heads"; of conditions empty.
const char* name_of(TableOf of);

/// Results with a row a condition, layer, verdict, ... or a row a head, query or pair of heads.
class TableSource {
 public:
  virtual ~TableSource() = default;

  /// A figure, or a standard error by its own name. Throws InvalidInput where there is none; ask
  /// has() first.
  virtual TableColumn figure(const std::string& name) const = 0;
  virtual bool has(const std::string& name) const = 0;

  std::size_t rows = 0;
  std::vector<std::size_t> conditions = {};  ///< of each row, from 0; empty where there are none
  std::vector<TableColumn> keys = {};        ///< what names a row
  std::vector<std::string> figures = {};     ///< names of all, without standard errors
  std::vector<std::string> shown = {};       ///< those that the command shows on a terminal
};

/// All results of some folders of --out and files of --json, one below the other. The columns of a
/// results.nc stand for the summary.json beside it. Throws InvalidInput.
std::unique_ptr<TableSource> read_tables(const std::vector<std::string>& paths, TableOf of);

/// The columns of results.nc, read as they are asked for. Throws NetcdfError, and InvalidInput that
/// names `file` where it is not from headlab run.
std::unique_ptr<TableSource> table_of_results(std::shared_ptr<const NetcdfInput> input,
                                              const std::string& file, TableOf of);

/// The columns of a document that headlab wrote with --json or --out. Null where it is of no kind
/// that has a table; throws InvalidInput, naming `file`, where it is damaged or has no such rows.
std::unique_ptr<TableSource> table_of_document(const Value& document, const std::string& file,
                                               TableOf of);

/// Several results one below the other, under a first key `result` with their names.
std::unique_ptr<TableSource> stacked(std::vector<std::unique_ptr<TableSource>> parts,
                                     std::vector<std::string> names);

/// Which of the figures of a run its table on a terminal shows.
/// \param sweep  there are several conditions
/// \param parameters  of the first
/// \param measures  names of those of the scenario
std::vector<std::string> shown_of_run(const TableSource& table, bool sweep, const Value& parameters,
                                      const std::vector<std::string>& measures);

}  // namespace headlab::tools
