// SPDX-License-Identifier: Apache-2.0
#include "kernels/host.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <unistd.h>

#include "kernels/control_groups.h"

namespace headlab {
namespace {

/// The number that a variable holds, between two; none where it is not set.
std::optional<std::int64_t> number_of(const char* name, std::int64_t least, std::int64_t most) {
  const char* const value = environment_variable(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < least ||
      number > most) {
    throw std::invalid_argument(std::string(name) + ": is not a whole number from " +
                                std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

std::optional<int> played_processors() {
  const auto number = number_of("HEADLAB_PROCESSORS", 1, 4096);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::string trimmed(const std::string& text) {
  constexpr const char* blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

const char* environment_variable(const char* name) {
  return std::getenv(name);
}

std::string processor_name_in(std::istream& cpuinfo) {
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || trimmed(line.substr(0, colon)) != "model name") continue;
    if (std::string name = trimmed(line.substr(colon + 1)); !name.empty()) return name;
  }
  return "unknown processor";
}

std::string processor_name() {
  if (const char* const name = environment_variable("HEADLAB_PROCESSOR_NAME")) {
    std::istringstream cpuinfo("model name\t: " + std::string(name));
    return processor_name_in(cpuinfo);
  }
  std::ifstream cpuinfo = system_file("/proc/cpuinfo");
  return processor_name_in(cpuinfo);
}

int usable_processors() {
  if (const auto played = played_processors()) return *played;
  // Asked once, because the system opens files for the answer.
  static const int here = usable_processors_here().count;
  return here;
}

UsableProcessors usable_processors_here() {
  if (const auto played = played_processors()) return {*played, "HEADLAB_PROCESSORS"};
  UsableProcessors here{online_processors(), "machine"};
  // A set of the size that the system has may be larger than cpu_set_t.
  constexpr int most = 1 << 16;
  for (int size = CPU_SETSIZE; size <= most; size *= 2) {
    cpu_set_t* const set = CPU_ALLOC(size);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(size);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0 && count < here.count) here = {count, "affinity"};
    if (known) break;
  }
  if (const auto quota = processors_of_groups(); quota && *quota < here.count) {
    here = {*quota, "control group"};
  }
  return here;
}

int online_processors() {
  if (const auto played = played_processors()) return *played;
  return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string widest_simd() {
  const char* const target = environment_variable("HEADLAB_SIMD");
  if (target == nullptr) return "";
  for (const char* const known : {"avx512", "avx2", "portable"}) {
    if (std::string_view(target) == known) return known;
  }
  throw std::invalid_argument("HEADLAB_SIMD: is not avx512, avx2 or portable");
}

std::string machine_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::time_t wall_clock() {
  // Until the year 9999, the last that dates are written for.
  if (const auto played = number_of("HEADLAB_CLOCK", 0, 253402300799)) return *played;
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

}  // namespace headlab
