// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/files/words.h"
#include "engine/replay/replay.h"
#include "engine/results/condition_record.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/table.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_windows = 32;

/// Places in replay.heads of the windows to show, in their order.
std::vector<std::size_t> windows_to_show(const Replay& replay) {
  std::vector<std::size_t> windows(replay.heads.size());
  std::iota(windows.begin(), windows.end(), std::size_t{0});
  if (windows.size() <= max_windows) return windows;
  std::ranges::stable_sort(windows, {}, [&](std::size_t i) { return replay.heads[i].sample_size; });
  windows.resize(max_windows);
  std::ranges::sort(windows);
  return windows;
}

/// A head at a query, or the ensemble there.
struct Row {
  std::size_t query;
  std::string of;
  double reference, backend;
  const ReplayedHead* head;  ///< null for the ensemble
};

}  // namespace

std::string replay_table(const Scenario& scenario, std::size_t condition, const Replay& replay) {
  const Plan& plan = replay.plan;
  const auto heads = static_cast<std::size_t>(plan.heads);
  std::string text = "replicate " + std::to_string(replay.replicate);
  if (scenario.conditions.size() > 1) text += " of " + numbered_condition(condition);
  text += ": n " + std::to_string(plan.n) + ", " + name_of(plan.estimator) + " estimator, " +
          replay.machine.backend +
          (replay.machine.simd == "none" ? "" : " (" + replay.machine.simd + ")") +
          " beside reference; all numbered from 0\n";

  const std::vector<std::size_t> windows = windows_to_show(replay);
  const bool all = windows.size() == replay.heads.size();
  std::vector<Row> rows;
  for (const std::size_t i : windows) {
    const ReplayedHead& one = replay.heads[i];
    const std::size_t q = i / heads;
    rows.push_back({q, std::to_string(i % heads), one.reference, one.backend, &one});
    if (all && heads > 1 && i % heads == heads - 1) {
      rows.push_back({q, "ensemble", replay.queries[q].reference, replay.queries[q].backend, {}});
    }
  }
  const auto each = [&](auto cell) { return cells_of(rows, cell); };
  using Of = const Row&;
  Columns columns;
  columns.add_key("query", each([](Of row) { return std::to_string(row.query); }), true);
  columns.add_key("head", each([](Of row) { return row.of; }));
  columns.add("reference", each([](Of row) { return formatted("%.9g", row.reference); }), true);
  columns.add(replay.machine.backend == "reference" ? "backend" : replay.machine.backend,
              each([](Of row) { return formatted("%.9g", row.backend); }), true);
  columns.add("difference",
              each([](Of row) { return formatted("%.1e", row.backend - row.reference); }), true);
  columns.add("effective sample size",
              each([](Of row) { return row.head ? short_number(row.head->sample_size) : ""; }),
              true);
  columns.add("normalisation error", each([](Of row) {
                return row.head ? formatted("%.1e", row.head->normalisation_error) : "";
              }),
              true);

  std::string notes;
  if (!all) {
    notes += "the " + std::to_string(windows.size()) + " of " +
             std::to_string(replay.heads.size()) +
             " windows with the least effective sample size; the file has all\n";
  }
  const std::size_t narrowest = replay.narrowest();
  notes += "squared error " + formatted("%.9g", replay.squared_error) + ", the mean over " +
           counted(replay.queries.size(), "query", "queries") +
           (plan.estimator == Estimator::conditional ? ", noise integrated" : "") + "\n";
  notes += "least effective sample size " + formatted("%.9g", replay.heads[narrowest].sample_size) +
           ", of head " + std::to_string(narrowest % heads) + " at query " +
           std::to_string(narrowest / heads) +
           (replay.backend_sample_size
                ? ", by the reference; " + formatted("%.9g", *replay.backend_sample_size) + " by " +
                      replay.machine.backend
                : "") +
           "\n";
  return wrapped(text, output_width(), 2) + columns.text("  ") + wrapped(notes, output_width(), 2);
}

}  // namespace headlab::tools
