// SPDX-License-Identifier: Apache-2.0
/// \file Formulas of the coordinates of a point, as laws of regression and noise take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/formula.h"
#include "kernels/hd.h"
#include "kernels/parameter.h"
#include "kernels/table.h"

namespace headlab {

/// A formula of the coordinates x1 ... xd of a point and of named constants.
struct PointFormula {
  std::string text = {};
  NamedNumbers constants = {};

  template <class Visitor>
  void parameters(Visitor& visit, const char* key, const char* doc) {
    visit.required(key, text, doc);
    visit.optional("constants", constants, within(-1e6, 1e6), "numbers by name, default none");
  }
  /// Throws ParameterError, at `key` for the formula.
  void check(const char* key, int d) const;
  Formula parsed() const;
  /// The program, whose variables are numbers of coordinates, at the end of the table.
  std::int64_t add_to(Table& table, int& steps) const;
};

/// Evaluates a program of the table at a point.
struct PointProgram {
  std::int64_t program = 0;
  int steps = 0;
  bool operator==(const PointProgram&) const = default;

  template <class Number, class T>
  HEADLAB_HD T at(const Number* table, const T* x, std::ptrdiff_t stride) const {
    return formulas::value<T>(table + program, steps, [&](int j) { return x[j * stride]; });
  }
};

}  // namespace headlab
