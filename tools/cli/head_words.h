// SPDX-License-Identifier: Apache-2.0
/// \file How alike heads are, in words: what `headlab hdi` says besides its table.
#pragma once

#include <string>
#include <vector>

#include "validation/diversity/alike_heads.h"

namespace headlab::tools {

/// "a", "a and b", "a, b and c"; a word that is repeated throughout, once.
std::string and_listed(const std::vector<std::string>& words);

/// The most alike pairs of heads, a line each, heads with one subspace together; then what the
/// comparison does not say.
std::string alike_text(const HeadDiversity& diversity, const AlikeHeads& alike);

}  // namespace headlab::tools
