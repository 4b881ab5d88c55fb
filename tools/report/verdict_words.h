// SPDX-License-Identifier: Apache-2.0
/// \file Verdicts of verdicts.json in words, for figures and tables, and what survives of them.
#pragma once

#include <string>

#include "tools/report/source.h"

namespace headlab::tools {

/// "path, chordal"
std::string reading_text(const Value& verdict);
/// "softmax", "kernels vary"; empty where the verdict has none.
std::string kernel_text(const Value& verdict);
/// "softmax, signal, window"; empty where the verdict has none of these.
std::string setting_text(const Value& verdict);
/// "0.0018 ± 0.0036", "–" where there is none.
std::string effect_text(const Value& verdict);
/// "± 0.05" or "≥ −0.05"
std::string allowed_text(const Value& verdict);
/// "refuted (expected supported)"
std::string outcome_text(const Value& verdict);
/// "counterexample: MSE .. against .., z 12.3"; empty where there is none.
std::string counterexample_text(const Value& verdict);

/// What survives of the theory: a row a claim, with the readings under which it holds, those under
/// which it fails, and the commands that show its counterexamples. Empty without verdicts.
std::string survives_html(const Source& source);

}  // namespace headlab::tools
