// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/verdict_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/words.h"
#include "kernels/counted.h"
#include "tools/cli/characters.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

/// "hdi / path / chordal, softmax, signal"
std::string form_text(const VerdictRow& row) {
  std::string text = row.form;
  if (!row.index.empty()) text += ", " + row.index;
  return text;
}

std::string setting_text(const VerdictRow& row) {
  std::string text = row.kernel == varies ? "kernels vary" : row.kernel;
  if (row.depth) return text + ", " + row.stages;
  text += ", " + (!row.signal                ? "noise alone"
                  : row.regression == varies ? "truths vary"
                                             : row.regression);
  if (row.queries == 0) {
    text += ", queries vary";
  } else {
    text += ", " + counted(static_cast<std::uint64_t>(row.queries), "query", "queries");
  }
  return text + (row.stages.empty() ? "" : ", " + row.stages);
}

std::string verdict_cell(const VerdictRow& row) {
  std::string text = verdict_text(row.verdict);
  if (!row.as_expected()) text += " (expected " + row.expected + ")";
  return text;
}

std::string effect_cell(const VerdictRow& row) {
  return row.comparisons > 0 ? figure_text(row.decisive.effect) : "–";
}

/// What the effect has to stay within for the claim to be supported.
std::string allowed_cell(const VerdictRow& row) {
  if (row.comparisons == 0) return "–";
  const std::string margin = number_text(row.decisive.margin);
  if (row.decisive.statement == Statement::equal) return "± " + margin;
  return row.decisive.margin > 0 ? "≥ -" + margin : "≥ 0";
}

std::string why_open(const VerdictRow& row) {
  const std::string needed =
      std::isfinite(row.replicates_needed)
          ? "about " + count_text(row.replicates_needed, 4) + " replicates would decide"
          : "";
  if (!row.open.empty()) return "open: " + row.open + (needed.empty() ? "" : "; " + needed);
  return needed.empty()
             ? "the effect is as large as the margin, so no number of replicates is sure to decide"
             : needed;
}

std::string figure_label(const std::string& name) {
  return name == "mse" ? "MSE" : name;
}

/// What a reader wants to know of a verdict that is not plain support.
std::vector<std::string> explanation(const VerdictRow& row) {
  std::vector<std::string> lines;
  if (row.comparisons > 0) {
    lines.push_back((row.verdict == Verdict::refuted ? "decided by: " : "nearest to failing: ") +
                    row.decisive.what + ", " + effect_cell(row) + " where " + allowed_cell(row) +
                    " is allowed, of " + counted(row.comparisons, "comparison") +
                    (row.decisive.replicates > 0
                         ? " at " + counted(row.decisive.replicates, "replicate")
                         : ", computed without simulation"));
  }
  if (row.verdict == Verdict::unresolved && row.comparisons > 0) {
    lines.push_back(why_open(row));
  }
  if (row.counterexample) {
    const Counterexample& c = *row.counterexample;
    const bool same = c.figures[0] == c.figures[1];
    std::string line =
        "counterexample: " + figure_label(c.figures[0]) + " " + figure_text(c.first) + " against " +
        (same ? "" : figure_label(c.figures[1]) + " ") + figure_text(c.second) + ", difference " +
        figure_text(c.difference) + ", z = difference / MCSE = " + short_number(c.z);
    for (const auto& [name, values] : c.closed_form) {
      // As many digits as the words of the comparison have.
      line += "; " + name + " " + short_number(values.first, 6) + " against " +
              short_number(values.second, 6);
    }
    if (!c.replay.empty()) line += "; again: " + c.replay;
    lines.push_back(line);
  }
  if (!row.note.empty()) lines.push_back(row.note);
  if (!row.origin.empty()) lines.push_back("whose claim: " + row.origin);
  lines.push_back("assumes: " + row.assumptions);
  lines.push_back("replay: " + row.replay);
  return lines;
}

bool needs_explanation(const VerdictRow& row) {
  return row.verdict == Verdict::refuted || row.verdict == Verdict::unresolved ||
         row.verdict == Verdict::limited_by_theory || !row.as_expected();
}

/// "17 supported, 3 refuted, ..."
std::string counts(const Validation& validation) {
  std::string text;
  for (const Verdict verdict : {Verdict::supported, Verdict::refuted, Verdict::unresolved,
                                Verdict::limited_by_theory, Verdict::identity}) {
    const auto count = std::count_if(validation.rows.begin(), validation.rows.end(),
                                     [&](const VerdictRow& row) { return row.verdict == verdict; });
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + verdict_text(verdict);
  }
  return text;
}

std::string summary_lines(const Validation& validation) {
  std::size_t of_identities = 0;
  for (const VerdictRow& row : validation.rows) of_identities += row.comparisons;
  of_identities -= std::min(of_identities, validation.comparisons);
  return counts(validation) + "; " + counted(validation.comparisons, "comparison") +
         (of_identities > 0 ? " and " + std::to_string(of_identities) + " of identities" : "") +
         ", family-wise alpha " + number_text(verdict_alpha) + ", " +
         duration_text(validation.outcome.seconds) + " on " + validation.machine.backend +
         (validation.outcome.complete
              ? ""
              : std::string("; incomplete: ") +
                    (validation.outcome.interrupted ? "interrupted" : "time ended") +
                    " before every verdict was decided") +
         "\nhow often such verdicts are wrong: " + calibration_sentence() +
         " - measured, docs/measured/calibration.md\n";
}

}  // namespace

std::string verdict_table(const Validation& validation) {
  std::vector<std::string> claims;
  std::string last;
  for (const VerdictRow& row : validation.rows) {
    claims.push_back(row.claim == last ? "" : row.claim);
    last = row.claim;
  }
  Columns columns;
  columns.add_key("claim", claims);
  columns.add_key("form", cells_of(validation.rows, form_text));
  columns.add("kernel, truth, queries", cells_of(validation.rows, setting_text));
  columns.add("verdict", cells_of(validation.rows, verdict_cell));
  columns.add_figures("effect ± MCSE", cells_of(validation.rows, effect_cell));
  columns.add("allowed", cells_of(validation.rows, allowed_cell));
  std::string text = columns.text("");

  const std::size_t width = output_width();
  for (const VerdictRow& row : validation.rows) {
    if (!needs_explanation(row)) continue;
    text += "\n" + wrapped(row.claim + ", " + form_text(row) + " (" + setting_text(row) +
                               "): " + verdict_cell(row) + "\n  claimed: " + row.statement + "\n",
                           width, 6);
    for (const std::string& line : explanation(row)) text += wrapped("  " + line, width, 6) + "\n";
  }
  return text + "\n" + wrapped(summary_lines(validation), width, 2);
}

std::string verdict_report(const Validation& validation) {
  std::string text =
      "# Verdicts\n\n" + summary_lines(validation) +
      "\n| claim | form | kernel, truth, queries | verdict | effect ± MCSE | allowed |\n"
      "|---|---|---|---|---|---|\n";
  for (const VerdictRow& row : validation.rows) {
    text += "| " + markdown_text(row.claim) + " | " + markdown_text(form_text(row)) + " | " +
            markdown_text(setting_text(row)) + " | " + verdict_cell(row) + " | " +
            effect_cell(row) + " | " + allowed_cell(row) + " |\n";
  }
  for (const VerdictRow& row : validation.rows) {
    text += "\n## " + markdown_text(row.claim) + ": " + markdown_text(form_text(row)) + " (" +
            markdown_text(setting_text(row)) + ")\n\n**" + verdict_cell(row) +
            "**: " + markdown_text(row.statement) + "\n\n";
    for (const std::string& line : explanation(row)) text += "- " + markdown_text(line) + "\n";
    text += "- would be refuted by: " + markdown_text(row.refuted_by) +
            "\n- scenario: " + markdown_text(row.scenario) + ", " + duration_text(row.seconds) +
            "\n";
  }
  return text;
}

namespace {

/// "0.85 %"
std::string percent_text(double share) {
  return formatted("%.2f %%", 100 * share);
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
  if (rate.measured == RateKind::control) return rate.pass() ? "yes: caught" : "NO: not caught";
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
  for (const RateKind measured : {RateKind::false_alarm, RateKind::false_support, RateKind::power,
                                  RateKind::coverage, RateKind::control, RateKind::decided}) {
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
         " (" + calibration.machine.device + ", " +
         counted(static_cast<std::uint64_t>(calibration.machine.threads), "thread") + ")";
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
