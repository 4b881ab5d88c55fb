// SPDX-License-Identifier: Apache-2.0
/// \file Counts in sentences: the number as it is read, and the word behind it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headlab {

/// "12288", "1,235,000": with commas between thousands from 10^6 on. What is to be typed or read by
/// a program has none.
std::string grouped(std::uint64_t count);

/// "1 shard", "3 shards"; "1 query", "2 queries" where `many` says the plural.
std::string counted(std::uint64_t count, std::string_view one, std::string_view many = "");

}  // namespace headlab
