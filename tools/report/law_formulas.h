// SPDX-License-Identifier: Apache-2.0
/// \file Formulas of laws, with the names of their parameters.
#pragma once

#include <string>
#include <vector>

#include "tools/report/source.h"

namespace headlab::tools {

/// The formula of a law in the notation of mathml(); empty where the law has none.
std::string law_formula(const std::string& family, const std::string& law);

/// A law with its formula (else its summary) and its parameters, as the content of a <dd>; `laws`
/// differ in their parameters alone, and there is at least one.
std::string law_html(const std::string& family, const std::vector<const Value*>& laws);

/// The parameters of laws, with each value that they take, as a note; empty without any.
std::string parameters_html(const std::vector<const Value*>& laws);

}  // namespace headlab::tools
