// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace headlab {

/// Takes the parts of a text in their order.
using TextSink = std::function<void(std::string_view)>;

}  // namespace headlab
