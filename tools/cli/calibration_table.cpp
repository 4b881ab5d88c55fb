// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/calibration_table.h"

#include <array>
#include <cstdio>
#include <vector>

#include "engine/files/document.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/text_width.h"

namespace headlab::tools {
namespace {

/// "0.85 %"
std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

std::string count_cell(const CalibrationRate& rate) {
  return std::to_string(rate.count) + " of " + std::to_string(rate.trials);
}

std::string rate_cell(const CalibrationRate& rate) {
  return rate.trials > 0 ? percent_text(rate.rate()) : "–";
}

std::string interval_cell(const CalibrationRate& rate) {
  if (rate.trials == 0) return "–";
  return percent_text(rate.interval.low) + " to " + percent_text(rate.interval.high);
}

/// A control is there to be caught.
std::string pass_cell(const CalibrationRate& rate) {
  if (rate.trials == 0) return "not reached";
  if (rate.measured == Measured::control) return rate.pass() ? "yes: caught" : "NO: not caught";
  return rate.pass() ? "yes" : "NO";
}

struct RateColumn {
  const char* heading;
  std::string (*cell)(const CalibrationRate&);
};

const std::array<RateColumn, 8> table_columns = {
    {{"measured", [](const CalibrationRate& r) { return std::string(measured_text(r.measured)); }},
     {"of", [](const CalibrationRate& r) { return r.what; }},
     {"effect", [](const CalibrationRate& r) { return r.effect; }},
     {"count", count_cell},
     {"rate", rate_cell},
     {"interval", interval_cell},
     {"required", [](const CalibrationRate& r) { return r.requirement(); }},
     {"pass", pass_cell}}};

/// "false alarm: 12 of 12000, 0.10 % (0.05 % to 0.17 %)", one line a kind.
std::vector<std::string> total_lines(const Calibration& calibration) {
  std::vector<std::string> lines;
  for (const Measured measured : {Measured::false_alarm, Measured::false_support, Measured::power,
                                  Measured::coverage, Measured::control, Measured::decided}) {
    const CalibrationRate total = calibration.total(measured);
    if (total.trials == 0) continue;
    lines.push_back(std::string(measured_text(measured)) + " in all: " + count_cell(total) + ", " +
                    rate_cell(total));
  }
  return lines;
}

std::string last_line(const Calibration& calibration) {
  const std::optional<bool> pass = calibration.pass();
  return std::to_string(calibration.rates.size()) + " rates, intervals hold together with " +
         number_text(100 * calibration_confidence) + " % confidence (Clopper-Pearson); " +
         (!pass   ? "NOT COMPLETE, of the runs that were done"
          : *pass ? "all pass"
                  : "NOT ALL PASS") +
         "; " + duration_text(calibration.outcome.seconds) + " on " + calibration.machine.backend +
         " (" + calibration.machine.device + ", " + std::to_string(calibration.machine.threads) +
         (calibration.machine.threads == 1 ? " thread)" : " threads)");
}

}  // namespace

std::string calibration_table(const Calibration& calibration) {
  Columns columns;
  for (const RateColumn& column : table_columns) {
    const std::vector<std::string> cells = cells_of(calibration.rates, column.cell);
    if (&column == &table_columns[0]) {
      columns.add_key(column.heading, cells);
    } else {
      columns.add(column.heading, cells);
    }
  }
  std::string notes;
  for (const std::string& line : total_lines(calibration)) notes += line + "\n";
  return columns.text("") + "\n" +
         wrapped(notes + last_line(calibration) + "\n", output_width(), 2);
}

std::string calibration_report(const Calibration& calibration) {
  std::string headings = "|", rule = "|";
  for (const RateColumn& column : table_columns) {
    headings += std::string(" ") + column.heading + " |";
    rule += "---|";
  }
  std::string text = headings + "\n" + rule + "\n";
  for (const CalibrationRate& rate : calibration.rates) {
    text += "|";
    for (const RateColumn& column : table_columns) text += " " + column.cell(rate) + " |";
    text += "\n";
  }
  text += "\n";
  for (const std::string& line : total_lines(calibration)) text += "- " + line + "\n";
  return text + "\n" + last_line(calibration) + "\n";
}

}  // namespace headlab::tools
