// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/allocations.h"

#include <cstdint>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "kernels/parallel_for.h"
#include "kernels/statistics/stopping.h"
#include "tools/cli/commands/allocate.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"
#include "tools/python/src/studies.h"
#include "validation/allocation/allocation_json.h"
#include "validation/allocation/regime_map.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

using tools::AllocateArguments;
using tools::AllocateRequest;

/// What is found: the document of --json with the text of the command, whether all of it was
/// computed, the content of map.nc, and why a map ends before its last cell.
struct Found {
  std::string json;
  std::string text;
  bool complete = true;
  std::optional<GroupContent> map;
  std::string failure;

  nb::object object() {
    const nb::object content = map ? nb::object(object_of(std::move(*map))) : nb::none();
    return nb::make_tuple(json, text, complete, content, failure);
  }
};

Found theory_of(const AllocateRequest& request, const Condition& base, const Session& session) {
  const bool own = *request.theory == TheoryMean::condition;
  const StopScope scope(session.stop_hook());
  std::vector<TheoryGrowth> growths;
  Found found;
  for (const std::uint64_t budget : request.budgets) {
    try {
      growths.push_back((own ? study_exactly : study_theory)(base, static_cast<int>(budget),
                                                             request.options.rule, request.sizes,
                                                             thread_count(session.threads), {}));
    } catch (const WorkStopped&) {
      if (growths.empty() && *session.stop) throw Stopped();
      if (growths.empty()) throw Unfinished("max_time reached: nothing was reached");
      found.complete = false;
      break;
    }
  }
  found.json = theory_json(growths, theory_limits(base, *request.theory), provenance(), {});
  found.text = tools::allocation_theory_table(base, growths);
  return found;
}

Found selections_of(const AllocateRequest& request, const Condition& base, bool growth,
                    const Session& session) {
  tools::Allocations all;
  tools::add_allocations(
      all, base, request.budgets, request.sizes, growth,
      [](const AllocationStudy&) { return std::string(); }, session, request.options);
  if (!all.is_reached()) throw Unfinished("max_time reached: nothing was reached");
  const auto heads = all.head_growths(request.sizes, base.seed);
  return {.json = allocation_json(all.studies, provenance(), all.growths, heads),
          .text = tools::allocations_table(base.name, all, heads, ""),
          .complete = all.outcome.complete};
}

Found map_of(const AllocateRequest& request, const Scenario& scenario,
             const AllocateArguments& arguments, const Session& session) {
  std::optional<tools::OutputFolder> out;
  if (arguments.out) out.emplace(*arguments.out);
  if (out) {
    out->require_place_for({"map.nc", "map.json"},
                           arguments.overwrite ? nullptr : tools::overwrite_only);
  }
  const std::vector<int> budgets(request.budgets.begin(), request.budgets.end());
  const RegimeMap map =
      map_regimes(scenario, arguments.rules, budgets, request.sizes, session, request.options);
  if (map.cells.empty() && map.failure.empty()) {
    throw Unfinished("max_time reached: nothing was reached");
  }
  Found found{.json = regime_json(map, provenance(), ""),
              .text = one_line(scenario.conditions.front().name) + "\n" + tools::regime_table(map) +
                      tools::duration_text(map.outcome.seconds) + "\n",
              .complete = map.outcome.complete,
              .failure = map.failure};
  const auto lock = use_netcdf();
  if (out && !map.cells.empty()) {
    tools::write_files({{out->file("map.json"), found.json}}, true);
    write_regime_map(out->file("map.nc"), scenario, map, provenance(), "");
  }
  found.map = written_content(
      [&](const NetcdfGroup& root) { put_regime_map(root, scenario, map, provenance(), ""); });
  return found;
}

std::unique_ptr<Job> start_allocate(const ScenarioSource& source,
                                    const AllocateArguments& arguments) {
  AllocateRequest request = tools::allocate_request(arguments);
  tools::require_out(arguments.overwrite, arguments.out);
  ScenarioSource with_sets = source;
  for (const std::string& set : tools::all_sets(arguments)) with_sets.sets.push_back(set);
  return std::make_unique<Job>(
      job_session(arguments), [source = with_sets, arguments, request](Job& job) mutable {
        const Session& session = job.session();
        ReadHooks hooks = hooks_of(session);
        hooks.depth = false;
        const Scenario scenario = source.read(hooks);
        tools::complete_request(request, arguments, scenario);
        const Condition& base = scenario.conditions.front();
        const auto found = std::make_shared<Found>(
            arguments.map    ? map_of(request, scenario, arguments, session)
            : request.theory ? theory_of(request, base, session)
                             : selections_of(request, base, arguments.growth, session));
        return Job::MakeObject([found] { return found->object(); });
      });
}

}  // namespace

void bind_allocations(nb::module_& module) {
  bind_arguments<AllocateArguments>(module, "AllocateArguments");
  module.def("allocate", &start_allocate, nb::arg("source"), nb::arg("arguments"));
}

}  // namespace headlab::python
