// SPDX-License-Identifier: Apache-2.0
#include "kernels/control_groups.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <limits>
#include <new>
#include <system_error>

namespace headlab {

void visit_control_groups(const std::filesystem::path& root, std::string_view controller,
                          const std::function<void(const std::filesystem::path&, int)>& look) {
  const auto visit = [&](const std::filesystem::path& base, const std::string& group, int version) {
    std::filesystem::path folder = base;
    look(folder, version);
    for (const auto& part : std::filesystem::path(group).relative_path()) {
      if (part == "..") break;
      folder /= part;
      look(folder, version);
    }
  };
  // Lines ID:CONTROLLERS:GROUP; version 2 has no controllers.
  std::ifstream groups = system_file(root / "proc/self/cgroup");
  const std::filesystem::path base = root / "sys/fs/cgroup";
  std::string line;
  while (std::getline(groups, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      visit(base, group, 2);
      visit(base / "unified", group, 2);
    } else if (controllers.find("," + std::string(controller) + ",") != std::string::npos) {
      visit(base / controller, group, 1);
    }
  }
}

std::optional<int> processors_of_groups(const std::filesystem::path& root) {
  std::optional<int> least;
  visit_control_groups(root, "cpu", [&](const std::filesystem::path& folder, int version) {
    std::optional<std::uint64_t> quota, period;
    if (version == 2) {
      std::ifstream file = system_file(folder / "cpu.max");
      std::string time, of;
      file >> time >> of;
      quota = to_number(time);  // none where it is "max"
      period = to_number(of);
    } else {
      quota = number_in(folder / "cpu.cfs_quota_us");  // none where it is -1
      period = number_in(folder / "cpu.cfs_period_us");
    }
    if (!quota || !period || *period == 0) return;
    const std::uint64_t rounded = *quota / *period + (*quota % *period == 0 ? 0 : 1);
    constexpr std::uint64_t most = std::numeric_limits<int>::max();
    const auto processors = static_cast<int>(std::clamp<std::uint64_t>(rounded, 1, most));
    least = std::min(least.value_or(processors), processors);
  });
  return least;
}

std::optional<std::uint64_t> to_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::ifstream system_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file && errno == ENOMEM) throw std::bad_alloc();
  return file;
}

std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream in = system_file(file);
  std::string word;
  in >> word;
  return to_number(word);
}

}  // namespace headlab
