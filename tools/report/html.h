// SPDX-License-Identifier: Apache-2.0
/// \file Elements of HTML that are well-formed XML too, and text in them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headlab::tools {

/// `text` as character data or as an attribute in double quotes: markup becomes entities, invalid
/// UTF-8 and control characters other than line breaks and tabs become U+FFFD.
std::string escaped(std::string_view text);

using Attributes = std::vector<std::pair<const char*, std::string>>;

/// <name key="value">content</name>, with values escaped and `content` taken as markup; without
/// content <name key="value"/>.
std::string element(const char* name, const Attributes& attributes, std::string_view content);
std::string element(const char* name, std::string_view content);
std::string empty_element(const char* name, const Attributes& attributes);

}  // namespace headlab::tools
