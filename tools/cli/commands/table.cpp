// SPDX-License-Identifier: Apache-2.0
#include "engine/files/netcdf/file.h"
#include "tools/cli/commands/commands.h"
#include "tools/tables/table_source.h"
#include "tools/tables/write_table.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_digits = 9;

struct TableArguments {
  Texts results;
  TableRequest request;
  std::optional<TableFormat> format;
  TableStyle style;
  std::optional<int> digits;
  TableOf of = TableOf::conditions;
  std::optional<std::string> out;
  Texts where;

  void list(Options& options) {
    options.texts("RESULT", "",
                  "Folders of --out, or files of --json: of run, theory, validate, allocate, hdi, "
                  "heads, along, diff",
                  results);
    options.value(
        "--figures", "NAME,...",
        "Figures by their names in results.nc, or all; the default is what the "
        "command's own table shows",
        [this](const std::string& text) { request.figures = parse_names("--figures", text); });
    options.choice("--format", "NAME",
                   "csv, latex or markdown; the default is what the ending of --out says, or csv",
                   format,
                   {{"csv", TableFormat::csv},
                    {"latex", TableFormat::latex},
                    {"markdown", TableFormat::markdown}});
    options.flag("--long", "One figure a row, with its 95 % interval", request.one_figure_a_row);
    options.value("--rows", "KEY,...", "Of a two-way table the swept keys that go down",
                  [this](const std::string& text) { request.rows = parse_names("--rows", text); });
    options.text("--columns", "KEY", "Of a two-way table the swept key that goes across",
                 request.columns);
    options.texts("--where", "KEY=VALUE", "Rows where a key has this value alone; may be repeated",
                  where);
    options.choice("--of", "WORD",
                   "A row a head, query or pair of heads, or of allocations how the best d_k grows",
                   of,
                   {{"heads", TableOf::heads},
                    {"queries", TableOf::queries},
                    {"pairs", TableOf::pairs},
                    {"growth", TableOf::growth}});
    options.number("--digits", "N",
                   "Digits of a standard error in LaTeX and Markdown; 2 by default", digits, 1,
                   max_digits);
    options.flag("--pm", "In LaTeX 0.0124 \\pm 0.0007 in place of 0.0124(7)", style.plus_minus);
    options.text("--out", "FILE|-", "The file; the default is standard output", out);
  }
};

ExitCode table(const TableArguments& arguments) {
  if (arguments.results.empty()) {
    throw InvalidInput("table: no results given - write headlab table DIR");
  }
  TableRequest request = arguments.request;
  request.where = parse_where(arguments.where);
  const bool to_file = arguments.out && arguments.out != "-";
  const TableFormat format = arguments.format ? *arguments.format
                             : to_file        ? format_of_file("--out", *arguments.out)
                                              : TableFormat::csv;
  if (arguments.style.plus_minus && format != TableFormat::latex) {
    throw InvalidInput("--pm: is of LaTeX - write --format latex, or leave it out");
  }
  if (arguments.digits && format == TableFormat::csv) {
    throw InvalidInput(
        "--digits: is of LaTeX and Markdown - write --format latex or markdown, or leave it out");
  }
  TableStyle style = arguments.style;
  style.digits = arguments.digits.value_or(style.digits);
  if (to_file) {
    if (format_of_ending(*arguments.out).value_or(format) != format) {
      throw InvalidInput("--format: is not that of " + one_line(*arguments.out) +
                         " - leave one of them out");
    }
    require_no_input("--out", *arguments.out, arguments.results);
    require_writable("--out", *arguments.out);
  }
  try {
    const ShownTable shown_table =
        select_table(read_tables(arguments.results, arguments.of), request);
    const auto produce = [&](const TextSink& sink) {
      write_table(shown_table, format, style, sink);
    };
    if (!to_file) {
      produce([](std::string_view part) { std::cout << part; });
      finish_standard_output();
      return ExitCode::done;
    }
    write_atomically(*arguments.out, produce);
  } catch (const NetcdfError& error) {
    throw InvalidInput("results.nc: is damaged (" + std::string(error.what()) + ")");
  }
  std::cerr << "headlab: wrote " << *arguments.out << "\n";
  return ExitCode::done;
}

}  // namespace

Command table_command() {
  return make_command("table", "Write results as a table: CSV, LaTeX or Markdown", table);
}

}  // namespace headlab::tools
