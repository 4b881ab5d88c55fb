// SPDX-License-Identifier: Apache-2.0
/// \file Targets of fuzzing: readers of files that come from elsewhere, called with any bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headlab::fuzz {

/// An input with its name.
using NamedInput = std::pair<std::string, std::string>;

/// One reader.
struct Target {
  const char* name;
  /// Reads an input. Throws InvalidInput where the reader rejects it; everything else that it
  /// throws is a fault.
  void (*read)(const std::string& bytes);
  /// Words that inputs are made of, besides those of NAME.dict.
  std::vector<std::string> (*words)() = nullptr;
  /// Inputs to begin with, besides those of corpus/NAME.
  std::vector<NamedInput> (*seeds)() = nullptr;
};

/// Each is defined in the file of its name.
namespace reader {
extern const Target claims, csv, differences, formula, head_file, manifest, measures, model,
    model_config, netcdf, npy, npz, report, results, safetensors, scenario, shard_index, summary,
    table, tables;
}

/// Those that a program of tests replays.
extern const std::vector<const Target*> targets;

/// Throws std::logic_error unless `holds`.
void require(bool holds, const char* what);

/// Why the target rejects an input, in one line of printable text; nothing where it reads it.
/// Throws whatever else the reader throws.
std::optional<std::string> refusal_of(const Target& target, const std::string& bytes);

/// The path of file number `which`, which has these bytes until the next call for it.
std::string file_of(const std::string& bytes, std::size_t which = 0);

/// Numbers of files that several targets name.
inline constexpr std::size_t copied_file = 100, made_file = 101;

}  // namespace headlab::fuzz
