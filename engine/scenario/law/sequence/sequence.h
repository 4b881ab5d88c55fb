// SPDX-License-Identifier: Apache-2.0
/// \file How the points of a training set follow one another: law `sequence` of `[data]`.
#pragma once

#include <cstdint>

#include "kernels/parameter.h"

namespace headlab {

struct DesignLaw;
struct Plan;

/// What a sequence may need to know to check itself, and what it changes in a plan.
struct SequenceSetting {
  const DesignLaw& design;
  std::uint64_t n = 0;
};

// off(): the points are drawn as independent ones are.

struct IndependentSequence : NoParameters {
  static constexpr const char* name = "independent";
  static constexpr const char* summary = "points are drawn independently of one another";

  bool off() const { return true; }
  void check(const SequenceSetting&) const {}
  void apply(Plan&) const {}
};

/// A stationary path, X_1 ~ N(mean, S), X_i - mean = c (X_{i-1} - mean) + sqrt(1 - c^2) (an
/// independent draw less the mean), with the margin of the design at every point. Its bits:
/// kernels/sequence.h.
struct Ar1Sequence {
  static constexpr const char* name = "ar1";
  static constexpr const char* summary = "a stationary first-order autoregression of normal points";
  static constexpr const char* equation =
      "X_i - mean = c (X_{i - 1} - mean) + sqrt{1 - c^2} Z_i, Z_i ~ N(0, Σ)";
  static constexpr const char* example = "correlation = 0.5";

  double correlation = 0;

  bool off() const { return correlation == 0; }

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("correlation", correlation, within(-0.9999, 0.9999), "of successive points");
  }
  void check(const SequenceSetting& setting) const;
  void apply(Plan& plan) const;
};

/// Successive rows of the design's data file. Every replicate has its own first row, each of the
/// N - n + 1 possible ones being equally probable.
struct RowsSequence : NoParameters {
  static constexpr const char* name = "rows";
  static constexpr const char* summary = "successive rows of the design's data file";

  bool off() const { return false; }
  void check(const SequenceSetting& setting) const;
  void apply(Plan& plan) const;
};

}  // namespace headlab
