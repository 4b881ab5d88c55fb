// SPDX-License-Identifier: Apache-2.0
#include "engine/files/table_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"
#include "engine/files/input_file.h"
#include "engine/files/npy_file.h"
#include "kernels/counted.h"

namespace headlab {

namespace {

constexpr const char* missing_advice = " - a missing value: leave out the rows that have one";
constexpr std::size_t max_table_bytes = std::size_t{4} << 30;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The number that makes up all of `cell`; infinite where it is beyond float64, 0 where it is
/// below.
std::optional<double> number_of(std::string_view cell) {
  if (cell.size() > 1 && cell[0] == '+' && cell[1] != '-') cell.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (end != cell.data() + cell.size() || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) {
    const auto digits = cell.substr(cell.front() == '-' ? 1 : 0);
    const auto exponent = digits.find_first_of("eE");
    const bool is_small =
        exponent == std::string_view::npos ? digits.starts_with("0.") : digits[exponent + 1] == '-';
    return is_small ? 0.0 : HUGE_VAL;
  }
  return number;
}

/// Whether a cell says that there is no value, as R and pandas write it.
bool is_missing(std::string_view cell) {
  constexpr std::string_view words[] = {"NA",   "N/A",  "<NA>", "NaN", "nan",
                                        "NULL", "null", "None", "?",   "."};
  return std::ranges::find(words, cell) != std::end(words);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const auto comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

/// A number without point and exponent, as programs write the numbers of columns.
bool is_whole(std::string_view cell) {
  return number_of(cell) && cell.find_first_of(".eE") == std::string_view::npos;
}

/// Whether the numbers rise by equal steps: two of them, by 1. Each is a decimal number rounded,
/// and so is the first step, whose error grows with their count.
bool counts_on(const double* numbers, std::size_t count) {
  if (count < 2) return false;
  const double step = numbers[1] - numbers[0];
  if (count == 2 ? step != 1 : step <= 0) return false;
  constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
  for (std::size_t i = 2; i < count; ++i) {
    const double steps = static_cast<double>(i), expected = numbers[0] + steps * step;
    const double size =
        std::abs(numbers[i]) + steps * (std::abs(numbers[0]) + std::abs(numbers[1]));
    if (std::abs(numbers[i] - expected) > rounding * size) return false;
  }
  return true;
}

/// Whether programs write this over a column of the names of rows: pandas, R, and pandas again.
bool may_name_rows(std::string_view cell) {
  return cell.empty() || cell == "\"\"" || cell == "Unnamed: 0";
}

/// Reads one line of a CSV file at a time.
class CsvReader {
 public:
  /// \param most numbers that the file may have
  CsvReader(const std::string& source, std::size_t most, std::optional<bool> header)
      : source_(source), header_(header) {
    table_.csv = true;
    table_.exact.reserve(most);
  }

  void add(std::string_view line) {
    ++line_;
    if (trimmed(line).empty()) {
      if (blank_ == 0) blank_ = line_;
      return;
    }
    if (blank_ != 0) fail(blank_, "is blank");
    const auto cells = cells_of(line);
    if (line_ == 1 && !header_ && cells.size() > 1 && may_name_rows(cells[0])) {
      const std::vector<std::string_view> others(cells.begin() + 1, cells.end());
      if (is_header(others) || std::ranges::all_of(others, is_whole)) {
        fail(1, "cell 1 is " + (cells[0].empty() ? "empty" : std::string(cells[0])) +
                    ": the first column may be the names of rows - write the table without them "
                    "(pandas: index=False)");
      }
    }
    if (line_ == 1 && header_.value_or(is_header(cells))) {
      for (const auto& cell : cells) table_.column_names.push_back(name_of(cell));
      return;
    }
    if (line_ == 1) {
      if (!header_) require_names(cells);
      const bool whole = !header_ && std::ranges::all_of(cells, is_whole);
      may_be_name_.assign(whole ? cells.size() : 0, 1);
    } else {
      for (std::size_t j = 0; j < may_be_name_.size() && j < cells.size(); ++j) {
        if (is_whole(cells[j])) may_be_name_[j] = 0;
      }
    }
    for (std::size_t i = 0; i < cells.size(); ++i) table_.exact.push_back(read(cells[i], i + 1));
    const std::size_t wanted = table_.rows == 0 ? table_.column_names.size() : table_.columns;
    if (wanted != 0 && cells.size() != wanted) {
      fail(line_, "has " + counted(cells.size(), "cell") + ", the lines before have " +
                      std::to_string(wanted) +
                      (cells.size() == 2 * wanted ? " - numbers have decimal points" : ""));
    }
    table_.columns = cells.size();
    ++table_.rows;
  }

  DataTable finish() {
    if (table_.rows == 0) reject({source_}, "", "has no rows of numbers");
    if (first_line_may_be_names()) {
      fail(1,
           "has numbers that may be the names of columns - say by header = true or header = false "
           "whether they are");
    }
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& problem) const {
    reject({source_ + ":" + std::to_string(line)}, "", problem);
  }

  /// Whether the first line is of another kind than all others: whole numbers over a column that
  /// has none, or numbers that count on, with a point or without, over rows that do not.
  bool first_line_may_be_names() const {
    if (header_ || !table_.column_names.empty()) return false;
    if (table_.rows < 3) return false;  // one row says little
    if (std::ranges::find(may_be_name_, 1) != may_be_name_.end()) return true;
    const std::size_t columns = table_.columns;
    // As programs number columns, from 0, or as years.
    const double first = table_.exact[0];
    const bool begins_names = first == 0 || (first >= 1000 && first < 3000);
    if (!begins_names || !counts_on(table_.exact.data(), columns)) return false;
    for (std::size_t i = 1; i < table_.rows; ++i) {
      if (counts_on(&table_.exact[i * columns], columns)) return false;
    }
    return true;
  }

  /// Refuses a first line of column names of which one is empty; it is read as numbers otherwise.
  void require_names(const std::vector<std::string_view>& cells) const {
    const auto empty = std::ranges::find(cells, "");
    if (empty == cells.end() ||
        std::ranges::any_of(cells, [](auto cell) { return number_of(cell).has_value(); }) ||
        std::ranges::all_of(cells, &std::string_view::empty)) {
      return;
    }
    fail(1,
         "cell " + std::to_string(empty - cells.begin() + 1) + " is empty: a column has no name");
  }

  static bool is_header(const std::vector<std::string_view>& cells) {
    for (const auto& cell : cells) {
      if (cell.empty() || number_of(cell)) return false;
    }
    return true;
  }

  std::string name_of(std::string_view cell) const {
    if (!cell.starts_with('"')) return std::string(cell);
    if (cell.size() < 2 || cell.back() != '"')
      fail(line_, "has a comma or an open quote in a name");
    return std::string(cell.substr(1, cell.size() - 2));
  }

  double read(std::string_view cell, std::size_t number) const {
    const std::string where = "cell " + std::to_string(number) + " ";
    if (cell.empty()) fail(line_, where + "is empty");
    const auto value = number_of(cell);
    if (!value) {
      const bool apart = cell.find_first_of(";\t ") != std::string_view::npos;
      const bool below_names = line_ == 2 && !table_.column_names.empty();
      fail(line_, where + "is not a number: \"" + one_line(std::string(cell), 40) + "\"" +
                      (is_missing(cell)      ? missing_advice
                       : apart               ? " - commas separate cells, and decimals have points"
                       : cell.front() == '"' ? " - numbers stand without quotes"
                       : below_names         ? " - line 1 is taken for the names of columns"
                                             : ""));
    }
    if (!std::isfinite(*value)) {
      fail(line_, where + "is not finite: " + one_line(std::string(cell), 40) +
                      (is_missing(cell) ? missing_advice : ""));
    }
    return *value;
  }

  const std::string& source_;
  const std::optional<bool> header_;
  /// Columns where only the first line has a whole number; empty where that has others.
  std::vector<char> may_be_name_ = {};
  DataTable table_;
  std::size_t line_ = 0;
  std::size_t blank_ = 0;  ///< number of the first blank line: only the last may be
};

DataTable table_of(NpyRows&& rows) {
  return {.rows = rows.rows,
          .columns = rows.columns,
          .single = std::move(rows.single),
          .exact = std::move(rows.exact)};
}

/// Reads an NPY file, none for other files.
std::optional<DataTable> read_npy_file(const std::string& path) {
  constexpr std::size_t start = 6;
  if (!is_npy(first_bytes(path, start))) return {};
  InputFile file(path);
  if (file.size() > max_table_bytes) return {};
  return table_of(read_npy_rows(
      [&](char* to, std::size_t count) {
        if (file.read(to, count) != count) reject({path}, "", "became shorter while it was read");
      },
      file.size(), path));
}

}  // namespace

std::string DataTable::text() const {
  const std::string all = counted(rows, "row") + " of " + counted(columns, "column");
  if (column_names.empty()) return all + (csv ? ", no header" : "");
  constexpr std::size_t shown = 120;
  std::string names;
  for (const std::string& name : column_names) {
    if (names.size() > shown) break;
    names += (names.empty() ? " " : ", ") + name;
  }
  return all + one_line(names, shown) + ", header";
}

DataTable parse_csv(const std::string& text, const std::string& source,
                    std::optional<bool> header) {
  const auto ends = std::ranges::count_if(text, [](char c) { return c == ',' || c == '\n'; });
  const std::size_t most = static_cast<std::size_t>(ends) + (text.ends_with('\n') ? 0 : 1);
  require_file_memory(source, most, sizeof(double));
  std::string_view left = text;
  if (left.starts_with("PK\x03\x04")) reject({source}, "", "is compressed - unpack it first");
  if (left.find('\n') == std::string_view::npos && left.find('\r') != std::string_view::npos) {
    reject({source}, "", "has lines that end by carriage returns alone - save it with line feeds");
  }
  if (left.find('\0') != std::string_view::npos) {
    reject({source}, "", "is not text in UTF-8 - save the table as CSV, or as NPY");
  }
  if (left.starts_with("\xef\xbb\xbf")) left.remove_prefix(3);
  CsvReader reader(source, most, header);
  while (!left.empty()) {
    const auto end = std::min(left.find('\n'), left.size());
    auto line = left.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    reader.add(line);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return reader.finish();
}

DataTable parse_npy(const std::string& bytes, const std::string& source) {
  std::size_t at = 0;
  return table_of(read_npy_rows(
      [&](char* to, std::size_t size) {
        bytes.copy(to, size, at);
        at += size;
      },
      bytes.size(), source));
}

namespace {

struct TablesRead {
  std::mutex mutex;
  std::map<std::string, TableRead> tables;
};

TablesRead& all_read() {
  static TablesRead all;
  return all;
}

/// Remembers a table that `text` bytes were read for.
DataTable remembered(const std::string& path, DataTable table, std::size_t text) {
  const std::uint64_t bytes =
      table.single.size() * sizeof(float) + table.exact.size() * sizeof(double) + text;
  const std::lock_guard lock(all_read().mutex);
  all_read().tables.insert_or_assign(path, TableRead{table.text(), bytes});
  return table;
}

}  // namespace

DataTable read_table(const std::string& path, std::optional<bool> header) {
  const auto without_header = [&](DataTable table, std::size_t text) {
    if (header.value_or(false)) reject({path}, "", "is NPY, which has no header");
    return remembered(path, std::move(table), text);
  };
  if (std::optional<DataTable> table = read_npy_file(path)) {
    return without_header(std::move(*table), 0);
  }
  const std::string content = read_file(path, max_table_bytes);
  if (is_npy(content) || path.ends_with(".npy")) {
    return without_header(parse_npy(content, path), content.size());
  }
  return remembered(path, parse_csv(content, path, header), content.size());
}

std::optional<TableRead> table_read(const std::string& path) {
  const std::lock_guard lock(all_read().mutex);
  const auto found = all_read().tables.find(path);
  return found == all_read().tables.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> tables_read(const std::vector<std::string>& paths) {
  std::vector<std::string> lines;
  for (const std::string& path : paths) {
    if (const auto read = table_read(path)) lines.push_back(path + ": " + read->text);
  }
  return lines;
}

}  // namespace headlab
