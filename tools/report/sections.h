// SPDX-License-Identifier: Apache-2.0
/// \file The texts of a report in the order of Morris, White and Crowther (2019): aims,
/// data-generating mechanisms, estimands, methods, performance measures; then verdicts.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/report/markup.h"
#include "tools/report/source.h"

namespace headlab::tools {

/// The title of a source: the scenario's name, or what it is.
std::string source_title(const Source& source);

/// The sections of a source before its figures, and those behind them without the provenance.
std::vector<Section> sections_before_figures(const Source& source);
std::vector<Section> sections_behind_figures(const Source& source);

/// "path, chordal"
std::string reading_text(const Value& verdict);
/// "softmax, signal, window"; empty where the verdict has none of these.
std::string setting_text(const Value& verdict);
/// "hdi: path, chordal (softmax, signal)": what a verdict is called.
std::string verdict_name(const Value& verdict);
/// " in hdi_path_softmax" behind the name of a verdict that others have too, or nothing.
std::string in_scenario(const std::string& scenario);
/// "0.0018 ± 0.0036", "–" where there is none.
std::string effect_text(const Value& verdict);
/// "± 0.05" or "≥ −0.05"
std::string allowed_text(const Value& verdict);
/// Margin of the comparison that decided a verdict, NaN where there is none.
double margin_of(const Value& verdict);
/// The scenario of each verdict by its name where the verdict reads as another does, else nothing.
std::vector<std::string> scenarios_that_tell_apart(
    const Value::Array& verdicts, const std::function<std::string(const Value&)>& text_of_verdict);
/// "refuted (expected supported)"
std::string outcome_text(const Value& verdict);
/// What a comparison is of, in words: "MSE at heads.count = 4" of "mse at heads.count = 4". Numbers
/// have six significant digits at most.
std::string comparison_words(const std::string& of);
/// "effect 0.5 ± 0.1 where ± 0.05 is allowed, of ..." of the comparison that decided a verdict,
/// with the values compared where they are known and no counterexample has them.
std::string decisive_text(const Value& verdict);
/// Training sets behind that effect; "none: computed" without simulation.
std::string replicates_text(const Value& verdict);
/// "MSE .. against .., difference .., z = 12.3"; empty where there is none.
std::string counterexample_text(const Value& verdict);

/// The keys in which cells of a map differ, with their values in words.
std::vector<std::pair<std::string, std::string>> varied_settings(const Value::Array& cells);

/// What survives of the theory: a row a claim, with the readings under which it holds, those under
/// which it fails, and below them its counterexamples with the commands that show them. Empty
/// without verdicts.
std::string survives_html(const Source& source);

}  // namespace headlab::tools
