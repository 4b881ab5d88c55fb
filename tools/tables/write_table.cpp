// SPDX-License-Identifier: Apache-2.0
#include "tools/tables/write_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/provenance.h"
#include "engine/results/results_netcdf.h"
#include "tools/cli/characters.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"

namespace headlab::tools {
namespace {

constexpr std::pair<const char*, TableFormat> endings[] = {
    {".csv", TableFormat::csv}, {".tex", TableFormat::latex}, {".md", TableFormat::markdown}};

std::string printed(const char* format, int digits, double number) {
  char text[512];
  std::snprintf(text, sizeof text, format, digits, number);
  return text;
}

/// Exponent of the first digit of a number that is rounded to so many.
int exponent_of(double number, int digits) {
  const std::string text = printed("%.*e", digits - 1, number);
  return std::stoi(text.substr(text.find('e') + 1));
}

/// number / 10^exponent, in two steps, because 10^320 is beyond float64.
double scaled(double number, int exponent) {
  const int half = exponent / 2;
  return number / std::pow(10.0, half) / std::pow(10.0, exponent - half);
}

/// A text between commas, in quotes where it has to be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_number(double number) {
  if (std::isnan(number)) return "";
  // The sign of zero is one of its bits.
  return number == 0 && std::signbit(number) ? "-0" : number_text(number);
}

/// A text in LaTeX, where it means nothing but itself.
std::string latex(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '\\') {
      out += "\\textbackslash{}";
    } else if (c == '~') {
      out += "\\textasciitilde{}";
    } else if (c == '^') {
      out += "\\textasciicircum{}";
    } else if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out;
}

/// The number of a key in full, of a figure without error to six digits.
NumberText number_of_cell(const ShownColumn& column, const Estimate& number, int digits) {
  if (column.key && !std::isnan(number.value)) return {.value = number_text(number.value)};
  return number_in_table(number, column.error, digits);
}

/// How many digits the numbers of a column have, for siunitx to align them by.
std::string column_format(const ShownTable& table, const ShownColumn& column, int digits) {
  std::size_t whole = 1, decimals = 0, units = 0, exponent = 0;
  bool sign = false, negative_exponent = false;
  for (std::size_t i = 0; i < table.rows; ++i) {
    const Cell cell = column.cell(i);
    const NumberText text = number_of_cell(column, std::get<Estimate>(cell), digits);
    const std::size_t e = text.value.find('e');
    const std::string value = text.value.substr(0, e);
    int power = text.exponent;
    if (e != std::string::npos) power = std::stoi(text.value.substr(e + 1));
    const bool minus = value.starts_with('-');
    sign = sign || minus;
    const std::size_t point = std::min(value.find('.'), value.size());
    whole = std::max(whole, point - (minus ? 1 : 0));
    decimals = std::max(decimals, value.size() - std::min(point + 1, value.size()));
    units = std::max(units, text.units.size());
    if (power != 0) exponent = std::max(exponent, std::to_string(std::abs(power)).size());
    negative_exponent = negative_exponent || power < 0;
  }
  std::string format = (sign ? "-" : "") + std::to_string(whole) + "." + std::to_string(decimals);
  if (units > 0) format += "(" + std::to_string(units) + ")";
  if (exponent > 0) {
    format += std::string("e") + (negative_exponent ? "-" : "") + std::to_string(exponent);
  }
  return "S[table-format=" + format + "]";
}

bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789.-+e") == std::string::npos && !text.empty();
}

std::string latex_cell(const ShownColumn& column, const Cell& cell, const TableStyle& style) {
  if (const auto* text = std::get_if<std::string>(&cell)) return latex(*text);
  const NumberText number = number_of_cell(column, std::get<Estimate>(cell), style.digits);
  if (number.value.empty()) return "{--}";
  if (!is_number(number.value)) return "{" + latex(number.value) + "}";  // infinite
  if (!style.plus_minus || column.key) return number.compact();
  std::string text = number.value;
  if (!number.error.empty()) text += " \\pm " + number.error;
  if (number.exponent != 0) {
    text = (number.error.empty() ? text : "(" + text + ")") + " \\times 10^{" +
           std::to_string(number.exponent) + "}";
  }
  return "$" + text + "$";
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

}  // namespace

std::string NumberText::compact() const {
  return value + (units.empty() ? "" : "(" + units + ")") +
         (exponent == 0 ? "" : "e" + std::to_string(exponent));
}

NumberText number_in_table(const Estimate& number, const std::string& error, int digits) {
  const double value = number.value;
  if (std::isnan(value)) return {};
  const bool has_error = error == "mcse" && number.mcse > 0 && std::isfinite(number.mcse);
  if (!has_error || !std::isfinite(value)) return {.value = printed("%.*g", 6, value)};
  // A standard error that is rounding alone says nothing about digits.
  if (number.mcse < 1e-9 * std::abs(value)) return {.value = printed("%.*g", 10, value)};
  constexpr int smallest = -4, largest = 7;  // powers of ten that stand without an exponent
  constexpr int max_decimals = 17;           // of float64
  const int last = exponent_of(number.mcse, digits) - (digits - 1);
  const int first = exponent_of(std::fmax(std::abs(value), number.mcse), digits);
  const int exponent = first < smallest || first >= largest || last > 0 ? first : 0;
  const int decimals = std::clamp(exponent - last, 0, max_decimals);
  return {.value = printed("%.*f", decimals, scaled(value, exponent)),
          .units = printed("%.*f", 0, scaled(number.mcse, exponent - decimals)),
          .error = printed("%.*f", decimals, scaled(number.mcse, exponent)),
          .exponent = exponent};
}

std::string cell_text(const ShownColumn& column, const Cell& cell, int digits) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const Estimate& number = std::get<Estimate>(cell);
  if (column.error == "remainder") return computed_text({number.value, number.mcse});
  const NumberText text = number_of_cell(column, number, digits);
  return text.value.empty() ? "–" : text.compact();
}

void write_csv(const ShownTable& table, const TextSink& out) {
  std::string line;
  for (const ShownColumn& column : table.columns) {
    line += (line.empty() ? "" : ",") + csv_field(column.name);
    if (!column.error.empty()) line += "," + csv_field(column.name + "_" + column.error);
  }
  out(line + "\r\n");
  for (std::size_t i = 0; i < table.rows; ++i) {
    line.clear();
    for (const ShownColumn& column : table.columns) {
      if (&column != &table.columns.front()) line += ',';
      const Cell cell = column.cell(i);
      if (const auto* text = std::get_if<std::string>(&cell)) {
        line += csv_field(*text);
        continue;
      }
      const Estimate& number = std::get<Estimate>(cell);
      line += csv_number(number.value);
      if (!column.error.empty()) line += "," + csv_number(number.mcse);
    }
    out(line + "\r\n");
  }
}

void write_latex(const ShownTable& table, const TableStyle& style, const TextSink& out) {
  out("% \\usepackage{booktabs, siunitx}\n\\begin{tabular}{");
  for (const ShownColumn& column : table.columns) {
    const bool plain = column.text || (style.plus_minus && !column.key);
    out((&column == &table.columns.front() ? "" : " ") +
        (column.text ? std::string("l")
         : plain     ? std::string("r")
                     : column_format(table, column, style.digits)));
  }
  out("}\n\\toprule\n");
  for (const ShownColumn& column : table.columns) {
    out((&column == &table.columns.front() ? "{" : " & {") + latex(column.name) + "}");
  }
  out(" \\\\\n\\midrule\n");
  for (std::size_t i = 0; i < table.rows; ++i) {
    for (const ShownColumn& column : table.columns) {
      out((&column == &table.columns.front() ? "" : " & ") +
          latex_cell(column, column.cell(i), style));
    }
    out(" \\\\\n");
  }
  out("\\bottomrule\n\\end{tabular}\n");
}

void write_markdown(const ShownTable& table, const TableStyle& style, const TextSink& out) {
  std::vector<std::string> names, rules;
  for (const ShownColumn& column : table.columns) {
    names.push_back(markdown_text(column.name));
    rules.emplace_back(column.text ? "---" : "--:");
  }
  out(markdown_row(names) + markdown_row(rules));
  for (std::size_t i = 0; i < table.rows; ++i) {
    std::vector<std::string> cells;
    for (const ShownColumn& column : table.columns) {
      cells.push_back(markdown_text(cell_text(column, column.cell(i), style.digits)));
    }
    out(markdown_row(cells));
  }
}

void write_table(const ShownTable& table, TableFormat format, const TableStyle& style,
                 const TextSink& out) {
  switch (format) {
    case TableFormat::csv:
      return write_csv(table, out);
    case TableFormat::latex:
      return write_latex(table, style, out);
    case TableFormat::markdown:
      return write_markdown(table, style, out);
  }
}

std::optional<TableFormat> format_of_ending(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  for (const auto& [known, format] : endings) {
    if (ending == known) return format;
  }
  return std::nullopt;
}

TableFormat format_of_file(const std::string& option, const std::string& path) {
  if (const auto format = format_of_ending(path)) return *format;
  if (path.empty()) throw InvalidInput(option + ": is empty - give a file, as table.csv");
  throw InvalidInput(option + ": " + one_line(path) +
                     ": its name does not say the format - end it in .csv, .tex or .md");
}

void require_table_writable(const std::string& option, const std::string& path,
                            const std::vector<std::string>& inputs) {
  format_of_file(option, path);
  require_no_input(option, path, inputs);
  require_writable(option, path);
}

std::string table_text(const std::string& path, std::unique_ptr<TableSource> source) {
  std::string text;
  const ShownTable table = select_table(std::move(source), {});
  write_table(table, format_of_file("--table", path), {},
              [&](std::string_view part) { text += part; });
  return text;
}

std::unique_ptr<TableSource> table_of_text(const std::string& json, TableOf of) {
  const std::optional<Value> document = parse_json(json, MemberOrder::of_file);
  return document ? table_of_document(*document, "the results", of) : nullptr;
}

std::unique_ptr<TableSource> table_of_run(const Scenario& scenario, const RunResult& result,
                                          const std::vector<ConditionIndices>& indices,
                                          TableOf of) {
  /// A file in memory with its bytes.
  struct Held {
    explicit Held(NetcdfBytes from) : bytes(std::move(from)), input(bytes) {}
    NetcdfBytes bytes;
    NetcdfInput input;
  };
  NetcdfImage image;
  put_results(image.root(), scenario, result, indices, provenance(), false);
  const auto held = std::make_shared<Held>(image.bytes());
  return table_of_results({held, &held->input}, "the results", of);
}

}  // namespace headlab::tools
