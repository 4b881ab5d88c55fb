// SPDX-License-Identifier: Apache-2.0
#include "engine/replay/replicate_figures.h"

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <system_error>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/available_memory.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/results/netcdf_fields.h"
#include "kernels/learning/worker.h"
#include "kernels/parallel_for.h"
#include "kernels/statistics/replicate_error.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

constexpr std::uint64_t csv_row_bytes = 80;     // of full digits
constexpr std::uint64_t netcdf_row_bytes = 48;  // six numbers

/// Replicates that share heads and queries, from a multiple of leaf_replicates on.
void compute_leaf(const ConditionResult& one, std::size_t condition, std::uint64_t first,
                  std::uint64_t count, const Session& session, ReplicateFigure* to) {
  Plan plan = one.plan;
  if (plan.redraws) set_draw(plan, *one.condition, first / leaf_replicates);
  for (std::uint64_t r = first; r < first + count; ++r) {
    const bool learns = plan.learning.has_value();
    const Plan learned =
        learns ? learned_plan(*session.backend, plan, r, session.stop_hook()) : Plan();
    const Plan& of_replicate = learns ? learned : plan;
    const MomentLayout layout = of_replicate.layout();
    const ReplicateError error(layout, of_replicate.head_weights, of_replicate.truth);
    Moments node;
    session.backend->worker(of_replicate)->run({.first = r, .count = 1, .node = 1}, {&node, 1});
    for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
      const double* statistics = &node.mean[q * layout.per_query()];
      *to++ = {.condition = condition,
               .replicate = r,
               .query = q,
               .estimate = error.ensemble(statistics),
               .truth = of_replicate.truth[q],
               .squared_error = error.at_query(q, statistics)};
    }
  }
}

/// A row of CSV, or the names of its columns.
struct CsvLine {
  bool names = false;
  std::string text = {};

  template <class T>
  void operator()(const char* name, T value, const char*) {
    if (!text.empty()) text += ',';
    if (names) {
      text += name;
    } else if constexpr (std::integral<T>) {
      text += std::to_string(value);
    } else {
      text += number_text(value);
    }
  }
};

std::string csv_line(const ReplicateFigure& figure, bool names = false) {
  CsvLine line{.names = names};
  figure.fields(line);
  return line.text + "\r\n";
}

bool is_netcdf(const std::string& path) {
  return std::filesystem::path(path).extension() == ".nc";
}

std::uint64_t rows_of(const Scenario& scenario, std::optional<std::uint64_t> first) {
  double rows = 0;
  for (const Condition& one : scenario.conditions) {
    const std::uint64_t replicates = std::min(first.value_or(one.replicates), one.replicates);
    rows += static_cast<double>(replicates) * layout_of(one).queries;
  }
  return static_cast<std::uint64_t>(std::min(rows, 1e18));
}

}  // namespace

bool replicate_figures(const RunResult& result, std::optional<std::uint64_t> first,
                       const Session& session,
                       const std::function<void(std::span<const ReplicateFigure>)>& take) {
  constexpr std::uint64_t leaves_at_once = 256;
  const StopScope scope(session.stop_hook());
  try {
    for (std::size_t c = 0; c < result.conditions.size(); ++c) {
      const ConditionResult& one = result.conditions[c];
      const std::uint64_t most = std::min(first.value_or(one.tree.count()), one.tree.count());
      const auto queries = static_cast<std::size_t>(one.plan.queries);
      std::vector<ReplicateFigure> figures;
      for (std::uint64_t begin = 0; begin < most; begin += leaves_at_once * leaf_replicates) {
        const std::uint64_t count = std::min(most - begin, leaves_at_once * leaf_replicates);
        figures.resize(count * queries);
        const std::uint64_t leaves = (count + leaf_replicates - 1) / leaf_replicates;
        parallel_for(leaves, thread_count(session.threads), [&](std::size_t leaf) {
          const std::uint64_t offset = leaf * leaf_replicates;
          compute_leaf(one, c, begin + offset,
                       std::min<std::uint64_t>(leaf_replicates, count - offset), session,
                       &figures[offset * queries]);
        });
        take(figures);
      }
    }
  } catch (const WorkStopped&) {
    return false;
  }
  return true;
}

std::uint64_t replicate_file_bytes(const std::string& path, const Scenario& scenario,
                                   std::optional<std::uint64_t> first) {
  return rows_of(scenario, first) * (is_netcdf(path) ? netcdf_row_bytes : csv_row_bytes);
}

void require_replicate_file(const std::string& option, const std::string& path,
                            const Scenario& scenario, std::optional<std::uint64_t> first) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".csv" && ending != ".nc") {
    throw InvalidInput(option + ": " + one_line(path) +
                       ": its name does not say the format - end it in .csv or .nc");
  }
  if (scenario.conditions.front().stack) {
    throw InvalidInput(option + ": is for studies of regression, not of depth");
  }
  std::uint64_t most = 0;
  for (const Condition& condition : scenario.conditions) {
    most = std::max(most, condition.replicates);
  }
  if (first && *first > most) {
    throw InvalidInput("--first-replicates: is " + std::to_string(*first) + ", and there are " +
                       std::to_string(most) + " - leave it out for all");
  }
  const std::uint64_t bytes = replicate_file_bytes(path, scenario, first);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (!error && bytes > space.available) {
    throw InvalidInput(option + ": " + one_line(path) + ": takes about " + format_bytes(bytes) +
                       ", and the disk has " + format_bytes(space.available) +
                       " free - write fewer with --first-replicates");
  }
  if (is_netcdf(path)) {
    require_memory(3 * bytes, "for the file of replicates", "--first-replicates");
  }
}

bool write_replicate_figures(const std::string& path, const RunResult& result,
                             std::optional<std::uint64_t> first, const Session& session) {
  if (is_netcdf(path)) {
    std::vector<ReplicateFigure> all;
    const bool complete =
        replicate_figures(result, first, session, [&](std::span<const ReplicateFigure> some) {
          all.insert(all.end(), some.begin(), some.end());
        });
    if (!complete) return false;
    NetcdfImage image;
    write_records(image.root(), "row", all,
                  [](const ReplicateFigure& figure, auto& visit) { figure.fields(visit); });
    image.save(path);
    return true;
  }
  try {
    write_atomically(path, [&](const TextSink& out) {
      out(csv_line({}, true));
      const bool complete =
          replicate_figures(result, first, session, [&](std::span<const ReplicateFigure> some) {
            for (const ReplicateFigure& figure : some) out(csv_line(figure));
          });
      // What is thrown here leaves no file.
      if (!complete) throw WorkStopped();
    });
  } catch (const WorkStopped&) {
    return false;
  }
  return true;
}

}  // namespace headlab
