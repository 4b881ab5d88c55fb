// SPDX-License-Identifier: Apache-2.0
/// \file The control groups of Linux that this process is in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace headlab {

/// Calls look(folder, version) for the folders of a controller's groups that this process is in,
/// from the outermost to its own, of version 1 or 2. Inside a container its own may not be there,
/// but those above it are.
/// \param root a folder that stands for /
void visit_control_groups(const std::filesystem::path& root, std::string_view controller,
                          const std::function<void(const std::filesystem::path&, int)>& look);

/// Processors that the control groups allow, as a quota of time: the least, rounded up; none where
/// nothing is said.
std::optional<int> processors_of_groups(const std::filesystem::path& root = "/");

/// A file of the system, which may not be there. \throws std::bad_alloc
std::ifstream system_file(const std::filesystem::path& path);

/// The number that a word is, or that the first word of a file is; none where it is another word.
std::optional<std::uint64_t> to_number(const std::string& text);
std::optional<std::uint64_t> number_in(const std::filesystem::path& file);

}  // namespace headlab
