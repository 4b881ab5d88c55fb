// SPDX-License-Identifier: Apache-2.0
#include "engine/files/stored_numbers.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headlab {
namespace {

/// Sign, exponent and fraction as IEEE 754 has them.
double by_definition(unsigned bits, int exponent_bits, int fraction_bits) {
  const unsigned ones = (1U << exponent_bits) - 1, fraction = bits & ((1U << fraction_bits) - 1);
  const auto exponent = static_cast<int>(bits >> fraction_bits & ones);
  const int bias = static_cast<int>(ones / 2);
  double size = std::ldexp(fraction, 1 - bias - fraction_bits);
  if (exponent == static_cast<int>(ones)) {
    size = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent > 0) {
    size = std::ldexp(fraction + (1U << fraction_bits), exponent - bias - fraction_bits);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class T>
void expect_all_of_16_bits(StoredType type, int exponent_bits, int fraction_bits) {
  std::vector<std::uint16_t> stored(0x10000);
  for (unsigned bits = 0; bits < stored.size(); ++bits) {
    stored[bits] = static_cast<std::uint16_t>(bits);
  }
  std::vector<T> found(stored.size());
  convert_run(type, reinterpret_cast<const char*>(stored.data()), std::span(found));
  for (unsigned bits = 0; bits < stored.size(); ++bits) {
    const double expected = by_definition(bits, exponent_bits, fraction_bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found[bits])) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(found[bits]), expected) << bits;
      ASSERT_EQ(std::signbit(found[bits]), std::signbit(expected)) << bits;
    }
  }
}

TEST(StoredNumbers, AreThoseOfTheirBits) {
  expect_all_of_16_bits<float>(StoredType::float16, 5, 10);
  expect_all_of_16_bits<double>(StoredType::float16, 5, 10);
  expect_all_of_16_bits<float>(StoredType::bfloat16, 8, 7);
  expect_all_of_16_bits<double>(StoredType::bfloat16, 8, 7);
}

TEST(StoredNumbers, NeedNotBeAligned) {
  const double number = 1.1;
  std::string bytes(1 + sizeof number, '\0');
  std::memcpy(bytes.data() + 1, &number, sizeof number);
  std::vector<float> found(1);
  convert_run(StoredType::float64, bytes.data() + 1, std::span(found));
  EXPECT_EQ(found[0], 1.1F);
}

template <class T>
void expect_found_where_they_are() {
  std::vector<T> numbers(5000, std::numeric_limits<T>::max());
  const auto found = [&] { return first_not_finite(std::span<const T>(numbers)); };
  EXPECT_FALSE(found());
  numbers[4999] = std::numeric_limits<T>::infinity();
  EXPECT_EQ(found(), 4999U);
  numbers[1024] = std::numeric_limits<T>::quiet_NaN();
  EXPECT_EQ(found(), 1024U);
  numbers[1023] = -std::numeric_limits<T>::infinity();
  EXPECT_EQ(found(), 1023U);
}

TEST(StoredNumbers, ThatAreNotFiniteAreFound) {
  expect_found_where_they_are<float>();
  expect_found_where_they_are<double>();
}

}  // namespace
}  // namespace headlab
