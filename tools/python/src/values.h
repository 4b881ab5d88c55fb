// SPDX-License-Identifier: Apache-2.0
/// \file Between Python objects and the documents and files of the engine.
#pragma once

#include <mutex>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/netcdf/file.h"
#include "engine/scenario/data_arrays.h"
#include "engine/scenario/sweep.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::python {

/// A document from nested dicts, lists, arrays, texts and numbers; numbers of arrays are never
/// text. Values have no location. Throws InvalidInput, naming the key, for objects that have no
/// place in TOML and for nesting deeper than 32.
Value document_of(nanobind::handle object);

/// Arrays by their names, which stay alive with what is returned.
DataArrays arrays_of(nanobind::dict arrays);

/// Numbers as a NumPy array, which keeps them.
template <class T>
nanobind::object array_object(std::vector<T> values, const std::vector<std::size_t>& shape) {
  auto* const kept = new std::vector<T>(std::move(values));
  const nanobind::capsule owner(kept,
                                [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nanobind::cast(
      nanobind::ndarray<nanobind::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

/// All that a group of a NetCDF file holds.
struct GroupContent {
  struct Variable {
    std::string name;
    std::vector<std::string> dimensions;
    std::vector<std::size_t> shape;
    NetcdfGroup::Values values;
    std::vector<std::pair<std::string, NetcdfGroup::Attribute>> attributes;
  };
  std::string name;  ///< empty for that of the file
  std::vector<std::pair<std::string, NetcdfGroup::Attribute>> attributes;
  std::vector<Variable> variables;
  std::vector<GroupContent> groups;
};

/// Reads all of a group, with use_netcdf().
GroupContent content_of(const NetcdfGroup& group);

/// The same as {"attributes": {...}, "variables": {name: (dimensions, shape, values, attributes)},
/// "groups": {name: ...}}. Numbers become NumPy arrays, texts lists.
nanobind::dict object_of(GroupContent content);

/// All that `put` writes into a group.
template <class Put>
GroupContent written_content(const Put& put) {
  NetcdfImage image;
  put(image.root());
  const NetcdfBytes bytes = image.bytes();
  return content_of(NetcdfInput(bytes).root());
}

/// Held by whoever uses the NetCDF library, which knows no threads. Nothing may be done with Python
/// meanwhile: another thread may wait for the lock with the GIL held.
std::unique_lock<std::mutex> use_netcdf();

/// Where a scenario comes from: a file, a text or a document of Python objects.
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
