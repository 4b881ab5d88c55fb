// SPDX-License-Identifier: Apache-2.0
/// \file Tables as files for other programs and for papers: CSV, LaTeX, Markdown.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/text_sink.h"
#include "engine/results/computed.h"
#include "engine/results/result.h"
#include "tools/tables/select_table.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

enum class TableFormat { csv, latex, markdown };

/// How numbers with a standard error stand in papers; CSV has all digits of both.
struct TableStyle {
  int digits = 2;           ///< of the standard error
  bool plus_minus = false;  ///< 0.0124 ± 0.0007 in place of 0.0124(7), in LaTeX
};

/// RFC 4180: lines end in CR LF, and numbers read back to the same bits. An error stands in a
/// column behind its figure, `mse_mcse`; what is undefined is empty.
void write_csv(const ShownTable& table, const TextSink& out);
/// A tabular with the rules of booktabs and the S columns of siunitx.
void write_latex(const ShownTable& table, const TableStyle& style, const TextSink& out);
void write_markdown(const ShownTable& table, const TableStyle& style, const TextSink& out);
/// One of these.
void write_table(const ShownTable& table, TableFormat format, const TableStyle& style,
                 const TextSink& out);

/// The text of a number with its error, in parts.
struct NumberText {
  std::string value;  ///< empty where there is none
  std::string units;  ///< the error in units of the last digit, "7" of 0.0124(7); empty: none
  std::string error;  ///< the error to the decimal place of the value, "0.0007"; empty: none
  int exponent = 0;   ///< of both

  /// "0.0124(7)", "1.2(3)e-9"
  std::string compact() const;
};

/// A standard error to so many digits and its value to match; six digits of a value without one,
/// ten of one whose error is rounding.
NumberText number_in_table(const Estimate& number, const std::string& error, int digits);

/// The text of a cell in a table for a person: "0.0124(7)", "0.123457 (<1.2e-03)", "–".
std::string cell_text(const ShownColumn& column, const Cell& cell, int digits);

/// The format that the ending of a file says, where it says one.
std::optional<TableFormat> format_of_ending(const std::string& path);

/// The format of a file by its ending: .csv, .tex or .md. Throws InvalidInput, naming `option`.
TableFormat format_of_file(const std::string& option, const std::string& path);

/// Throws InvalidInput, naming `option`, where no table can be written at `path`: it has no ending
/// of a format, is one of `inputs`, or cannot be written.
void require_table_writable(const std::string& option, const std::string& path,
                            const std::vector<std::string>& inputs = {});

/// The table of a file of --table, by the ending of its name.
std::string table_text(const std::string& path, std::unique_ptr<TableSource> source);

/// The table of a document that has just been made; null as of table_of_document().
std::unique_ptr<TableSource> table_of_text(const std::string& json,
                                           TableOf of = TableOf::conditions);

/// The table of a run in memory; the same as of the results.nc that it writes.
std::unique_ptr<TableSource> table_of_run(const Scenario& scenario, const RunResult& result,
                                          const std::vector<ConditionIndices>& indices,
                                          TableOf of = TableOf::conditions);

}  // namespace headlab::tools
