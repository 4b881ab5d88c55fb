// SPDX-License-Identifier: Apache-2.0
/// \file Formulas of laws and of the stages of a head, with the names of their parameters.
#pragma once

#include <string>
#include <vector>

#include "engine/scenario/law_reader.h"
#include "tools/report/source.h"

namespace headlab::tools {

/// The formula of a metric of layers in the notation of mathml(); empty where it has none.
std::string metric_formula(const std::string& metric);

/// The metrics of layers that plots show, the residual first.
const std::vector<std::string>& drawn_layer_metrics();

/// "share of the residual" of "residual_share": the words of a metric of layers.
std::string metric_words(const std::string& metric);

/// The parameters in a formula that a law leaves out, with the defaults that its documentation
/// names, as a note; empty where there are none.
std::string defaults_html(const Value& law, const std::string& formula,
                          const std::vector<ParameterDescription>& known);

/// The value of a parameter: whole where it has at most 400 characters, else of numbers how many
/// there are and where they stand.
std::string shown_value(const Value& value);

/// A law with its formula (else its summary) and its parameters, as the content of a <dd>; `laws`
/// differ in their parameters alone, and there is at least one.
std::string law_html(const std::string& family, const std::vector<const Value*>& laws);

/// The estimate of the ensemble, with `conditions` of a run: that of plain heads, or where stages
/// are in force that of the tokens they leave. As displayed() takes it.
std::string ensemble_formula(const Value::Array& conditions);

/// The stages in force in some condition as list items, in the order in which they apply; empty
/// where there are none.
std::string mechanism_html(const Value::Array& conditions);

}  // namespace headlab::tools
