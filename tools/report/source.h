// SPDX-License-Identifier: Apache-2.0
/// \file What a report is made from: one document of headlab with what its results file adds.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/json_reader.h"
#include "engine/moments/jackknife.h"
#include "engine/moments/mse_by_replicates.h"
#include "validation/curves/curves.h"

namespace headlab::tools {

enum class SourceKind { run, theory, verdicts, allocation, map, heads, measured, curves };

/// How the standard error of one condition fell.
struct PrecisionCurve {
  std::size_t condition = 0;
  std::vector<MseAfter> points;
};

/// The slope of log MSE on log n of one setting of the other keys.
struct FittedSlope {
  std::string setting;  ///< "d 3", empty of the only one
  SlopeEstimate slope;
};

/// The slopes of a run.
struct SlopesOverN {
  std::string at_the_least;  ///< the key over which each point takes the least MSE; empty: none
  std::vector<FittedSlope> all = {};
};

struct Source {
  SourceKind kind = SourceKind::run;
  Value document;
  std::string command = {};  ///< makes the results again, of several verdicts a line for each;
                             ///< empty where it is not known
  std::string scenario_text = {};  ///< empty where it is not known
  std::vector<PrecisionCurve> precision = {};
  SlopesOverN slopes = {};
  std::size_t conditions = 0;  ///< of the results; the document may hold fewer

  /// The conditions of the document.
  const Value::Array& shown_conditions() const;
  /// Conditions have layers in place of errors.
  bool is_study_of_depth() const;
};

/// Leaves some conditions alone, of a source that shows all of its conditions.
void keep_conditions(Source& source, const std::vector<std::size_t>& numbers);

/// Most conditions that a report takes in; more are thinned evenly, keeping first and last.
inline constexpr std::size_t max_conditions = 4000;

/// What a document is of; nothing where it is of no kind that a report knows.
std::optional<SourceKind> kind_of(const Value& document);

/// Parses the text of a document that headlab wrote with --json or --out. Nothing where it is of
/// no kind that a report knows; throws InvalidInput, naming `file`, where it is not JSON.
std::optional<Source> read_document(const std::string& text, const std::string& file);

/// Up to `most` of the numbers 0 .. count - 1, evenly spaced, with the first and the last.
std::vector<std::size_t> spread(std::size_t count, std::size_t most);

/// The conditions whose precision a report shows.
std::vector<std::size_t> precision_conditions(std::size_t count);

/// {"value", "mcse"}, or a number without standard error.
Estimate estimate_of(const Value& json);

}  // namespace headlab::tools
