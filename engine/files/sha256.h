// SPDX-License-Identifier: Apache-2.0
/// \file SHA-256 (FIPS 180-4), the sum that sha256sum prints.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace headlab {

/// Hexadecimal digits of a sum.
inline constexpr std::size_t sha256_digits = 64;

/// The sum of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  /// The sum under way: both go on by themselves.
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const std::byte> bytes);
  /// A text with a byte behind it that no text has.
  void add(const std::string& text);
  /// sha256_digits of them. To be called once, after all bytes.
  std::string digest();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The sum of texts, one by one.
std::string sha256_of_texts(const std::vector<std::string>& texts);

/// The sum of a file, in memory that does not grow with it. Throws RunFailed where the file
/// cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace headlab
