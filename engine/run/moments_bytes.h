// SPDX-License-Identifier: Apache-2.0
/// \file Moments as bytes, for messages and for files of units.
#pragma once

#include <string>

#include "engine/moments/moment_tree.h"
#include "engine/run/message_bytes.h"

namespace headlab {

void put_moments(MessageWriter& message, const Moments& moments);
/// Throws std::invalid_argument where the message has none.
Moments take_moments(MessageReader& message);

std::string bytes_of(const MomentTree& tree);
/// The tree with these bytes; throws std::invalid_argument where no tree of the layout has them.
MomentTree tree_of(const MomentLayout& layout, const std::string& bytes);

}  // namespace headlab
