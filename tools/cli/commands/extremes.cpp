// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/commands/commands.h"

namespace headlab::tools {
namespace {

/// A replicate of one of several conditions.
struct ExtremeOfRun {
  std::size_t condition;
  Extreme extreme;
};

/// The most extreme replicate of all conditions, of equal ones that of the first.
/// \param list_of gives the list of a condition, or null
template <class ListOf, class Before>
std::optional<ExtremeOfRun> extreme_of_run(const RunResult& result, const ListOf& list_of,
                                           const Before& before) {
  std::optional<ExtremeOfRun> most;
  for (std::size_t c = 0; c < result.conditions.size(); ++c) {
    const std::optional<Extremes>& extremes = result.conditions[c].tree.kept_extremes();
    const ExtremeList* list = extremes ? list_of(*extremes) : nullptr;
    if (list == nullptr || list->all().empty()) continue;
    const Extreme& first = list->all().front();
    if (!most || before(first.key, most->extreme.key)) most = {c, first};
  }
  return most;
}

std::string replay_command(const RunArguments& run, bool sweep, const ExtremeOfRun& of) {
  const std::string replicate = std::to_string(of.extreme.replicate);
  const std::string condition = std::to_string(of.condition);
  std::string text = "headlab replay " + shell_word(run.scenario);
  for (const std::string& set : run.sets) text += " --set " + shell_word(set);
  if (run.seed) text += " --seed " + std::to_string(*run.seed);
  if (run.replicates) text += " --replicates " + std::to_string(*run.replicates);
  if (run.backend != "auto") text += " --backend " + shell_word(run.backend);
  if (sweep) text += " --condition " + condition;
  const std::string folder = "replay_" + (sweep ? condition + "_" : "") + replicate;
  return text + " --replicate " + replicate + " --out " +
         shell_word((std::filesystem::path(*run.out) / folder).string());
}

}  // namespace

std::string extremes_text(const RunResult& result, const RunArguments& arguments) {
  const bool sweep =
      !result.conditions.empty() && !result.conditions.front().condition->swept.empty();
  const auto error = extreme_of_run(
      result, [](const Extremes& of) { return &of.max_error; },
      [](double a, double b) { return a > b; });
  const auto sample_size = extreme_of_run(
      result,
      [](const Extremes& of) { return of.min_sample_size ? &*of.min_sample_size : nullptr; },
      [](double a, double b) { return a < b; });
  const auto line = [&](const std::string& what, const ExtremeOfRun& most) {
    return what + " " + short_number(most.extreme.key) + ": replicate " +
           std::to_string(most.extreme.replicate) +
           (sweep ? " of " + numbered_condition(most.condition) : "") + "\n";
  };
  const auto command = [&](const ExtremeOfRun& most) {
    return "    " + replay_command(arguments, sweep, most) + "\n";
  };
  std::string text;
  if (error) {
    text += line("largest squared error", *error);
    // One command for both where they are one replicate.
    const bool same = sample_size && error->condition == sample_size->condition &&
                      error->extreme.replicate == sample_size->extreme.replicate;
    if (!same) text += command(*error);
  }
  if (sample_size) {
    text += line("least effective sample size", *sample_size) + command(*sample_size);
  }
  return text;
}

}  // namespace headlab::tools
