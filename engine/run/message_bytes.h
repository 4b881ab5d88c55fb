// SPDX-License-Identifier: Apache-2.0
/// \file Numbers and texts as the bytes of a message, between programs of one build.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/moments/moment_tree.h"

namespace headlab {

class MessageWriter {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void put(Number number) { append(&number, sizeof number); }
  void put(const std::string& text) {
    put(std::uint64_t{text.size()});
    append(text.data(), text.size());
  }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void put(const std::vector<Number>& numbers) {
    put(std::uint64_t{numbers.size()});
    append(numbers.data(), numbers.size() * sizeof(Number));
  }

  void reserve(std::size_t size) { bytes_.reserve(size); }
  std::string bytes() && { return std::move(bytes_); }

 private:
  void append(const void* from, std::size_t size) {
    bytes_.append(static_cast<const char*>(from), size);
  }

  std::string bytes_;
};

/// Reads what a MessageWriter has written, in the same order; throws std::invalid_argument where
/// the message ends too early.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number number() {
    Number number;
    take(&number, sizeof number);
    return number;
  }
  std::string text() {
    std::string text(size(1), '\0');
    take(text.data(), text.size());
    return text;
  }
  template <class Number>
  std::vector<Number> numbers() {
    std::vector<Number> numbers(size(sizeof(Number)));
    take(numbers.data(), numbers.size() * sizeof(Number));
    return numbers;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::size_t size(std::size_t each) {
    const auto count = number<std::uint64_t>();
    if (count > bytes_.size() / each) throw std::invalid_argument("a message is cut off");
    return count;
  }
  void take(void* to, std::size_t size) {
    if (size > bytes_.size()) throw std::invalid_argument("a message is cut off");
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }

  std::string_view bytes_;
};

void put_moments(MessageWriter& message, const Moments& moments);
/// Throws std::invalid_argument where the message has none.
Moments take_moments(MessageReader& message);

std::string bytes_of(const MomentTree& tree);
/// The tree with these bytes; throws std::invalid_argument where no tree of the layout has them.
MomentTree tree_of(const MomentLayout& layout, const std::string& bytes);

}  // namespace headlab
