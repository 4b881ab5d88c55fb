// SPDX-License-Identifier: Apache-2.0
/// \file Runs, theory, verdicts, allocations, heads, differences and reports in process.
#pragma once

#include <algorithm>
#include <cctype>
#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/run.h"
#include "tools/cli/results_folder.h"
#include "tools/cli/run_arguments.h"
#include "tools/python/src/job.h"
#include "tools/python/src/values.h"
#include "validation/theory/controls/control_means.h"

namespace headlab::python {

using OptionalText = std::optional<std::string>;

/// Options of the command line that were given as texts; throws InvalidInput.
inline tools::CommonArguments arguments_of(
    const std::vector<std::pair<const char*, OptionalText>>& given) {
  tools::CommonArguments arguments;
  tools::Options options;
  arguments.take(options, tools::simulation);
  for (const auto& [name, text] : given) {
    if (text) std::ranges::find(options.all, name, &tools::Option::name)->read({*text});
  }
  return arguments;
}

inline int threads_of(const OptionalText& threads) {
  return arguments_of({{"--threads", threads}}).threads.value_or(0);
}

inline Session job_session(const tools::CommonArguments& arguments) {
  Session session{.backend = arguments.backend, .control_means = control_means};
  tools::make_backend_of(session, arguments);
  session.threads = arguments.threads.value_or(0);
  if (arguments.max_time) session.deadline = deadline_in(arguments.max_time->seconds);
  return session;
}

/// A session of the backend cpu.
inline Session cpu_session(const OptionalText& threads) {
  return job_session(arguments_of({{"--backend", "cpu"}, {"--threads", threads}}));
}

/// Arguments of a command, whose options set("max_time", "30m") takes by their names.
template <class Arguments>
void bind_arguments(nanobind::module_& module, const char* name) {
  namespace nb = nanobind;
  nb::class_<Arguments>(module, name)
      .def(nb::init<>())
      .def(
          "set",
          [](Arguments& arguments, const std::string& key, const nb::object& value) {
            tools::Options options;
            arguments.list(options);
            for (const tools::Option& option : options.all) {
              std::string attribute = option.name.substr(option.name.starts_with("--") ? 2 : 0);
              std::ranges::transform(attribute, attribute.begin(),
                                     [](char c) { return c == '-' ? '_' : std::tolower(c); });
              if (attribute != key) continue;
              std::vector<std::string> texts;
              if (option.many && nb::try_cast(value, texts)) {
                if (!texts.empty()) option.read(texts);
              } else if (option.flag ? nb::isinstance<nb::bool_>(value)
                                     : nb::isinstance<nb::str>(value)) {
                if (option.flag && !nb::cast<bool>(value)) return;
                option.read({option.flag ? "" : nb::cast<std::string>(value)});
              } else if (option.flag || option.has_default || !value.is_none()) {
                throw nb::type_error(option.flag          ? "True or False"
                                     : option.many        ? "a list of texts"
                                     : option.has_default ? "a text"
                                                          : "a text or None");
              }
              return;
            }
            throw nb::attribute_error(key.c_str());
          },
          nb::arg("name"), nb::arg("value").none());
}

inline ReadHooks hooks_of(const Session& session) {
  return {.stop = session.stop_hook(), .report = session.stage("reading conditions")};
}

/// A document with the text of the command, and whether all of it was computed.
inline Job::MakeObject document(std::string json, std::string text, bool complete = true) {
  return [json = std::move(json), text = std::move(text), complete] {
    return nanobind::object(nanobind::make_tuple(json, text, complete));
  };
}

/// A run with what is said of it.
struct RunOutcome {
  std::shared_ptr<const Scenario> scenario;
  RunResult result;
  tools::RunReport report = {};
  std::vector<std::string> notes = {};
  /// Why files could not be written, where they could not; the result is there all the same.
  std::string problem = {};
};

/// Adds the class RunOutcome and the function that starts a run.
void bind_run(nanobind::module_& module);

/// Adds the functions that start or compute them. What they find is the document of --json with the
/// text of the command.
void bind_studies(nanobind::module_& module);

/// Adds selections of heads and dimensions, their growth and maps.
void bind_allocations(nanobind::module_& module);

/// Adds data sets, replays and files of results.
void bind_data(nanobind::module_& module);

/// Adds figures of the heads of trained models on text.
void bind_heads_on_text(nanobind::module_& module);

/// Adds estimates from arrays of the caller.
void bind_estimates(nanobind::module_& module);

/// Adds attention of arrays of the caller, and its gradients.
void bind_attention(nanobind::module_& module);

/// Adds the function that makes a table of a run, a document or a file.
void bind_tables(nanobind::module_& module);

}  // namespace headlab::python
