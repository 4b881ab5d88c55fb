// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/measures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/files/words.h"
#include "engine/moments/figure_name.h"
#include "engine/moments/measured_terms.h"

namespace headlab {
namespace {

double value_of(const Formula& formula, std::span<const double> program,
                std::span<const double> numbers) {
  return formulas::value<double>(program.data(), static_cast<int>(formula.steps.size()),
                                 [&](int i) { return numbers[static_cast<std::size_t>(i)]; });
}

/// A formula of samples over the same nodes, some of which may be constants.
Jackknifed value_of(const Formula& formula, const std::vector<const Jackknifed*>& parts) {
  const std::vector<double> program = formula.program();
  std::vector<double> numbers;
  std::size_t nodes = 0;
  for (const Jackknifed* part : parts) {
    numbers.push_back(part->value);
    nodes = std::max(nodes, part->leave_one_out.size());
  }
  Jackknifed out(value_of(formula, program, numbers));
  std::vector<double> changed = numbers;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out.carriers = std::min(out.carriers, parts[i]->carriers);
    for (const auto bound : {&Jackknifed::rounding, &Jackknifed::unseen, &Jackknifed::digits}) {
      const double size = parts[i]->*bound;
      if (size == 0) continue;
      double change = 0;
      for (const double at : {numbers[i] + size, numbers[i] - size}) {
        changed[i] = at;
        change = std::max(change, size_of_change(value_of(formula, program, changed), out.value));
      }
      changed[i] = numbers[i];
      out.*bound += change;
    }
  }
  for (std::size_t j = 0; j < nodes; ++j) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::vector<double>& without = parts[i]->leave_one_out;
      changed[i] = without.empty() ? numbers[i] : without[j];
    }
    out.leave_one_out.push_back(value_of(formula, program, changed));
  }
  return out;
}

/// The parts of a measure; what terms lack is undefined.
template <class Terms>
std::vector<const Jackknifed*> parts_of(const Measure& measure, const Terms& terms) {
  static const Jackknifed missing;
  std::vector<const Jackknifed*> parts;
  for (const FigureName& name : measure.parts) {
    const Jackknifed* part = find_figure<Jackknifed>(terms, name);
    parts.push_back(part != nullptr ? part : &missing);
  }
  return parts;
}

}  // namespace

const std::string& name_of(const Measure& measure) {
  return measure.name;
}
const std::string& formula_text(const Measure& measure) {
  return measure.text;
}

bool may_name_measure(const std::string& name) {
  return is_free_name(name) && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
           return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  (c >= 'A' && c <= 'Z');
         });
}

std::vector<std::string> names_of(const Measures& measures) {
  std::vector<std::string> names;
  for (const auto& measure : measures) names.push_back(measure->name);
  return names;
}

std::vector<FigureName> made_of(const FigureName& figure, const Measures& measures) {
  const auto found = std::ranges::find_if(
      measures, [&](const auto& measure) { return measure->name == figure.name; });
  if (found == measures.end()) return {figure};
  std::vector<FigureName> figures;
  // Those of a measure stand before it.
  const Measures before(measures.begin(), found);
  for (const FigureName& part : (*found)->parts) {
    for (FigureName& one : made_of(part, before)) figures.push_back(std::move(one));
  }
  return figures;
}

void add_measures(ErrorTerms<Jackknifed>& terms, const Measures& measures,
                  std::span<const double> counts) {
  for (const auto& measure : measures) {
    const std::vector<const Jackknifed*> parts = parts_of(*measure, terms);
    Measured<Jackknifed> made{.of = measure, .number = value_of(measure->formula, parts)};
    for (const Formula& divisor : measure->divisors) {
      const Jackknifed below = value_of(divisor, parts);
      if (below.leave_one_out.empty()) continue;
      const double error = below.figure(counts).mcse;
      if (!(error > 0)) continue;
      made.divisor_error = std::max(made.divisor_error, error / std::abs(below.value));
    }
    terms.measures.push_back(std::move(made));
  }
}

void add_measures(ErrorTerms<Remainder>& terms, const Measures& measures) {
  const auto sample_of = [](const Remainder& number) {
    Jackknifed sample(number.value);
    sample.rounding = number.remainder;
    return sample;
  };
  ErrorTerms<Jackknifed> samples = converted<Jackknifed>(terms, sample_of);
  add_measures(samples, measures, {});
  for (const Measured<Jackknifed>& one : samples.measures) {
    const double remainder = one.number.rounding;
    terms.measures.push_back(
        {one.of,
         {one.number.value,
          std::isfinite(remainder) ? remainder : std::numeric_limits<double>::quiet_NaN()}});
  }
}

std::vector<bool> measured_queries(const Measures& measures, std::size_t queries) {
  std::vector<bool> is_measured(queries, false);
  for (const auto& measure : measures) {
    for (const FigureName& part : measure->parts) {
      if (!part.index.empty() && part.index[0] < queries) is_measured[part.index[0]] = true;
    }
  }
  return is_measured;
}

void set_digits_of_measures(ErrorTerms<Jackknifed>& terms) {
  for (Measured<Jackknifed>& one : terms.measures) {
    one.number.digits = value_of(one.of->formula, parts_of(*one.of, terms)).digits;
  }
}

bool divides_by_noise(const Measured<Estimate>& measure) {
  return !std::isnan(measure.number.value) && measure.number.mcse > 0 &&
         denominator_errors * measure.divisor_error > 1;
}

}  // namespace headlab
