// SPDX-License-Identifier: Apache-2.0
// A formula is refused, or has a short list of operations whose value is within its bound.
#include "kernels/formula.h"

#include <cmath>
#include <optional>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

const Target reader::formula = {
    "formula", [](const std::string& bytes) {
      Formula formula;
      try {
        formula = parse_formula(bytes, [](const std::string& name) {
          return name == "a" ? std::optional(0.5) : std::nullopt;
        });
      } catch (const FormulaError& error) {
        throw InvalidInput(one_line(error.what()));
      }
      require(!formula.steps.empty() && formula.steps.size() <= Formula::max_steps,
              "a list of another length");
      const std::vector<double> program = formula.program();
      const double bound = formula.bound();
      for (const double x : {0.0, 0.75, -3.0}) {
        const double value = formulas::value<double>(
            program.data(), static_cast<int>(formula.steps.size()), [&](int i) { return x + i; });
        require(!(std::abs(value) > bound * (1 + 1e-9) + 1e-9), "a value beyond the bound");
      }
      require(!(formula.growth() < 0), "a growth below 0");
    }};

}  // namespace headlab::fuzz
