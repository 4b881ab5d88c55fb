// SPDX-License-Identifier: Apache-2.0
#include "engine/files/available_memory.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>

#include "engine/files/error.h"
#include "kernels/host.h"

namespace headlab {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> to_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

/// The number a file holds; none where the file is not there or says "max".
std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return to_number(word);
}

/// The number after `key` at the start of a line.
std::optional<std::uint64_t> number_after(const std::filesystem::path& file,
                                          const std::string& key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string name;
    std::string number;
    words >> name >> number;
    if (name == key) return to_number(number);
  }
  return std::nullopt;
}

/// Names of the files of one version of control groups.
struct ControlFiles {
  const char* limit;
  const char* usage;
  const char* file_cache;  ///< in memory.stat
};
constexpr ControlFiles version_2 = {"memory.max", "memory.current", "inactive_file"};
constexpr ControlFiles version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                    "total_inactive_file"};

/// What the limits of a group and of those above it leave. `group` is as /proc/self/cgroup names
/// it; inside a container it may not be there below `base`, but those above it are.
std::uint64_t left_in_groups(const std::filesystem::path& base, const std::string& group,
                             const ControlFiles& files) {
  std::uint64_t left = no_limit;
  auto look = [&](const std::filesystem::path& directory) {
    const auto limit = number_in(directory / files.limit);
    const auto usage = number_in(directory / files.usage);
    if (!limit || !usage) return;
    // The kernel gives up clean pages of files before it refuses memory.
    const std::uint64_t cache =
        std::min(number_after(directory / "memory.stat", files.file_cache).value_or(0), *usage);
    const std::uint64_t used = *usage - cache;
    left = std::min(left, *limit > used ? *limit - used : 0);
  };
  std::filesystem::path directory = base;
  look(directory);
  for (const auto& part : std::filesystem::path(group).relative_path()) {
    if (part == "..") break;
    directory /= part;
    look(directory);
  }
  return left;
}

/// What the files of the system say.
std::uint64_t measured_available(const std::filesystem::path& root) {
  std::uint64_t least = no_limit;
  if (const auto kib = number_after(root / "proc/meminfo", "MemAvailable:")) {
    least = *kib < no_limit / 1024 ? *kib * 1024 : no_limit;
  }
  // Lines ID:CONTROLLERS:GROUP; version 2 has no controllers.
  std::ifstream groups(root / "proc/self/cgroup");
  const std::filesystem::path base = root / "sys/fs/cgroup";
  std::string line;
  while (std::getline(groups, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      least = std::min({least, left_in_groups(base, group, version_2),
                        left_in_groups(base / "unified", group, version_2)});
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, left_in_groups(base / "memory", group, version_1));
    }
  }
  return least;
}

/// The same, at most a tenth of a second old: a sweep asks for every condition, and the files take
/// longer to read than a small condition to check.
std::uint64_t recent_available() {
  using Clock = std::chrono::steady_clock;
  static std::mutex mutex;
  static std::optional<Clock::time_point> measured_at;
  static std::uint64_t available = 0;
  const std::lock_guard lock(mutex);
  const Clock::time_point now = Clock::now();
  if (!measured_at || now - *measured_at > std::chrono::milliseconds(100)) {
    available = measured_available("/");
    measured_at = now;
  }
  return available;
}

}  // namespace

std::uint64_t available_bytes(const std::filesystem::path& root) {
  if (const char* limit = environment_variable("HEADLAB_MEMORY_LIMIT")) {
    const auto number = to_number(limit);
    if (!number) {
      throw InvalidInput("HEADLAB_MEMORY_LIMIT: is \"" + std::string(limit) +
                         "\" (allowed: a number of bytes)");
    }
    return *number;
  }
  return root == "/" ? recent_available() : measured_available(root);
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes) / 1024;
  int unit = 0;
  // From 1023.95 on, one digit after the point would show 1024.0.
  while (size >= 1023.95) {
    size /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", size, units[unit]);
  return text;
}

void require_memory(std::uint64_t bytes, const std::string& what, const std::string& knob,
                    const std::string& alternative, const std::string& where) {
  const std::uint64_t available = available_bytes();
  // What does not fit in 64 bits fits nowhere, even where the system does not tell.
  if (bytes <= available && bytes != no_limit) return;
  throw InvalidInput((where.empty() ? "" : where + ": ") + knob + ": needs " +
                     (bytes == no_limit ? "more than 16 EiB" : format_bytes(bytes)) +
                     " of memory " + what + ", " + format_bytes(available) + " available - lower " +
                     knob + (alternative.empty() ? "" : " " + alternative));
}

void require_file_memory(const std::string& file, std::uint64_t numbers,
                         std::uint64_t number_bytes) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(numbers, number_bytes, &bytes)) bytes = no_limit;
  const std::uint64_t available = available_bytes();
  if (bytes <= available && bytes != no_limit) return;
  throw InvalidInput(file + ": needs " + format_bytes(bytes) + " of memory for its " +
                     std::to_string(numbers) + " numbers, " + format_bytes(available) +
                     " available - use a file of fewer rows or columns, or NPY of float32");
}

}  // namespace headlab
