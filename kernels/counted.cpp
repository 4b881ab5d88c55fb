// SPDX-License-Identifier: Apache-2.0
#include "kernels/counted.h"

namespace headlab {

std::string grouped(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  if (count < 1000000) return digits;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  std::string text = grouped(count) + " ";
  if (count == 1 || many.empty()) {
    text += one;
    if (count != 1) text += 's';
  } else {
    text += many;
  }
  return text;
}

}  // namespace headlab
