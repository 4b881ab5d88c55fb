// SPDX-License-Identifier: Apache-2.0
/// \file `headlab run` in process: the same steps on the same functions, without a terminal.
#pragma once

#include <memory>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/run.h"
#include "tools/cli/options.h"
#include "tools/cli/results_folder.h"
#include "tools/python/src/job.h"
#include "tools/python/src/scenario_source.h"

namespace headlab::python {

/// A run with what is said of it.
struct RunOutcome {
  std::shared_ptr<const Scenario> scenario;
  RunResult result;
  tools::RunReport report = {};
  std::vector<std::string> notes = {};
  /// Why files could not be written, where they could not; the result is there all the same.
  std::string problem = {};
};

/// Simulates a scenario with the options of the command line. Where `every` is given, results so
/// far are interim results of the job, at most each `every` seconds.
std::unique_ptr<Job> start_run(ScenarioSource source, const tools::RunArguments& arguments,
                               std::optional<double> every);

/// Adds the class Result and the function that starts a run.
void bind_run(nanobind::module_& module);

}  // namespace headlab::python
