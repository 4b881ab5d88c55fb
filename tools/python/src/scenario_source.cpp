// SPDX-License-Identifier: Apache-2.0
#include "tools/python/src/scenario_source.h"

#include <mutex>

#include "tools/python/src/values.h"

namespace headlab::python {

Scenario ScenarioSource::read(const ReadHooks& hooks) const {
  const auto lock = use_netcdf();
  switch (kind) {
    case Kind::file:
      return read_scenario(text, sets, hooks);
    case Kind::text:
      return parse_scenario(text, "TOML text", sets, directory, hooks);
    case Kind::document:
      break;
  }
  return read_scenario(document, "scenario of Python", sets, directory, arrays, hooks);
}

}  // namespace headlab::python
