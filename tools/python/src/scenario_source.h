// SPDX-License-Identifier: Apache-2.0
/// \file Where a scenario comes from: a file, a text or a document of Python objects.
#pragma once

#include <string>
#include <vector>

#include "engine/files/document.h"
#include "engine/scenario/data_arrays.h"
#include "engine/scenario/scenario.h"

namespace headlab::python {

struct ScenarioSource {
  enum class Kind { file, text, document };

  Kind kind = Kind::file;
  std::string text;  ///< path, or TOML
  Value document = {};
  DataArrays arrays = {};
  std::vector<std::string> sets = {};
  std::string directory = ".";  ///< of relative paths; a file has its own

  /// Reads it as the command line does. Throws InvalidInput. Takes use_netcdf().
  Scenario read(const ReadHooks& hooks = {}) const;
};

}  // namespace headlab::python
