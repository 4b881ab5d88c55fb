// SPDX-License-Identifier: Apache-2.0
/// \file Labels of one picture, which tell what they stand for apart.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headlab::tools {

/// At most `most` characters of a text, with "…" in the middle where some are left out.
std::string shortened_in_the_middle(const std::string& text, std::size_t most);

/// Each text in at most `most` characters, 12 at least. Texts that differ stay different: of those
/// that would read alike when shortened in the middle the part in which they differ is kept, and
/// where that is too long as well their number among the texts stands behind.
std::vector<std::string> distinct_labels(const std::vector<std::string>& texts, std::size_t most);

}  // namespace headlab::tools
