// SPDX-License-Identifier: Apache-2.0
/// \file Numbers as files keep them, little-endian, converted run by run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace headlab {

/// What each number of a run is kept as: IEEE 754, the upper half of a float32, two's complement.
enum class StoredType {
  float64,
  float32,
  float16,
  bfloat16,
  signed64,
  signed32,
  signed16,
  signed8,
  unsigned64,
  unsigned32,
  unsigned16,
  unsigned8
};

std::size_t bytes_of(StoredType type);

/// Numbers that lie one after another, aligned or not, rounded to T. \tparam T float or double
template <class T>
void convert_run(StoredType type, const char* from, std::span<T> to);

/// The first of them that is infinite or not a number.
template <class T>
std::optional<std::size_t> first_not_finite(std::span<const T> numbers);

/// Numbers of a file, run after run: `read` puts the bytes of those from its first argument on
/// where it is told, which is in their place where T is what they are kept as. Returns the first
/// that is not finite.
template <class T>
std::optional<std::size_t> read_numbers(
    StoredType type, std::span<T> to,
    const std::function<void(std::uint64_t first, std::span<char> bytes)>& read);

}  // namespace headlab
