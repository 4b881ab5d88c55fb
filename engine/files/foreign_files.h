// SPDX-License-Identifier: Apache-2.0
/// \file NetCDF files that the program did not write, or that were changed since. HDF5 may crash
/// on what is damaged, or take all memory; another process opens them first.
#pragma once

#include <string>
#include <vector>

#include "engine/files/netcdf/calls.h"

namespace headlab {

struct ForeignFiles {
  /// Starts a process that calls serve_foreign_files(). Empty: files are opened in this process.
  std::vector<std::string> command;
};

/// To be called before the first file is read.
void set_foreign_files(ForeignFiles how);

/// Bytes that the NetCDF library can be given for those of the file at `path`: its own where the
/// sum behind them is right, otherwise a copy of what it holds. Throws NetcdfDamage, NetcdfError,
/// and RunFailed where memory is short or no process can be started.
NetcdfBytes trusted_netcdf(const std::string& path, std::string bytes);

/// Says once that there are files of headlab that have no sums, naming the first.
void note_without_sums(const std::string& path);

/// Answers on standard output for the files that come by standard input, until it ends.
void serve_foreign_files();

}  // namespace headlab
