// SPDX-License-Identifier: Apache-2.0
/// \file What a folder holds. The iterators of libstdc++ 12 end the program where memory runs out,
/// since they allocate in functions that must not throw, and so does its remove_all().
#pragma once

#include <string>
#include <system_error>
#include <vector>

namespace headlab {

/// The names in `folder`, sorted, with none for itself and the folder above. Where it cannot be
/// read, `error` says why, and there are none.
std::vector<std::string> names_in(const std::string& folder, std::error_code& error);

/// The sorted names in `folder`, which are none if it does not exist.
/// \throws InvalidInput where it cannot be read
std::vector<std::string> names_in(const std::string& folder);

/// Removes a regular file, or a folder with all that is in it, as far as that is possible; nothing
/// that a link leads to.
void remove_made(const std::string& path) noexcept;

}  // namespace headlab
