// SPDX-License-Identifier: Apache-2.0
/// \file Inputs for readers of NetCDF: edits of a good file, so that damage reaches headlab's own
/// readers instead of ending in the HDF5 library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headlab::fuzz {

/// The bytes of a file like the one at `path` that edit() can change: those that are made in memory
/// lack what the library needs for that. Throws std::runtime_error where the library does.
std::string editable(const std::string& path);

/// Changes a file of NetCDF-4 as `text` says, a line each; lines that say nothing are passed over.
/// NAME may have groups in front, as in nodes/first.
///     dimension NAME LENGTH         in place of one of this name, which is renamed
///     define NAME TYPE DIMENSION..  the same for a variable: double, int64, float, char, string
///     put NAME PLACE VALUE          element PLACE of a variable, counted along all of its axes
///     number NAME VALUE             an attribute
///     text NAME VALUE
///     drop NAME                     removes an attribute
///     rename NAME NEW               a variable, dimension or group
///     group NAME
/// Throws std::runtime_error where the library does.
void edit(const std::string& path, std::string_view text);

/// Walks the file as programs do with one of others, once for all that read it: where that finds it
/// in order, the copy takes its place, with a sum. The rest each reader is to refuse by itself.
void walk(const std::string& path);

/// Names of everything in files of these bytes, with the first words of lines.
std::vector<std::string> words_of(const std::vector<std::string>& files);

}  // namespace headlab::fuzz
