// SPDX-License-Identifier: Apache-2.0
/// \file Counts in sentences: the number as it is read, and the word behind it.
#pragma once

#include <cstdint>
#include <string>

namespace headlab {

/// "12288", "1,235,000": with commas between thousands from 10^6 on. What is to be typed or read by
/// a program has none.
inline std::string grouped(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  if (count < 1000000) return digits;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

/// "1 shard", "3 shards"; "1 query", "2 queries" where `many` says the plural.
inline std::string counted(std::uint64_t count, const std::string& one,
                           const std::string& many = "") {
  return grouped(count) + " " + (count == 1 ? one : many.empty() ? one + "s" : many);
}

}  // namespace headlab
