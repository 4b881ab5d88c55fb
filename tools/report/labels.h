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
/// that would read alike when shortened in the middle the parts in which they differ are kept, and
/// where these are too many their number among the texts stands behind.
std::vector<std::string> distinct_labels(const std::vector<std::string>& texts, std::size_t most);

/// A text that is a number, as "−0.5" or "1e−05".
bool is_number_text(const std::string& text);

/// A text in lines of at most `length` characters with '\n' between them; only words that are
/// longer are cut, and a value stays with the name in front of it.
std::string in_lines(const std::string& text, std::size_t length);

/// Labels that tell texts apart, each in at most so many such lines.
std::vector<std::string> labels_in_lines(const std::vector<std::string>& texts, std::size_t length,
                                         std::size_t lines);

/// A text of a picture that starts at a point, as SVG: symbols with their subscripts, and √ for
/// sqrt. \param down, up, size  of a subscript, as attributes
std::string with_subscripts(const std::string& text, const std::string& down, const std::string& up,
                            const std::string& size);

}  // namespace headlab::tools
