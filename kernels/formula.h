// SPDX-License-Identifier: Apache-2.0
/// \file Formulas that a user writes: a text becomes a list of operations on a stack, which
/// numbers, floats and tiles of points pass through alike.
///
///   a < b, <=, >, >=, ==, !=          1 where it holds, else 0
///   a + b, a - b, a * b, a / b, -a    as usual
///   a ^ b                             binds tightest, from the right: -2^2 is -4, 2^3^2 is 512
///   abs sqrt exp log sin cos tan tanh floor ceil round, min(a, b, ...) max(a, b, ...), pi
///
/// Angles are in radians, log is the natural one. In float32 each operation has the error of its
/// function in kernels/math.h; a ^ b with a power b that is no whole number has that of
/// exp(b log a), some |b log a| ulp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/hd.h"
#include "kernels/math.h"
#include "kernels/tile.h"

namespace headlab {

enum class FormulaOperation {
  constant,  ///< pushes the operand
  variable,  ///< pushes the variable of this number
  add,
  subtract,
  multiply,
  divide,
  power,
  whole_power,  ///< to the power of the operand, a whole number in [-max_whole_power, ...]
  negate,
  less,
  at_most,
  greater,
  at_least,
  equal,
  unequal,
  min,
  max,
  abs,
  sqrt,
  exp,
  log,
  sin,
  cos,
  tan,
  tanh,
  floor,
  ceil,
  round
};

/// Whether an operation takes two numbers; the others take one, or none where they push it.
HEADLAB_HD bool is_binary(FormulaOperation operation) {
  return (operation >= FormulaOperation::add && operation <= FormulaOperation::power) ||
         (operation >= FormulaOperation::less && operation <= FormulaOperation::max);
}

/// A text that is no formula. what() says what is wrong and where.
class FormulaError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct Formula {
  static constexpr int max_depth = 16;        ///< of the stack
  static constexpr int max_steps = 512;       ///< of the list
  static constexpr int max_whole_power = 64;  ///< of those that are products
  static constexpr std::size_t max_text = 4096;

  struct Step {
    FormulaOperation operation;
    double operand = 0;
  };
  std::vector<Step> steps;
  std::vector<std::string> names;  ///< of the variables, in the order of the text

  /// [2 steps]: operation and operand of each.
  std::vector<double> program() const;
  /// The power of |x| with which it may grow as the variables x do; infinite for exponentials and
  /// where something may come near 0 under a fraction.
  double growth() const;
  /// The largest size that it has for any finite variables; infinite where nothing bounds it.
  double bound() const;
};

/// Whether a number may be called so: a word that is not a function and not pi.
bool is_free_name(const std::string& name);

/// Throws FormulaError. What does not depend on variables is computed here.
/// \param constant  the number that a name stands for; nothing for that of a variable
Formula parse_formula(const std::string& text,
                      const std::function<std::optional<double>(const std::string&)>& constant);

namespace formulas {

/// x^power for a whole power, from products.
template <class T>
HEADLAB_HD T whole_power(const T& x, int power) {
  T result(1);
  T square = x;
  for (int rest = power < 0 ? -power : power; rest > 0; rest /= 2) {
    if (rest % 2 != 0) result = result * square;
    square = square * square;
  }
  return power < 0 ? T(1) / result : result;
}

template <class T>
HEADLAB_HD T sin(const T& x) {
  return math::sin_turns(x * T(0.15915494309189535));
}
template <class T>
HEADLAB_HD T cos(const T& x) {
  return math::cos_turns(x * T(0.15915494309189535));
}
HEADLAB_HD double sin(double x) {
  return std::sin(x);
}
HEADLAB_HD double cos(double x) {
  return std::cos(x);
}
template <class T>
HEADLAB_HD T power(const T& a, const T& b) {
  return math::exp(b * math::log(a));
}
HEADLAB_HD double power(double a, double b) {
  return std::pow(a, b);
}
/// -e/(2 + e) of e = exp(-2 |x|) - 1, with the sign of x.
template <class T>
HEADLAB_HD T tanh(const T& x) {
  const T e = math::expm1(T(-2) * math::abs(x));
  const T size = e / (T(-2) - e);
  return math::where_greater(T(0), x, T(0) - size, size);
}

/// The value of a program whose variable number i is variable(i).
template <class T, class Number, class Variable>
HEADLAB_HD T value(const Number* program, int steps, const Variable& variable) {
  T stack[Formula::max_depth];
  stack[0] = T(0);
  int top = -1;
  for (int i = 0; i < steps; ++i) {
    const Number operand = program[2 * i + 1];
    const auto operation = static_cast<FormulaOperation>(static_cast<int>(program[2 * i]));
    if (operation == FormulaOperation::constant) {
      stack[++top] = T(operand);
      continue;
    }
    if (operation == FormulaOperation::variable) {
      stack[++top] = variable(static_cast<int>(operand));
      continue;
    }
    const T& b = stack[top];
    if (is_binary(operation)) --top;
    T& a = stack[top];
    switch (operation) {
      case FormulaOperation::add:
        a = a + b;
        break;
      case FormulaOperation::subtract:
        a = a - b;
        break;
      case FormulaOperation::multiply:
        a = a * b;
        break;
      case FormulaOperation::divide:
        a = a / b;
        break;
      case FormulaOperation::power:
        a = formulas::power(a, b);
        break;
      case FormulaOperation::whole_power:
        a = whole_power(a, static_cast<int>(operand));
        break;
      case FormulaOperation::negate:
        a = T(0) - a;
        break;
      case FormulaOperation::less:
        a = math::where_greater(b, a, T(1), T(0));
        break;
      case FormulaOperation::at_most:
        a = math::where_greater(a, b, T(0), T(1));
        break;
      case FormulaOperation::greater:
        a = math::where_greater(a, b, T(1), T(0));
        break;
      case FormulaOperation::at_least:
        a = math::where_greater(b, a, T(0), T(1));
        break;
      case FormulaOperation::equal:
        a = math::where_greater(a, b, T(0), math::where_greater(b, a, T(0), T(1)));
        break;
      case FormulaOperation::unequal:
        a = math::where_greater(a, b, T(1), math::where_greater(b, a, T(1), T(0)));
        break;
      case FormulaOperation::min:
        a = math::min(a, b);
        break;
      case FormulaOperation::max:
        a = math::max(a, b);
        break;
      case FormulaOperation::abs:
        a = math::abs(a);
        break;
      case FormulaOperation::sqrt:
        a = math::sqrt(a);
        break;
      case FormulaOperation::exp:
        a = math::exp(a);
        break;
      case FormulaOperation::log:
        a = math::log(a);
        break;
      case FormulaOperation::sin:
        a = formulas::sin(a);
        break;
      case FormulaOperation::cos:
        a = formulas::cos(a);
        break;
      case FormulaOperation::tan:
        a = formulas::sin(a) / formulas::cos(a);
        break;
      case FormulaOperation::tanh:
        a = formulas::tanh(a);
        break;
      case FormulaOperation::floor:
        a = math::floor(a);
        break;
      case FormulaOperation::ceil:
        a = T(0) - math::floor(T(0) - a);
        break;
      case FormulaOperation::round:
        a = math::floor(a + T(0.5));
        break;
      case FormulaOperation::constant:
      case FormulaOperation::variable:
        break;
    }
  }
  return stack[0];
}

}  // namespace formulas
}  // namespace headlab
