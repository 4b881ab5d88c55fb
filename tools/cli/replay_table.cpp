// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/replay_table.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "engine/files/words.h"
#include "engine/results/condition_record.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_windows = 32;

std::string estimate_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

std::string error_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", number);
  return text;
}

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

/// Columns of the table, a row at a time.
struct Rows {
  std::vector<std::string> query, head, reference, backend, difference, sample_size, error;

  void add(std::size_t q, const std::string& of, double by_reference, double by_backend) {
    query.push_back(std::to_string(q));
    head.push_back(of);
    reference.push_back(estimate_number(by_reference));
    backend.push_back(estimate_number(by_backend));
    difference.push_back(error_number(by_backend - by_reference));
    sample_size.emplace_back();
    error.emplace_back();
  }
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
  Rows rows;
  for (const std::size_t i : windows) {
    const ReplayedHead& one = replay.heads[i];
    const std::size_t q = i / heads;
    rows.add(q, std::to_string(i % heads), one.reference, one.backend);
    rows.sample_size.back() = short_number(one.sample_size);
    rows.error.back() = error_number(one.normalisation_error);
    if (all && heads > 1 && i % heads == heads - 1) {
      rows.add(q, "ensemble", replay.queries[q].reference, replay.queries[q].backend);
    }
  }
  Columns columns;
  columns.add_key("query", std::move(rows.query), true);
  columns.add_key("head", std::move(rows.head));
  columns.add("reference", std::move(rows.reference), true);
  columns.add(replay.machine.backend == "reference" ? "backend" : replay.machine.backend,
              std::move(rows.backend), true);
  columns.add("difference", std::move(rows.difference), true);
  columns.add("effective sample size", std::move(rows.sample_size), true);
  columns.add("normalisation error", std::move(rows.error), true);

  std::string notes;
  if (!all) {
    notes += "the " + std::to_string(windows.size()) + " of " +
             std::to_string(replay.heads.size()) +
             " windows with the least effective sample size; the file has all\n";
  }
  const std::size_t narrowest = replay.narrowest();
  notes += "squared error " + estimate_number(replay.squared_error) + ", the mean over " +
           std::to_string(replay.queries.size()) +
           (replay.queries.size() == 1 ? " query" : " queries") +
           (plan.estimator == Estimator::conditional ? ", noise integrated" : "") + "\n";
  notes += "least effective sample size " + estimate_number(replay.heads[narrowest].sample_size) +
           ", of head " + std::to_string(narrowest % heads) + " at query " +
           std::to_string(narrowest / heads) +
           (replay.backend_sample_size
                ? ", by the reference; " + estimate_number(*replay.backend_sample_size) + " by " +
                      replay.machine.backend
                : "") +
           "\n";
  return wrapped(text, output_width(), 2) + columns.text("  ") + wrapped(notes, output_width(), 2);
}

}  // namespace headlab::tools
