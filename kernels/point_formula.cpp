// SPDX-License-Identifier: Apache-2.0
#include "kernels/point_formula.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace headlab {
namespace {

/// j of "x" and a number j without leading zeros, else 0.
int coordinate_of(const std::string& name) {
  int j = 0;
  const char* end = name.data() + name.size();
  if (name.size() < 2 || name[0] != 'x' || name[1] == '0') return 0;
  const auto read = std::from_chars(name.data() + 1, end, j);
  return read.ec == std::errc() && read.ptr == end ? j : 0;
}

}  // namespace

void PointFormula::check(const char* key, int d) const {
  for (const auto& [name, number] : constants) {
    if (!is_free_name(name) || coordinate_of(name) > 0) {
      throw ParameterError("constants", "cannot call a number \"" + name +
                                            "\" - take a word that is not a function, pi or x1");
    }
  }
  try {
    for (const std::string& name : parsed().names) {
      const int j = coordinate_of(name);
      if (j >= 1 && j <= d) continue;
      throw FormulaError(j > d ? "has " + name + ", and the design has dim " + std::to_string(d)
                               : "has the unknown name " + name + " (allowed: x1 to x" +
                                     std::to_string(d) + ", pi and the names of constants)");
    }
  } catch (const FormulaError& error) {
    throw ParameterError(key, error.what());
  }
}

Formula PointFormula::parsed() const {
  return parse_formula(text, [&](const std::string& name) -> std::optional<double> {
    const auto found =
        std::ranges::find(constants, name, [](const auto& one) { return one.first; });
    return found == constants.end() ? std::nullopt : std::optional(found->second);
  });
}

std::int64_t PointFormula::add_to(Table& table, int& steps) const {
  Formula formula = parsed();
  for (Formula::Step& step : formula.steps) {
    if (step.operation != FormulaOperation::variable) continue;
    step.operand = coordinate_of(formula.names[static_cast<std::size_t>(step.operand)]) - 1;
  }
  steps = static_cast<int>(formula.steps.size());
  return table.add(formula.program());
}

}  // namespace headlab
