// SPDX-License-Identifier: Apache-2.0
#include "engine/files/available_memory.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "kernels/control_groups.h"
#include "kernels/counted.h"
#include "kernels/host.h"

namespace headlab {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

/// The number after `key` at the start of a line.
std::optional<std::uint64_t> number_after(const std::filesystem::path& file,
                                          const std::string& key) {
  std::ifstream in = system_file(file);
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

/// What the limit of a group leaves.
std::uint64_t left_in_group(const std::filesystem::path& group, const ControlFiles& files) {
  const auto limit = number_in(group / files.limit);
  const auto usage = number_in(group / files.usage);
  if (!limit || !usage) return no_limit;
  // The kernel gives up clean pages of files before it refuses memory.
  const std::uint64_t cache =
      std::min(number_after(group / "memory.stat", files.file_cache).value_or(0), *usage);
  const std::uint64_t used = *usage - cache;
  return *limit > used ? *limit - used : 0;
}

/// What the limit of the address space leaves (ulimit -v).
std::uint64_t left_of_address_space() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return no_limit;
  const std::uint64_t used = address_space_taken();
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

/// What the files of the system say.
std::uint64_t measured_available(const std::filesystem::path& root) {
  std::uint64_t least = no_limit;
  if (const auto kib = number_after(root / "proc/meminfo", "MemAvailable:")) {
    least = *kib < no_limit / 1024 ? *kib * 1024 : no_limit;
  }
  visit_control_groups(root, "memory", [&](const std::filesystem::path& group, int version) {
    least = std::min(least, left_in_group(group, version == 2 ? version_2 : version_1));
  });
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
    available = std::min(measured_available("/"), left_of_address_space());
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

std::uint64_t address_space_taken() {
  const auto pages = number_in("/proc/self/statm");
  return pages.value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return counted(bytes, "byte");
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes) / 1024;
  int unit = 0;
  // From 1023.95 on, one digit after the point would show 1024.0.
  while (size >= 1023.95) {
    size /= 1024;
    ++unit;
  }
  return formatted("%.1f %s", size, units[unit]);
}

std::string available_text() {
  const std::uint64_t available = available_bytes();
  return available == no_limit ? "the system does not say how much is available"
                               : format_bytes(available) + " available";
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
