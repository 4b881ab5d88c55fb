// SPDX-License-Identifier: Apache-2.0
#include "engine/files/stored_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace headlab {
namespace {

static_assert(std::endian::native == std::endian::little);

/// Where the exponent is all ones, a number is not finite.
constexpr std::uint32_t single_exponent = 0x7f800000;
constexpr std::uint64_t double_exponent = 0x7ff0000000000000;

/// The exponent moves from 5 bits to 8, where the same number has a bias larger by 112; this also
/// makes numbers of those that have no leading one.
float from_half(std::uint16_t bits) {
  constexpr float to_bias = 0x1p112F;
  const auto size = static_cast<std::uint32_t>(bits & 0x7fff) << 13;
  const float finite = std::bit_cast<float>(size) * to_bias;
  const std::uint32_t known =
      size >= 0x0f800000 ? size | single_exponent : std::bit_cast<std::uint32_t>(finite);
  return std::bit_cast<float>(known | static_cast<std::uint32_t>(bits & 0x8000) << 16);
}

float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <class Stored, class T, class Convert>
void convert_each(const char* from, std::span<T> to, const Convert& convert) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    Stored item;
    std::memcpy(&item, from + i * sizeof item, sizeof item);
    to[i] = static_cast<T>(convert(item));
  }
}

template <class Stored, class T>
void cast_each(const char* from, std::span<T> to) {
  convert_each<Stored>(from, to, [](Stored item) { return item; });
}

/// Numbers that are read at a time, and looked at while they are in the cache.
constexpr std::size_t run_to_read = std::size_t{1} << 16;
/// Whether T holds the bits as they are kept.
template <class T>
bool is_kept_as(StoredType type) {
  return type == (sizeof(T) == sizeof(float) ? StoredType::float32 : StoredType::float64);
}

/// Numbers that are not looked at one by one unless one of them is not finite.
constexpr std::size_t run_to_look_at = 1024;

template <class Bits, class T>
bool has_exponent(std::span<const T> numbers, Bits exponent) {
  Bits found = 0;
  for (const T number : numbers) {
    found |= (std::bit_cast<Bits>(number) & exponent) == exponent ? Bits{1} : Bits{0};
  }
  return found != 0;
}

bool all_finite(std::span<const float> numbers) {
  return !has_exponent(numbers, single_exponent);
}
bool all_finite(std::span<const double> numbers) {
  return !has_exponent(numbers, double_exponent);
}

}  // namespace

std::size_t bytes_of(StoredType type) {
  switch (type) {
    case StoredType::float64:
    case StoredType::signed64:
    case StoredType::unsigned64:
      return 8;
    case StoredType::float32:
    case StoredType::signed32:
    case StoredType::unsigned32:
      return 4;
    case StoredType::float16:
    case StoredType::bfloat16:
    case StoredType::signed16:
    case StoredType::unsigned16:
      return 2;
    case StoredType::signed8:
    case StoredType::unsigned8:
      return 1;
  }
  throw std::logic_error("no type of numbers");
}

template <class T>
void convert_run(StoredType type, const char* from, std::span<T> to) {
  switch (type) {
    case StoredType::float64:
      return cast_each<double>(from, to);
    case StoredType::float32:
      return cast_each<float>(from, to);
    case StoredType::float16:
      return convert_each<std::uint16_t>(from, to, from_half);
    case StoredType::bfloat16:
      return convert_each<std::uint16_t>(from, to, from_bfloat);
    case StoredType::signed64:
      return cast_each<std::int64_t>(from, to);
    case StoredType::signed32:
      return cast_each<std::int32_t>(from, to);
    case StoredType::signed16:
      return cast_each<std::int16_t>(from, to);
    case StoredType::signed8:
      return cast_each<std::int8_t>(from, to);
    case StoredType::unsigned64:
      return cast_each<std::uint64_t>(from, to);
    case StoredType::unsigned32:
      return cast_each<std::uint32_t>(from, to);
    case StoredType::unsigned16:
      return cast_each<std::uint16_t>(from, to);
    case StoredType::unsigned8:
      return cast_each<std::uint8_t>(from, to);
  }
}

template <class T>
std::optional<std::size_t> first_not_finite(std::span<const T> numbers) {
  for (std::size_t begin = 0; begin < numbers.size(); begin += run_to_look_at) {
    const auto run = numbers.subspan(begin, std::min(run_to_look_at, numbers.size() - begin));
    if (all_finite(run)) continue;
    const auto found = std::ranges::find_if_not(run, [](T x) { return std::isfinite(x); });
    return begin + static_cast<std::size_t>(found - run.begin());
  }
  return {};
}

template <class T>
std::optional<std::size_t> read_numbers(
    StoredType type, std::span<T> to,
    const std::function<void(std::uint64_t first, std::span<char> bytes)>& read) {
  const bool as_kept = is_kept_as<T>(type);
  const std::size_t size = bytes_of(type);
  std::vector<char> room(as_kept ? 0 : std::min(to.size(), run_to_read) * size);
  std::optional<std::size_t> wrong;
  for (std::size_t begin = 0; begin < to.size(); begin += run_to_read) {
    const auto run = to.subspan(begin, std::min(run_to_read, to.size() - begin));
    if (as_kept) {
      read(begin, {reinterpret_cast<char*>(run.data()), run.size_bytes()});
    } else {
      const auto bytes = std::span(room).first(run.size() * size);
      read(begin, bytes);
      convert_run(type, bytes.data(), run);
    }
    const auto found = wrong ? std::nullopt : first_not_finite(std::span<const T>(run));
    if (found) wrong = begin + *found;
  }
  return wrong;
}

template void convert_run(StoredType, const char*, std::span<float>);
template void convert_run(StoredType, const char*, std::span<double>);
template std::optional<std::size_t> read_numbers(
    StoredType, std::span<float>, const std::function<void(std::uint64_t, std::span<char>)>&);
template std::optional<std::size_t> read_numbers(
    StoredType, std::span<double>, const std::function<void(std::uint64_t, std::span<char>)>&);
template std::optional<std::size_t> first_not_finite(std::span<const float>);
template std::optional<std::size_t> first_not_finite(std::span<const double>);

}  // namespace headlab
