// SPDX-License-Identifier: Apache-2.0
/// \file How the heads of a layer are measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace headlab {

/// How a layer is measured.
struct HeadSetting {
  /// Of each sequence, drawn, whose weights are compared, and where neither z nor gradients are
  /// given its only ones; 0: all.
  std::size_t queries = 0;
  /// The most of these that heads are exchanged at: the first half of as many, and one of each of
  /// the parts of the others.
  std::size_t exchange_queries = 128;
  std::uint64_t seed = 0;         ///< of these draws
  bool exact = false;             ///< weights in float64, whatever the layer's numbers are
  std::size_t min_documents = 8;  ///< for standard errors, refits and words
  double refit_tokens = 16;       ///< for each column of z, or there is no refit
  double ridge = 1e-6;            ///< of the mean diagonal of C, added to it
  /// Of the terms across contexts: output, next_token or array; empty: none are found.
  std::string target = {};
  std::string strata = "token";  ///< of these terms: token or none
  bool leave_one_out = false;    ///< heads as predictors of what follows, without the own key
  // What words stand for: limits of shares, with two standard errors.
  double writes_little = 0.01, can_be_written = 0.003, exchangeable = 0.1;
};

}  // namespace headlab
