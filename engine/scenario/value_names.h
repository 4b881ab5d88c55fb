// SPDX-License-Identifier: Apache-2.0
/// \file Values by shorter names: "normal" for { law = "normal", dim = 4 }.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace headlab {

/// The place of the value that `written` stands for, nothing where it is none: a value in full, as
/// TOML or as it is, else the law that one of them alone has. Throws InvalidInput("OPTION: ...")
/// where several have that law.
/// \param values  different ones, TOML or plain text
std::optional<std::size_t> value_named(const std::string& option, const std::string& written,
                                       const std::vector<std::string>& values);

/// Whether two values, TOML or plain text, are the same: [0, 1] is [0.0, 1.0].
bool same_value(const std::string& a, const std::string& b);

}  // namespace headlab
