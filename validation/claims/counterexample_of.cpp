// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/counterexample_of.h"

#include <stdexcept>

namespace headlab {
namespace {

const Jackknifed& observed(Experiment& experiment, const ConditionFigure& at) {
  const Jackknifed* figure = experiment.figure(at.condition, at.figure);
  if (figure == nullptr) throw std::logic_error("counterexample of " + at.figure.text());
  return *figure;
}

}  // namespace

Counterexample counterexample_of(Experiment& experiment, const ConditionFigure& first,
                                 const ConditionFigure& second) {
  const Jackknifed& a = observed(experiment, first);
  const Jackknifed& b = observed(experiment, second);
  const std::vector<double>& counts = experiment.node_counts();
  Counterexample counterexample{.scenario = experiment.scenario().text,
                                .seed = experiment.condition().seed,
                                .replicates = experiment.replicates(),
                                .figures = {first.figure.text(), second.figure.text()},
                                .conditions = {first.condition, second.condition},
                                .first = a.figure(counts),
                                .second = b.figure(counts),
                                .difference = (a - b).figure(counts)};
  counterexample.z = counterexample.difference.value / counterexample.difference.mcse;
  return counterexample;
}

Counterexample counterexample_of(Experiment& experiment, std::size_t first, std::size_t second) {
  return counterexample_of(experiment, ConditionFigure{FigureName{"mse"}, first},
                           ConditionFigure{FigureName{"mse"}, second});
}

}  // namespace headlab
