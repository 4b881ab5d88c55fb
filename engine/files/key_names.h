// SPDX-License-Identifier: Apache-2.0
/// \file Keys by shorter names: "bandwidth" or "kernel.bandwidth" for "heads.kernel.bandwidth".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/document.h"

namespace headlab {

/// The last part of a key, unquoted. Quoted parts contain no dots.
std::string last_part(const std::string& key);

/// Places of the keys that `name` stands for: that of the whole key where it is one, else those of
/// all keys that end with its parts.
std::vector<std::size_t> keys_named(const std::string& name, const std::vector<std::string>& keys);

/// "several keys end so - write data.n or queries.n", of the keys at these places.
std::string several_keys(const std::vector<std::size_t>& found,
                         const std::vector<std::string>& keys);

/// The place of the key that `name` stands for, nothing where it is none; throws
/// InvalidInput("OPTION: ...") where it may be several.
std::optional<std::size_t> key_named(const std::string& option, const std::string& name,
                                     const std::vector<std::string>& keys);

/// The key that `name` may mean: it ends with as many parts, which read nearly the same. Empty
/// where none does.
std::string near_key(const std::string& name, const std::vector<std::string>& keys);

/// " (allowed: data.n, run.seed)" and, where a key is near to `name`, " - did you mean "data.n"?"
std::string key_suggestion(const std::string& name, const std::vector<std::string>& keys);

/// Throws InvalidInput if `key` is not a key or section of the scenario `root`, but whole keys end
/// with it: "LOCATION: NAME: is not a whole key - write data.n"; or with nearly the same.
void require_whole_key(const Value& root, const std::string& key, const Location& location,
                       const std::string& name);

}  // namespace headlab
