// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include "engine/files/table_file.h"
#include "engine/replay/replicate_figures.h"
#include "engine/run/control_pilot.h"
#include "engine/run/forecast.h"
#include "engine/run/memory.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "kernels/backends.h"
#include "kernels/statistics/stopping.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/result_notes.h"

namespace headlab::tools {
namespace {

constexpr double measured_seconds = 0.1;

/// "10000" or "1000 to 10000".
std::string replicates_range(const Scenario& scenario) {
  const auto [least, most] = std::ranges::minmax_element(
      scenario.conditions, {}, [](const Condition& one) { return one.replicates; });
  const auto text = [](const Condition& one) {
    return count_text(static_cast<double>(one.replicates));
  };
  return text(*least) + (least->replicates == most->replicates ? "" : " to " + text(*most));
}

std::string conditions_line(const Scenario& scenario) {
  const std::size_t count = scenario.conditions.size();
  std::string text = std::to_string(count) + (count == 1 ? " of " : ", each of ") +
                     replicates_range(scenario) + " replicates";
  if (!scenario.swept.empty()) text += "; swept: " + one_line(listed(scenario.swept), 200);
  return text;
}

/// What is free on the disk of a folder that may not be there yet.
std::optional<std::uint64_t> free_bytes(std::filesystem::path folder) {
  std::error_code error;
  folder = std::filesystem::absolute(folder, error);
  while (!folder.empty() && !std::filesystem::exists(folder, error)) {
    if (folder == folder.parent_path()) return std::nullopt;
    folder = folder.parent_path();
  }
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  return error ? std::nullopt : std::optional<std::uint64_t>(space.available);
}

std::string disk_line(const RunArguments& arguments, std::uint64_t netcdf, std::uint64_t summary) {
  std::string text = "about " + format_bytes(netcdf) + " for results.nc, " + format_bytes(summary) +
                     " for summary.json";
  if (!arguments.out) return text + ", with --out DIR";
  const std::optional<std::uint64_t> left = free_bytes(*arguments.out);
  return left ? text + "; " + format_bytes(*left) + " free" : text;
}

std::string machine_text(const Machine& machine) {
  return machine.text() + ", " + counted(static_cast<std::uint64_t>(machine.threads), "thread");
}

std::string time_line(const BackendForecast& one, bool chosen) {
  const std::string name = machine_text(one.machine) + (chosen ? " (this run)" : "") + ": ";
  if (!one.problem.empty()) return name + one_line(one.problem, 200);
  const std::string time =
      one.seconds < 1 ? "less than 1 s" : "about " + duration_text(one.seconds);
  return name + time + ", by its speed over " + short_number(one.measured_seconds) + " s";
}

/// The backend of the run first, then the others that are there.
std::vector<BackendForecast> forecasts(const Scenario& scenario, const Session& session) {
  std::vector<BackendForecast> all = {
      forecast(scenario, session.backend, session.threads, measured_seconds)};
  for (const std::string& name : backend_names()) {
    if (name == all.front().machine.backend) continue;
    try {
      all.push_back(forecast(scenario, name, session.threads, measured_seconds));
    } catch (const InvalidInput&) {
      // Not on this machine, or without the memory for it: it is not the one that will run.
    }
  }
  return all;
}

}  // namespace

ExitCode dry_run(const RunArguments& arguments, const Scenario& scenario, const Session& session) {
  const StopScope scope(session.stop_hook());
  const std::vector<BackendForecast> all = forecasts(scenario, session);
  if (!all.front().problem.empty()) throw InvalidInput(all.front().problem);
  const bool learns = std::ranges::any_of(scenario.conditions, learns_heads_once);
  std::string text = "# dry run of " + one_line(scenario.file) + ": nothing was written\n";
  text += "# conditions: " + conditions_line(scenario) + "\n";
  if (const std::string stages = mechanism_text(scenario); !stages.empty()) {
    text += "# stages: " + stages + "\n";
  }
  for (const std::string& line : tables_read(scenario.inputs)) {
    text += "# read: " + one_line(line) + "\n";
  }
  const ResultSize size = result_size(scenario);
  const std::uint64_t netcdf = arguments.nodes ? size.netcdf : size.netcdf_without_nodes;
  // results.nc is put together in memory.
  const std::uint64_t memory = all.front().memory + (arguments.out ? netcdf : 0);
  text += "# memory: " + format_bytes(memory) + ", " + available_text() + "\n";
  text += "# disk: " + disk_line(arguments, netcdf, size.summary) + "\n";
  if (arguments.replicate_figures) {
    const std::string& path = *arguments.replicate_figures;
    require_replicate_file("--replicate-figures", path, scenario, arguments.first_replicates);
    text += "# disk: about " +
            format_bytes(replicate_file_bytes(path, scenario, arguments.first_replicates)) +
            " for " + one_line(path) + "\n";
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += "# time: " + time_line(all[i], i == 0) + "\n";
  }
  double of_controls = 0;
  for (const Condition& condition : scenario.conditions) {
    of_controls += control_cost(condition).seconds;
  }
  if (of_controls > 0) {
    text += "# time: the exact means of controls take at most " +
            (of_controls < 1 ? "1 s" : duration_text(of_controls)) + " on top\n";
  }
  if (learns) text += "# time: the time in which heads are learned comes on top\n";
  if (arguments.max_time) text += "# time: --max-time " + one_line(arguments.max_time->text) + "\n";
  print(text + resolved_toml(scenario));
  return ExitCode::done;
}

}  // namespace headlab::tools
