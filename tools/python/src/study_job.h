// SPDX-License-Identifier: Apache-2.0
/// \file What jobs of studies have in common.
#pragma once

#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <utility>

#include "engine/run/session.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/options.h"
#include "tools/python/src/job.h"
#include "validation/theory/controls/control_means.h"

namespace headlab::python {

using OptionalText = std::optional<std::string>;

inline Session session_of(const std::string& backend, const OptionalText& threads,
                          const OptionalText& max_time) {
  Session session{.backend = backend, .control_means = control_means};
  *session.backend;  // made here, or refused
  session.threads = tools::parse_threads(threads, true);
  if (max_time) session.deadline = deadline_in(tools::parse_duration("--max-time", *max_time));
  return session;
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

}  // namespace headlab::python
