// SPDX-License-Identifier: Apache-2.0
#include "tools/python/src/scenario_source.h"

#include <string_view>

#include "engine/files/error.h"
#include "tools/python/src/values.h"

namespace headlab::python {

namespace {

/// What the reader says of the file that stands for an array, said of the array itself.
std::string about_arrays(const std::string& message, const DataArrays& arrays) {
  for (const auto& [name, array] : arrays) {
    const std::string key = name.substr(0, name.rfind('-'));
    const std::string of_file = key + ".path: ";
    if (!message.starts_with(of_file)) continue;
    std::string_view problem = std::string_view(message).substr(of_file.size());
    if (constexpr std::string_view law = "file: "; problem.starts_with(law)) {
      problem.remove_prefix(law.size());
    }
    return key + ": " + std::string(problem);
  }
  return message;
}

}  // namespace

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
  try {
    return read_scenario(document, "scenario of Python", sets, directory, arrays, hooks);
  } catch (const InvalidInput& error) {
    throw InvalidInput(about_arrays(error.what(), arrays));
  }
}

}  // namespace headlab::python
