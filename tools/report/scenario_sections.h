// SPDX-License-Identifier: Apache-2.0
/// \file Texts of a report on what has conditions: runs, closed forms, studies of depth.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tools/report/markup.h"
#include "tools/report/source.h"

namespace headlab::tools {

std::string paragraph(const std::string& text);

/// The parameter of a condition at a path of keys.
const Value& parameter(const Value& condition, std::initializer_list<const char*> path);

/// The first of some values, and how many there are where not all are among them.
std::string first_of(const std::vector<std::string>& values, const char* separator = ", ",
                     const char* more = ", …");

/// The different values of a parameter, in the order of the conditions.
std::vector<const Value*> values_of(const Value::Array& conditions,
                                    std::initializer_list<const char*> path);

/// A key over whose values a figure is least, by its full name, and all of them as text.
struct SearchedKey {
  std::string key = {};
  std::string values = {};
};

/// The keys that differ between conditions with their values, as a list; empty without any.
std::string swept_html(const Value::Array& conditions, const SearchedKey& searched = {});

/// The parameters of the scenario of a document as conditions: those of the points of
/// its curves, else its own.
Value::Array setups_of(const Value& document);

/// What is said of heads in the place of their parameters; empty: the parameters, or nothing.
struct HeadsShown {
  std::string count = {};
  std::string dim = {};
  std::string width = {};       ///< how the bandwidth or temperature is chosen
  std::string replicates = {};  ///< training sets
};

/// The ensemble with its heads, of a document that has the parameters of its scenario.
std::string heads_html(const Value& document, const HeadsShown& shown);

/// Where training sets come from, of a document that has the parameters of its scenario.
/// \param sizes  n, as HTML
std::string scenario_html(const Value& document, const std::string& sizes);

std::vector<Section> run_sections(const Source& source);
std::vector<Section> depth_sections(const Source& source);

/// How far simulation and closed forms are apart, where both are there.
std::string compared_html(const Source& source);

}  // namespace headlab::tools
