// SPDX-License-Identifier: Apache-2.0
#include "kernels/formula.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/law/noise/formula.h"
#include "kernels/law/regression/formula.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

Formula parsed(const std::string& text) {
  return parse_formula(text, [](const std::string& name) {
    return name == "a" ? std::optional(3.0) : std::nullopt;
  });
}

/// The value for x = 0.75 and y = -2, in the order of the text.
template <class T>
T value_of(const std::string& text) {
  const Formula formula = parsed(text);
  const std::vector<double> exact = formula.program();
  const std::vector<std::conditional_t<std::is_same_v<T, double>, double, float>> program(
      exact.begin(), exact.end());
  return formulas::value<T>(program.data(), static_cast<int>(formula.steps.size()), [&](int i) {
    return T(formula.names[static_cast<std::size_t>(i)] == "x" ? 0.75 : -2.0);
  });
}

std::string error_of(const std::string& text) {
  try {
    parsed(text);
  } catch (const FormulaError& error) {
    return error.what();
  }
  return "";
}

struct Example {
  const char* text;
  double value;
  double ulps;  ///< of float32; 0: no error
};

std::vector<Example> examples() {
  const double x = 0.75;
  const double y = -2;
  return {{"x", x, 0},
          {"1 + 2 * x - y / 4", 1 + 2 * x - y / 4, 0},
          {"-x^2", -x * x, 0},
          {"(-x)^2", x * x, 0},
          {"2^3^2 * x", 512 * x, 0},
          {"2^-1 * x", x / 2, 0},
          {"- -x", x, 0},
          {"x - 1 - 1", x - 2, 0},
          {"x / 2 / 2", x / 4, 0},
          {"a * x", 3 * x, 0},
          {"y^3", -8, 0},
          {"y^-3", -.125, 0},
          {"x < 1", 1, 0},
          {"(x <= 0.75) + 2 * (x < 0.75)", 1, 0},
          {"(x > y) * 4 + (x >= 0.75) * 2 + (x != y)", 7, 0},
          {"(x == 0.75) - (x == y)", 1, 0},
          {"min(x, y, 3) + max(x, y)", y + x, 0},
          {"abs(y)", 2, 0},
          {"floor(y + x) + 10 * ceil(x) + 100 * round(x)", -2 + 10 + 100, 0},
          {"sqrt(x)", std::sqrt(x), 1},
          {"x^0.5", std::sqrt(x), 1},
          {"exp(y)", std::exp(y), 3},
          {"log(x)", std::log(x), 3},
          // The argument's rounding is 2 u32 |argument| before that of the function.
          {"sin(pi * x)", std::sin(std::numbers::pi * x), 12},
          {"cos(y)", std::cos(y), 24},
          {"tan(x)", std::tan(x), 8},
          {"tanh(x)", std::tanh(x), 6},
          {"tanh(0.001 * y)", std::tanh(0.001 * y), 6},
          {"x^1.7", std::pow(x, 1.7), 8}};
}

TEST(Formula, HasItsValueInBothPrecisionsAndForTiles) {
  for (const auto& [text, value, ulps] : examples()) {
    EXPECT_NEAR(value_of<double>(text), value, 4e-16 * std::abs(value)) << text;
    const float got = value_of<float>(text);
    EXPECT_NEAR(got, value, 2 * ulps * u32 * std::abs(value)) << text;
    const Tile tile = value_of<Tile>(text);
    for (const float lane : tile.v) EXPECT_EQ(lane, got) << text;
  }
  // Negative control: a wrong digit is seen.
  EXPECT_GT(std::abs(value_of<float>("tanh(1.00001 * x)") - std::tanh(0.75)),
            12 * u32 * std::tanh(0.75));
}

TEST(Formula, RefusesWhatIsNone) {
  EXPECT_EQ(error_of("  "), "is empty");
  EXPECT_EQ(error_of("2 * (x + "), "ends where a number or a name should stand (at its end)");
  EXPECT_EQ(error_of("2 * (x + y"), "has a \"(\" that nothing closes (column 5: 2 *  --> (x + y)");
  EXPECT_EQ(error_of("x) + 1"), "has a \")\" that nothing opens (column 2: x --> ) + 1)");
  EXPECT_EQ(error_of("2x"),
            "has a malformed number - write 2 * x for a product (column 1:  --> 2x)");
  EXPECT_EQ(error_of("1.2.3"),
            "has a malformed number - write 2 * x for a product (column 1:  --> 1.2.3)");
  EXPECT_EQ(error_of("x ** 2"), "has ** - write ^ for a power (column 3: x  --> ** 2)");
  EXPECT_EQ(error_of("0 < x < 1"),
            "compares twice - write (a < b) * (b < c) (column 7: 0 < x  --> < 1)");
  EXPECT_EQ(error_of("x = 1"), "has a single = - write == to compare (column 3: x  --> = 1)");
  EXPECT_EQ(error_of("x + , y"),
            "has no number or name where one should stand (column 5: x +  --> , y)");
  EXPECT_EQ(error_of("sin + 1"), "needs (...) after sin (column 5: sin  --> + 1)");
  EXPECT_EQ(error_of("max(x)"), "needs two numbers or more in max (column 6: max(x --> ))");
  EXPECT_EQ(error_of("sin(x, y)"), "has no \")\" after what sin takes (column 6: sin(x --> , y))");
  EXPECT_TRUE(error_of("erf(x)").starts_with("has no function \"erf\" (allowed: abs, sqrt, "));
  EXPECT_EQ(error_of("x / (a - 3)"), "");  // the part 0 is finite, the quotient is the user's
  EXPECT_EQ(error_of("1 / (a - 3)"), "has a part that is not finite (at its end)");
  EXPECT_EQ(error_of("1e400"), "has a number beyond the range of float64 (column 1:  --> 1e400)");
}

TEST(Formula, IsBounded) {
  EXPECT_TRUE(error_of(std::string(100000, '(')).starts_with("is longer than"));
  EXPECT_TRUE(error_of(std::string(1000, '(')).starts_with("nests deeper than 64"));
  EXPECT_TRUE(error_of(std::string(1000, '-') + "x").starts_with("nests deeper than 64"));
  std::string text = "x";
  for (int i = 0; i < 600; ++i) text += "+x";
  EXPECT_TRUE(error_of(text).starts_with("has more than 512 operations"));
  text = "x";
  for (int i = 0; i < 20; ++i) text = "x + (" + text + ")";
  EXPECT_TRUE(error_of(text).starts_with("keeps more than 16 numbers at a time"));
}

TEST(Formula, KnowsHowFarAndHowFastItGrows) {
  const auto bound = [](const std::string& text) { return parsed(text).bound(); };
  EXPECT_EQ(bound("a"), 3);
  EXPECT_EQ(bound("2 * sin(x) - 3 * cos(y)"), 5);
  EXPECT_EQ(bound("exp(-x^2)"), 1);
  EXPECT_EQ(bound("(x > 0) * 4 + tanh(y)"), 5);
  EXPECT_EQ(bound("1 / (1 + x^2)"), 1);
  EXPECT_EQ(bound("max(-1, min(x, 2))"), 2);
  EXPECT_EQ(bound("x"), unbounded);
  EXPECT_EQ(bound("1 / x"), unbounded);
  EXPECT_EQ(bound("log(x)"), unbounded);
  const auto growth = [](const std::string& text) { return parsed(text).growth(); };
  EXPECT_EQ(growth("sin(x) + 3"), 0);
  EXPECT_EQ(growth("2 * x + 1"), 1);
  EXPECT_EQ(growth("x^2 * y + x"), 3);
  EXPECT_EQ(growth("sqrt(abs(x))"), 0.5);
  EXPECT_EQ(growth("max(x, 0)"), 1);
  EXPECT_EQ(growth("x * sin(x)"), 1);
  EXPECT_EQ(growth("exp(x)"), unbounded);
  EXPECT_EQ(growth("x / y"), unbounded);
}

TEST(FormulaLaws, TakeCoordinatesAndConstants) {
  FormulaRegression m;
  m.text = "height * x1 + x3^2 * (x2 > 0)";
  m.constants = {{"height", 2.0}};
  EXPECT_NO_THROW(m.check(3));
  Table table;
  table.add(std::vector<double>{9});  // something before
  const auto function = m.function(table, 3);
  const double x[] = {0.5, 1, 3};
  EXPECT_EQ(function(table.exact(), x, 1, 0), 10);
  const auto problem = [](FormulaRegression law, int d) -> std::string {
    try {
      law.check(d);
    } catch (const ParameterError& error) {
      return error.key() + ": " + error.what();
    }
    return "";
  };
  m.constants[0].first = "x1";
  EXPECT_EQ(
      problem(m, 3),
      "constants: cannot call a number \"x1\" - take a word that is not a function, pi or x1");
  m.constants.clear();
  EXPECT_EQ(problem(m, 3),
            "formula: has the unknown name height (allowed: x1 to x3, pi and the names of "
            "constants)");

  FormulaNoise noise;
  noise.text = "0.2 - 0.1 * (x1 > 0)";
  const auto sampler = noise.sampler(table, 1);
  const double at[] = {-1, 1};
  EXPECT_EQ(sampler.scale(table.exact(), &at[0], 1), 0.2);
  EXPECT_EQ(sampler.scale(table.exact(), &at[1], 1), 0.1);
  EXPECT_EQ(noise.variance_bound(), 0.2 * 0.2);
}

}  // namespace
}  // namespace headlab
