// SPDX-License-Identifier: Apache-2.0
#include "engine/files/temporary_path.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "engine/files/folder.h"
#include "kernels/control_groups.h"
#include "kernels/host.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark = ".tmp-";
constexpr std::size_t random_digits = 16, max_name = 255;

struct Process {
  std::string host;
  std::uint64_t space = 0;  ///< inode of the namespace of process numbers
  std::uint64_t number = 0;
  std::uint64_t start = 0;  ///< 0 where it is not known

  bool operator==(const Process&) const = default;
};

/// When a process began, in clock ticks since the machine started; 0 where it is not known.
std::uint64_t start_of(const std::string& process) {
  std::ifstream file = system_file("/proc/" + process + "/stat");
  std::string text;
  std::getline(file, text);
  // The name of the program, in parentheses, may hold anything.
  std::size_t at = text.rfind(')');
  if (at == std::string::npos) return 0;
  constexpr int fields_between = 20;
  for (int i = 0; i < fields_between && at != std::string::npos; ++i) at = text.find(' ', at + 1);
  std::uint64_t start = 0;
  if (at != std::string::npos) {
    std::from_chars(text.data() + at + 1, text.data() + text.size(), start);
  }
  return start;
}

std::string host() {
  std::string text = machine_name();
  constexpr std::size_t room = 32;
  if (text.size() > room) text.resize(room);
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

/// This process. A fork is another one.
Process this_process() {
  struct stat space = {};
  if (::stat("/proc/self/ns/pid", &space) != 0) space.st_ino = 0;
  return {host(), space.st_ino, static_cast<std::uint64_t>(::getpid()), start_of("self")};
}

/// The last part of a name at a '-', cut off.
std::optional<std::string_view> last_part(std::string_view& name) {
  const std::size_t at = name.rfind('-');
  if (at == std::string_view::npos) return {};
  const std::string_view part = name.substr(at + 1);
  name = name.substr(0, at);
  return part;
}

std::optional<std::uint64_t> last_number(std::string_view& name) {
  const std::optional<std::string_view> part = last_part(name);
  std::uint64_t number = 0;
  if (!part || part->empty()) return {};
  const auto [end, error] = std::from_chars(part->data(), part->data() + part->size(), number);
  if (error != std::errc() || end != part->data() + part->size()) return {};
  return number;
}

/// Whose a file of this name is; nobody's where it is no temporary name.
std::optional<Process> maker_of(std::string_view name) {
  const std::optional<std::string_view> random = last_part(name);
  if (!random || random->size() != random_digits ||
      !std::ranges::all_of(*random, [](unsigned char c) { return std::isxdigit(c) != 0; })) {
    return {};
  }
  const auto start = last_number(name);
  const auto number = last_number(name);
  const auto space = last_number(name);
  const std::size_t at = name.rfind(mark);
  if (!start || !number || !space || at == std::string_view::npos || at == 0) return {};
  return Process{std::string(name.substr(at + mark.size())), *space, *number, *start};
}

bool is_old(const fs::path& path) {
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  return !error && fs::file_time_type::clock::now() - written > std::chrono::minutes(10);
}

bool has_ended(const Process& process) {
  if (::kill(static_cast<pid_t>(process.number), 0) != 0 && errno == ESRCH) return true;
  // Another process may have the number now.
  const std::uint64_t start = start_of(std::to_string(process.number));
  return start != 0 && process.start != 0 && start != process.start;
}

}  // namespace

std::string temporary_name(const std::string& path) {
  const Process self = this_process();
  std::random_device random;
  char digits[random_digits + 1];
  std::snprintf(digits, sizeof digits, "%08x%08x", random(), random());
  const std::string end = std::string(mark) + self.host + "-" + std::to_string(self.space) + "-" +
                          std::to_string(self.number) + "-" + std::to_string(self.start) + "-" +
                          digits;
  const fs::path whole = path;
  std::string name = whole.filename().string();
  name.resize(std::min(name.size(), max_name - end.size()));
  return (whole.parent_path() / (name + end)).string();
}

std::vector<std::string> clear_temporaries(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::string> cleared;
  const std::lock_guard lock(mutex);
  std::error_code error;
  if (!cleared.insert(fs::weakly_canonical(folder, error).string()).second) return {};
  const Process self = this_process();
  std::vector<std::string> left, others;
  for (const std::string& name : names_in(folder, error)) {
    const std::optional<Process> maker = maker_of(name);
    if (!maker) continue;
    const fs::path path = fs::path(folder) / name;
    if (maker->host != self.host || maker->space != self.space) {
      if (is_old(path)) others.push_back(path.string());
    } else if (has_ended(*maker)) {
      left.push_back(path.string());
    }
  }
  for (const std::string& path : left) remove_made(path);
  return others;
}

}  // namespace headlab
