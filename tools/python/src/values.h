// SPDX-License-Identifier: Apache-2.0
/// \file Between Python objects and the documents and files of the engine.
#pragma once

#include <mutex>
#include <nanobind/nanobind.h>
#include <string>

#include "engine/files/document.h"
#include "engine/files/netcdf_file.h"
#include "engine/scenario/data_arrays.h"

namespace headlab::python {

/// A document from nested dicts, lists, arrays, texts and numbers; numbers of arrays are never
/// text. Values have no location. Throws InvalidInput, naming the key, for objects that have no
/// place in TOML and for nesting deeper than 32.
Value document_of(nanobind::handle object);

/// Arrays by their names, which stay alive with what is returned.
DataArrays arrays_of(nanobind::dict arrays);

/// A group of a NetCDF file as {"attributes": {...}, "variables": {name: (dimensions, values,
/// attributes)}, "groups": {name: ...}}. Numbers are NumPy arrays, texts lists.
nanobind::dict object_of(const NetcdfGroup& group);

/// Held by whoever uses the NetCDF library, which knows no threads.
std::mutex& netcdf_mutex();

/// Takes netcdf_mutex() without the GIL.
class NetcdfLock {
 public:
  NetcdfLock() {
    const nanobind::gil_scoped_release released;
    netcdf_mutex().lock();
  }
  ~NetcdfLock() { netcdf_mutex().unlock(); }
  NetcdfLock(const NetcdfLock&) = delete;
  NetcdfLock& operator=(const NetcdfLock&) = delete;
};

}  // namespace headlab::python
