// SPDX-License-Identifier: Apache-2.0
#include "engine/run/unit_file.h"

#include <cstring>
#include <utility>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/run/checkpoint.h"

namespace headlab {
namespace {

constexpr std::size_t word_bytes = sizeof(std::int64_t);

std::size_t words_of(std::size_t bytes) {
  return (bytes + word_bytes - 1) / word_bytes;
}

[[noreturn]] void reject_units(const std::string& option, const std::string& path,
                               const std::string& problem) {
  throw InvalidInput(option + ": " + one_line(path) + ": " + problem +
                     " - remove it, or choose another folder");
}

std::map<std::string, std::string> units_in(const NetcdfGroup& root) {
  std::map<std::string, std::string> units;
  if (root.dimension("unit") == 0) return units;
  const std::vector<std::string> names = root.texts("name");
  const std::vector<std::int64_t> sizes = root.integers("size"), words = root.integers("words");
  if (sizes.size() != names.size()) throw NetcdfError("size: is of another length than name");
  std::size_t at = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto size = static_cast<std::size_t>(sizes[i]);
    if (sizes[i] < 0 || size > word_bytes * (words.size() - at)) {
      throw NetcdfError("words: has fewer than size says");
    }
    std::string bytes(size, '\0');
    if (size > 0) std::memcpy(bytes.data(), words.data() + at, size);
    at += words_of(size);
    units.emplace(names[i], std::move(bytes));
  }
  return units;
}

}  // namespace

void write_unit_file(const std::string& path, const UnitFile& file) {
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes, words;
  for (const auto& [name, bytes] : file.units) {
    names.push_back(name);
    sizes.push_back(static_cast<std::int64_t>(bytes.size()));
    const std::size_t at = words.size();
    words.resize(at + words_of(bytes.size()));
    if (!bytes.empty()) std::memcpy(words.data() + at, bytes.data(), bytes.size());
  }
  try {
    NetcdfImage image;
    const NetcdfGroup root = image.root();
    const Provenance program = provenance();
    root.put_attribute("headlab_version", program.version);
    root.put_attribute("git", program.git);
    root.put_attribute("compiler", program.compiler);
    root.put_attribute("build_type", program.build_type);
    root.put_attribute("command", file.command);
    root.put_attribute("study", file.study);
    root.put_attribute("shard", static_cast<std::int64_t>(file.shard));
    root.put_attribute("shards", static_cast<std::int64_t>(file.shards));
    root.put_attribute("complete", std::int64_t{file.complete ? 1 : 0});
    if (file.exit_code) root.put_attribute("exit_code", std::int64_t{*file.exit_code});
    root.define_dimension("unit", names.size());
    if (!names.empty()) {
      root.define_dimension("word", words.size());
      root.write("name", {"unit"}, {"name of the unit", ""}, names);
      root.write("size", {"unit"}, {"bytes of the unit"}, sizes);
      root.write("words", {"word"}, {"its bytes, as whole numbers"}, words);
    }
    image.save(path);
  } catch (const NetcdfError& error) {
    throw RunFailed(path + ": cannot be written (" + error.what() + ")");
  }
}

UnitFile read_unit_file(const std::string& option, const std::string& path) {
  try {
    const NetcdfInput input(path);
    const NetcdfGroup root = input.root();
    UnitFile file{.command = root.text_attribute("command"),
                  .study = root.text_attribute("study"),
                  .shard = static_cast<std::uint64_t>(root.integer_attribute("shard")),
                  .shards = static_cast<std::uint64_t>(root.integer_attribute("shards")),
                  .complete = root.integer_attribute("complete") != 0};
    if (const std::string other = other_program(root, provenance()); !other.empty()) {
      reject_units(option, path, "is of another headlab (" + other + ")");
    }
    file.units = units_in(root);
    if (root.has_attribute("exit_code")) {
      file.exit_code = static_cast<int>(root.integer_attribute("exit_code"));
    }
    return file;
  } catch (const NetcdfError& error) {
    reject_units(option, path, std::string("cannot be read (") + error.what() + ")");
  }
}

void require_unit_file(const std::string& option, const std::string& path, const UnitFile& file,
                       const std::string& command, const std::string& study) {
  if (file.command != command) {
    reject_units(option, path, "is of " + one_line(file.command, 60) + ", not of " + command);
  }
  if (file.study != study) {
    reject_units(option, path, "is of other settings, another seed, other data or another backend");
  }
}

}  // namespace headlab
