// SPDX-License-Identifier: Apache-2.0
/// \file A std::variant of plain structs that a kernel takes by value and visits.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <variant>

#include "kernels/hd.h"

namespace headlab {

template <class Variant>
class DeviceVariant;

/// Holds one of Ts by its bytes: std::visit does not work on a device.
template <class... Ts>
class DeviceVariant<std::variant<Ts...>> {
 public:
  DeviceVariant() = default;
  explicit DeviceVariant(const std::variant<Ts...>& from) : index_(static_cast<int>(from.index())) {
    std::visit([&](const auto& value) { std::memcpy(bytes_, &value, sizeof value); }, from);
  }

  /// Calls visitor(value) with the value held.
  template <class Visitor>
  HEADLAB_HD void visit(const Visitor& visitor) const {
    visit_from<0>(visitor);
  }

 private:
  static_assert((std::is_trivially_copyable_v<Ts> && ...));

  template <int Index, class Visitor>
  HEADLAB_HD void visit_from(const Visitor& visitor) const {
    if constexpr (Index < static_cast<int>(sizeof...(Ts))) {
      if (index_ == Index) {
        std::variant_alternative_t<Index, std::variant<Ts...>> value{};
        memcpy(&value, bytes_, sizeof value);
        visitor(value);
      } else {
        visit_from<Index + 1>(visitor);
      }
    }
  }

  int index_ = 0;
  alignas(8) unsigned char bytes_[std::max({sizeof(Ts)...})] = {};
};

}  // namespace headlab
