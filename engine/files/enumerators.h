// SPDX-License-Identifier: Apache-2.0
/// \file Words for the enumerators of an enumeration.
#pragma once

#include <cstddef>

namespace headlab {

/// The word of `value`: there is one for each enumerator up to `last`, in their order.
template <auto last, class... Words>
constexpr const char* word_of(decltype(last) value, Words... words) {
  static_assert(sizeof...(words) == static_cast<std::size_t>(last) + 1);
  const char* const all[] = {words...};
  return all[static_cast<std::size_t>(value)];
}

}  // namespace headlab
