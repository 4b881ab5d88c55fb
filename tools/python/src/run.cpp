// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <string_view>

#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/replay/replicate_figures.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/summary_json.h"
#include "engine/run/control_check.h"
#include "engine/scenario/scenario.h"
#include "kernels/parallel_for.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/table.h"
#include "tools/python/src/studies.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

tools::RunReport report_of(const RunResult& result, const std::vector<Theory>& theories) {
  tools::RunReport report{.indices = tools::condition_indices(result)};
  if (!theories.empty()) report.theory = tools::compared_conditions(result, theories);
  return report;
}

/// Copies what a run has so far.
Job::MakeObject interim_of(const std::shared_ptr<const Scenario>& scenario, const RunResult& so_far,
                           tools::RunReport report) {
  auto outcome = std::make_shared<RunOutcome>(
      RunOutcome{.scenario = scenario, .result = so_far, .report = std::move(report)});
  return [outcome] { return nb::cast(outcome); };
}

Job::MakeObject run_in_thread(Job& job, const ScenarioSource& source,
                              const tools::RunArguments& arguments, std::optional<double> every) {
  const Session& session = job.session();
  const auto shared = std::make_shared<const Scenario>(source.read(hooks_of(session)));
  const Scenario& scenario = *shared;

  RunOptions options;
  if (every) options.checkpoint_seconds = *every;
  if (arguments.checkpoint) options.checkpoint_seconds = arguments.checkpoint->seconds;
  options.until = arguments.until;
  if (arguments.against) {
    options.references = references_against(scenario, *arguments.against);
  } else if (arguments.difference) {
    options.references = references_by_key(scenario, *arguments.difference);
  }

  const auto outcome = std::make_shared<RunOutcome>();
  outcome->scenario = shared;
  std::vector<std::string>& notes = outcome->notes;
  std::optional<tools::OutputFolder> folder;
  std::optional<Checkpoint> begun;
  if (arguments.out) {
    folder.emplace(*arguments.out);
    tools::claim_results(*folder, *arguments.out, scenario, arguments.resume, arguments.overwrite);
    if (arguments.resume) {
      const auto lock = use_netcdf();
      begun = tools::begun_in(*folder, arguments, scenario,
                              [&](const std::string& line, bool) { notes.push_back(line); });
    }
    if (begun) options.begun = &*begun;
  }
  std::vector<Theory> theories;
  if (arguments.compare) {
    theories = tools::compute_theories(scenario, TheorySource::automatic,
                                       thread_count(session.threads), session.stop_hook());
  }
  const auto write = [&](const RunResult& result, const tools::RunReport& report) {
    const auto lock = use_netcdf();
    tools::write_results_folder(*folder, scenario, result, report, arguments.nodes);
  };
  if (folder || every) {
    options.checkpoint = [&](const RunResult& so_far) {
      tools::RunReport report = report_of(so_far, theories);
      if (folder) {
        try {
          write(so_far, report);
        } catch (const RunFailed& error) {
          notes.push_back(std::string(error.what()) + "; the run continued");
        } catch (const std::bad_alloc&) {
          notes.push_back("no memory to write the results so far; the run continued");
        }
      }
      if (every) job.put_interim(interim_of(shared, so_far, std::move(report)));
    };
  }

  outcome->result = run(shared, session, options);
  for (const std::string& note : outcome->result.notes) notes.push_back(note);
  outcome->report = report_of(outcome->result, theories);
  outcome->problem = refused_controls(outcome->result);
  if (folder && !outcome->result.conditions.empty()) {
    try {
      write(outcome->result, outcome->report);
    } catch (const RunFailed& error) {
      outcome->problem = error.what();
    }
  }
  return [outcome] { return nb::cast(outcome); };
}

std::string summary_of(const RunOutcome& outcome) {
  std::string text;
  write_summary_json([&](std::string_view part) { text += part; }, *outcome.scenario,
                     outcome.result, outcome.report.indices, provenance(), outcome.report.theory);
  return text;
}

/// The content of results.nc of a result.
nb::dict tables_of(const RunOutcome& outcome, const RunResult& result, bool nodes) {
  const auto read = [&] {
    const nb::gil_scoped_release released;
    const auto lock = use_netcdf();
    return written_content([&](const NetcdfGroup& root) {
      put_results(root, *outcome.scenario, result, outcome.report.indices, provenance(), nodes);
    });
  };
  return object_of(read());
}

nb::dict difference_tables(const RunOutcome& outcome, const std::optional<std::string>& over,
                           const std::optional<std::string>& against) {
  RunResult result = outcome.result;
  set_differences(result, over ? references_by_key(*outcome.scenario, *over)
                               : references_against(*outcome.scenario, against.value_or("#0")));
  return tables_of(outcome, result, false);
}

void save(const RunOutcome& outcome, const std::string& path, bool overwrite, bool nodes) {
  const nb::gil_scoped_release released;
  const auto lock = use_netcdf();
  tools::OutputFolder folder(path);
  tools::claim_results(folder, path, *outcome.scenario, false, overwrite);
  tools::write_results_folder(folder, *outcome.scenario, outcome.result, outcome.report, nodes);
}

/// Visitor that keeps numbers by their names.
struct NumberColumns {
  std::vector<std::pair<std::string, std::vector<double>>> all = {};
  std::size_t at = 0;
  template <class T>
  void operator()(const char* name, T number, const char*) {
    if (at == all.size()) all.emplace_back(name, std::vector<double>());
    all[at++].second.push_back(static_cast<double>(number));
  }
};

/// Single replicates of a run by the backend that it had, a list for each column.
nb::dict replicates_of(const RunOutcome& outcome, const std::optional<std::uint64_t>& first,
                       const OptionalText& threads) {
  NumberColumns columns;
  {
    const nb::gil_scoped_release released;
    const Session session = job_session(
        arguments_of({{"--backend", outcome.result.machine.backend}, {"--threads", threads}}));
    replicate_figures(outcome.result, first, session,
                      [&](std::span<const ReplicateFigure> figures) {
                        for (const ReplicateFigure& figure : figures) {
                          columns.at = 0;
                          figure.fields(columns);
                        }
                      });
  }
  nb::dict made;
  for (auto& [name, numbers] : columns.all) {
    const std::size_t size = numbers.size();
    made[name.c_str()] = array_object(std::move(numbers), {size});
  }
  return made;
}

std::string comparison_of(const RunOutcome& outcome) {
  return outcome.report.theory.empty()
             ? ""
             : tools::comparison_table(*outcome.scenario, outcome.report.theory);
}

/// Simulates a scenario with the options of the command line. Where `every` is given, results so
/// far are interim results of the job, at most each `every` seconds.
std::unique_ptr<Job> start_run(ScenarioSource source, const tools::RunArguments& arguments,
                               std::optional<double> every) {
  Session session = job_session(arguments);
  tools::require_out(arguments.overwrite, arguments.out);
  tools::require_run_arguments(arguments);
  for (const std::string& set : tools::all_sets(arguments)) source.sets.push_back(set);
  return std::make_unique<Job>(std::move(session),
                               [source = std::move(source), arguments, every](Job& job) {
                                 return run_in_thread(job, source, arguments, every);
                               });
}

}  // namespace

void bind_run(nb::module_& module) {
  bind_arguments<tools::RunArguments>(module, "RunArguments");

  nb::class_<RunOutcome>(module, "RunOutcome")
      .def_prop_ro("complete", [](const RunOutcome& o) { return o.result.outcome.complete; })
      .def_prop_ro("interrupted", [](const RunOutcome& o) { return o.result.outcome.interrupted; })
      .def_prop_ro("conditions", [](const RunOutcome& o) { return o.result.conditions.size(); })
      .def_prop_ro("seconds", [](const RunOutcome& o) { return o.result.outcome.seconds; })
      .def_ro("notes", &RunOutcome::notes)
      .def_ro("problem", &RunOutcome::problem)
      .def_prop_ro("kept",
                   [](const RunOutcome& o) { return tools::kept_text(*o.scenario, o.result); })
      .def_prop_ro("scenario",
                   [](const RunOutcome& o) { return to_toml_document(scenario_tree(*o.scenario)); })
      .def("table",
           [](const RunOutcome& o) {
             return tools::result_table(*o.scenario, o.result, o.report.indices);
           })
      .def("comparison", &comparison_of)
      .def("summary", &summary_of)
      .def(
          "tables", [](const RunOutcome& o, bool nodes) { return tables_of(o, o.result, nodes); },
          nb::arg("nodes") = false,
          nb::sig("def tables(self, nodes: bool = False) -> dict[str, typing.Any]"))
      .def("difference", &difference_tables, nb::arg("over").none(), nb::arg("against").none(),
           nb::sig("def difference(self, over: str | None, against: str | None) -> dict[str, "
                   "typing.Any]"))
      .def("replicates", &replicates_of, nb::arg("first").none(), nb::arg("threads").none(),
           nb::sig("def replicates(self, first: int | None, threads: str | None) -> dict[str, "
                   "typing.Any]"))
      .def("save", &save, nb::arg("path"), nb::arg("overwrite"), nb::arg("nodes"));

  module.def("run", &start_run, nb::arg("source"), nb::arg("arguments"),
             nb::arg("every").none() = nb::none());
}

}  // namespace headlab::python
