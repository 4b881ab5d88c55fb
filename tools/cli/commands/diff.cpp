// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <span>

#include "engine/files/json_fields.h"
#include "engine/files/words.h"
#include "kernels/counted.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/results_folder.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_difference_rows = 40;
constexpr std::size_t max_shown_keys = 40;
constexpr std::size_t max_shown_conditions = 5;

const char* outcome_name(const ResultsDifference& difference) {
  return difference.same_bits()          ? "same bits"
         : difference.counts.differ == 0 ? "no figure differs"
                                         : "figures differ";
}

const char* bits_name(NodeBits bits) {
  return bits == NodeBits::same ? "same" : bits == NodeBits::different ? "different" : "unknown";
}

/// The document of --json.
struct DifferenceRecord {
  const ResultsDifference& of;
  const std::string& a;
  const std::string& b;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("a", a, "file that is A");
    visit("b", b, "file that is B");
    visit("outcome", outcome_name(of), "same bits, no figure differs or figures differ");
    visit("level", difference_level, "chance of a difference where there is none");
    visit("same_bits", of.same_bits(), "everything in both has the same bits");
    visit("nodes", bits_name(of.nodes), "bits of the nodes: same, different or unknown");
    visit("a_complete", of.a_complete, "A is of a complete run");
    visit("b_complete", of.b_complete, "B is of a complete run");
    visit("made_by", of.made_by, "what made the results, where it differs");
    visit("keys", of.keys, "keys of the scenario that differ");
    visit("matching", of.matching, "matching conditions");
    visit("a_alone", of.a_alone, "conditions of A alone");
    visit("b_alone", of.b_alone, "conditions of B alone");
    visit("counts", of.counts, "what became of the figures");
    visit("differences", of.rows, "figures, the largest difference first");
  }
};

/// "heads.dim  2  3", one line a key.
std::string keys_text(const std::vector<KeyDifference>& keys, std::size_t matching) {
  const auto shown = std::span(keys).first(std::min(keys.size(), max_shown_keys));
  const auto each = [&](auto cell) { return cells_of(shown, cell); };
  using Key = const KeyDifference&;
  const auto value = [](const std::string& text) {
    return text.empty() ? "not given" : one_line(text, 60);
  };
  Columns columns;
  columns.add_key("", each([](Key key) { return one_line(key.key, 60); }));
  columns.add("A", each([&](Key key) { return value(key.a); }));
  columns.add("B", each([&](Key key) { return value(key.b); }));
  if (std::ranges::any_of(
          shown, [&](Key key) { return key.conditions != matching && key.conditions != 0; })) {
    columns.add("conditions", each([&](Key key) {
                  return std::to_string(key.conditions) + " of " + std::to_string(matching);
                }));
  }
  std::string text = columns.text("  ");
  if (keys.size() > max_shown_keys) {
    text +=
        "  ... " + std::to_string(keys.size() - max_shown_keys) + " more: --json FILE has all\n";
  }
  return text;
}

std::string alone_text(const char* side, const std::vector<std::string>& labels) {
  if (labels.empty()) return "";
  std::string text = std::string("only in ") + side + ": ";
  for (std::size_t i = 0; i < std::min(labels.size(), max_shown_conditions); ++i) {
    text += (i == 0 ? "" : "; ") + labels[i];
  }
  if (labels.size() > max_shown_conditions) {
    text += "; and " + std::to_string(labels.size() - max_shown_conditions) + " more";
  }
  return text + "\n";
}

std::string mcse_text(double in_mcse) {
  if (std::isinf(in_mcse)) return "exact";
  const double size = std::abs(in_mcse);
  const bool plain = size == 0 || (size >= 0.005 && size < 1e4);
  return formatted(plain ? "%+.2f" : "%+.1e", in_mcse);
}

std::string rows_text(const ResultsDifference& difference) {
  const std::size_t shown = std::min(difference.rows.size(), max_difference_rows);
  const auto each = [&](auto cell) {
    return cells_of(std::span(difference.rows).first(shown), cell);
  };
  using Row = const FigureDifference&;
  // An exact figure has no standard error to be shown with.
  const auto figure = [](const Estimate& of) {
    return Estimate{of.value, std::isfinite(of.mcse) ? of.mcse : 0.0};
  };
  const std::vector<std::string> labels = each([](Row row) { return row.label; });
  Columns columns;
  if (std::ranges::any_of(labels, [](const std::string& label) { return !label.empty(); })) {
    columns.add_key("condition", labels);
  }
  columns.add_key("figure", each([](Row row) { return row.figure; }));
  columns.add("in MCSE",
              each([](Row row) { return mcse_text(row.in_mcse) + (row.differs ? " *" : "  "); }),
              true);
  columns.add_figures("B - A", each([](Row row) { return row.difference; }));
  columns.add_figures("A", each([&](Row row) { return figure(row.a); }));
  columns.add_figures("B", each([&](Row row) { return figure(row.b); }));
  std::string text = columns.text("  ");
  const std::size_t rest = difference.counts.compared - shown;
  if (rest > 0) {
    const double largest =
        difference.rows.size() > shown ? std::abs(difference.rows[shown].in_mcse) : 0;
    text += "  ... " + counted(rest, "more figure") + ", none off by more than " +
            short_number(largest) + " MCSE: --json FILE has " +
            (difference.rows.size() == difference.counts.compared
                 ? "all"
                 : "the first " + std::to_string(difference.rows.size())) +
            "\n";
  }
  return text;
}

/// How the standard errors of the differences were found.
std::string pairings_text(const std::vector<Pairing>& pairings) {
  std::string text;
  for (const Pairing pairing : pairings) {
    switch (pairing) {
      case Pairing::paired:
        text += "MCSE of a difference: paired, node by node, because both have the same draws\n";
        break;
      case Pairing::independent:
        text += "MCSE of a difference: joint, because the seeds differ\n";
        break;
      case Pairing::same_problem:
        text +=
            "MCSE of a difference: joint; one problem with the same draws differs by rounding "
            "alone\n";
        break;
      case Pairing::conservative:
        text +=
            "MCSE of a difference: joint, which is conservative: the seed is the same, but nodes "
            "of the same replicates are not in both files\n";
        break;
    }
  }
  return text;
}

std::string counts_text(const ResultsDifference& difference) {
  const FigureCounts& counts = difference.counts;
  std::string text;
  if (counts.undefined > 0) {
    text += counted(counts.undefined, "figure") + " undefined in A or B: not compared\n";
  }
  if (counts.in_one > 0) text += counted(counts.in_one, "figure") + " in A or B alone\n";
  if (counts.other_queries > 0) {
    text += counted(counts.other_queries, "figure") + " at other queries: not compared\n";
  }
  return text;
}

std::string bits_text(const ResultsDifference& difference) {
  if (difference.same_bits()) {
    return difference.nodes == NodeBits::same
               ? "same bits: nodes and figures\n"
               : "same bits: figures (nodes are not in both files)\n";
  }
  return "nodes: " +
         std::string(difference.nodes == NodeBits::same        ? "same bits"
                     : difference.nodes == NodeBits::different ? "other bits"
                                                               : "not in both files") +
         "; figures: same bits in " + grouped(difference.counts.same_bits) + " of " +
         grouped(difference.counts.compared) + "\n";
}

}  // namespace

std::string difference_text(const ResultsDifference& difference, const StoredResults& a,
                            const StoredResults& b) {
  std::string text = "A  " + one_line(a.path()) + (a.complete() ? "" : " (not complete)") +
                     "\nB  " + one_line(b.path()) + (b.complete() ? "" : " (not complete)") +
                     "\n\n";
  if (!difference.made_by.empty()) {
    text += "made by\n" + keys_text(difference.made_by, 0) + "\n";
  }
  text += difference.keys.empty()
              ? "scenario: no key differs\n"
              : "scenario: " + counted(difference.keys.size(), "key differs", "keys differ") +
                    "\n" + keys_text(difference.keys, difference.matching) + "\n";
  text += "conditions: " + std::to_string(difference.matching) + " in both\n";
  text += wrapped(alone_text("A", difference.a_alone) + alone_text("B", difference.b_alone),
                  output_width(), 2);
  text += bits_text(difference);
  if (difference.same_bits()) return text;
  text += "\ndifferences, the largest first\n" + rows_text(difference) + "\n";
  std::string notes = pairings_text(difference.pairings) + counts_text(difference);
  notes += difference.counts.differ == 0
               ? "no figure differs"
               : counted(difference.counts.differ, "figure differs", "figures differ") + " (*)";
  notes += ": Holm over " + counted(difference.counts.compared, "figure") +
           " at a family level of " + number_text(difference_level) + "\n";
  return text + wrapped(notes, output_width(), 2);
}

std::string difference_json(const ResultsDifference& difference, const StoredResults& a,
                            const StoredResults& b) {
  return json_text(DifferenceRecord{difference, a.path(), b.path()}, 2);
}

namespace {

struct DiffArguments : CommonArguments {
  std::string a, b;

  void list(Options& options) {
    options.text("A", "", "Folder of --out, or its results.nc or summary.json", a);
    options.text("B", "", "Another one", b);
    take(options, {{"--json", "Write the differences to a file, or - for standard output"}});
  }
};

ExitCode diff(const DiffArguments& arguments) {
  if (arguments.a.empty() || arguments.b.empty()) {
    throw InvalidInput("diff: needs two results - write headlab diff A B");
  }
  for (const std::string& result : {arguments.a, arguments.b}) require_merged(result);
  const StoredResults a(arguments.a), b(arguments.b);
  require_documents(arguments, {a.path(), b.path()});
  const ResultsDifference difference = difference_of(a, b);
  std::string json;
  if (arguments.json) json = difference_json(difference, a, b);
  write_documents(arguments, json);
  print_document(arguments, json, [&] { return difference_text(difference, a, b); });
  return difference.same_bits()          ? ExitCode::done
         : difference.counts.differ == 0 ? ExitCode::no_figure_differs
                                         : ExitCode::figures_differ;
}

}  // namespace

Command diff_command() {
  return make_command("diff", "Compare two results of headlab run", diff);
}

}  // namespace headlab::tools
