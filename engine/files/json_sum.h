// SPDX-License-Identifier: Apache-2.0
/// \file The sum that a JSON document has as its last member:
///     "sha256": SHA-256 of the text before the comma in front of it, without the white space
///     between
///               its parts
#pragma once

#include <string>
#include <string_view>

#include "engine/files/sha256.h"

namespace headlab {

inline constexpr const char* json_sum_key = "sha256";

/// The sum of a text that comes piece by piece.
class JsonSum {
 public:
  void add(std::string_view piece);
  /// To be called once, after all pieces.
  std::string digest() { return sum_.digest(); }

 private:
  Sha256 sum_;
  std::string kept_;  ///< of a piece
  bool in_string_ = false;
  bool escaped_ = false;
};

/// Throws InvalidInput, a line that begins with the path, where a document has a sum and its text
/// another. Returns whether it has one.
bool check_json_sum(const std::string& path, std::string_view text, const std::string& advice = "");

}  // namespace headlab
