// SPDX-License-Identifier: Apache-2.0
/// \file How a table of numbers is read that a law names.
#pragma once

#include <optional>
#include <type_traits>

#include "kernels/law/design/file.h"

namespace headlab {

/// What a scenario says of a table besides the parameters of the law that names it: backends know
/// its numbers alone.
struct TableForm {
  std::optional<bool> header = {};  ///< of a CSV file; absent: as its first line looks

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("header", header, "whether the first line of a CSV has names");
  }
};

template <class Law>
inline constexpr bool names_table = std::is_same_v<Law, FileDesign>;

}  // namespace headlab
