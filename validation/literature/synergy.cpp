// SPDX-License-Identifier: Apache-2.0
// Heads as random walks to a sink, the last token, and what their average does. Attention of a head
// is given, the same in all layers: a walk, or the diffusion of a graph.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/words.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"
#include "validation/claims/claim.h"
#include "validation/literature/graphs.h"
#include "validation/literature/stack_examples.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

constexpr double sink_distance = 0.25;  ///< of the walk from the sink, twice the total variation
constexpr int fidelity_horizon = 200;   ///< of fidelity

/// Steps until the walk is within eps of the sink from everywhere.
double mixing_steps(const MatrixXd& walk, double eps = sink_distance) {
  const auto steps = mixing_time(walk, eps);
  return steps ? static_cast<double>(*steps) : std::numeric_limits<double>::infinity();
}

double minimax_fidelity(const MatrixXd& diffusion) {
  return sink_fidelities(diffusion, fidelity_horizon).minCoeff();
}

MatrixXd mean_head(const Matrices& heads) {
  MatrixXd sum = MatrixXd::Zero(heads[0].rows(), heads[0].cols());
  for (const MatrixXd& head : heads) sum += head;
  return sum / static_cast<double>(heads.size());
}

/// A number of the heads and of their average.
struct Compared {
  double least = std::numeric_limits<double>::infinity();  ///< of a head
  double largest = 0;                                      ///< of a head
  double average = 0;

  std::string text() const {
    const std::string low = formatted("%.4g", least), high = formatted("%.4g", largest);
    return " (average " + formatted("%.4g", average) + ", heads " + low +
           (low == high ? "" : " to " + high) + ")";
  }
};

template <class Number>
Compared compared(const Matrices& heads, const Number& number) {
  Compared out;
  for (const MatrixXd& head : heads) {
    out.least = std::min(out.least, number(head));
    out.largest = std::max(out.largest, number(head));
  }
  out.average = number(mean_head(heads));
  return out;
}

Compared steps_of(Experiment& experiment) {
  return compared(faulty_plan(experiment, 0).stack->fixed,
                  [](const MatrixXd& walk) { return mixing_steps(walk); });
}

Compared fidelity_of(Experiment& experiment) {
  return compared(faulty_plan(experiment, 0).stack->fixed, minimax_fidelity);
}

Comparison not_below(const Experiment& experiment, const std::string& what, double effect) {
  return at_least_zero(what, effect, 1, experiment.margin(), {});
}

std::vector<Finding> decided_by(const Experiment& experiment, const std::string& what,
                                double effect) {
  Finding finding;
  finding.comparisons = {not_below(experiment, what, effect)};
  return {std::move(finding)};
}

std::vector<Finding> average_mixes_faster(Experiment& experiment) {
  const Compared steps = steps_of(experiment);
  return decided_by(experiment, "steps gained on the faster head minus one" + steps.text(),
                    steps.least - steps.average - 1);
}

std::vector<Finding> average_mixes_no_slower(Experiment& experiment) {
  const Compared steps = steps_of(experiment);
  return decided_by(experiment, "steps gained on the slowest head" + steps.text(),
                    steps.largest - steps.average);
}

/// Two heads, with weights in steps of 1/10.
std::vector<Finding> best_weights_mix_no_slower(Experiment& experiment) {
  const Matrices faulty = faulty_plan(experiment, 0).stack->fixed;
  double best = std::numeric_limits<double>::infinity();
  for (int tenth = 0; tenth <= 10; ++tenth) {
    const double weight = tenth / 10.0;
    best = std::min(best, mixing_steps(weight * faulty[0] + (1 - weight) * faulty[1]));
  }
  const Matrices& heads = experiment.plan().stack->fixed;
  Finding finding{.identity = true};
  finding.comparisons = {
      not_below(experiment, "steps of the fastest head minus those with the best weights",
                std::min(mixing_steps(heads[0]), mixing_steps(heads[1])) - best)};
  return {std::move(finding)};
}

std::vector<Finding> fidelity_exceeds_both(Experiment& experiment) {
  const Compared fidelity = fidelity_of(experiment);
  const FidelityCount some =
      fidelity_census(static_cast<int>(experiment.plan().n), fidelity_horizon);
  Finding finding;
  // A gain below 0.001 would not count.
  finding.comparisons = {
      not_below(experiment, "fidelity gained on the higher head minus 0.001" + fidelity.text(),
                fidelity.average - fidelity.largest - 0.001),
      not_below(experiment, "pairs of graphs that gain minus one", some.average_above_both - 1.0)};
  finding.note = "Graphs of " + std::to_string(experiment.plan().n) +
                 " nodes of which each reaches the sink: of " + std::to_string(some.pairs) +
                 " pairs the average is above both heads in " +
                 std::to_string(some.average_above_both) + ", below both in " +
                 std::to_string(some.average_below_both) + ".";
  return {std::move(finding)};
}

std::vector<Finding> fidelity_stays_above_the_lower(Experiment& experiment) {
  const Compared fidelity = fidelity_of(experiment);
  return decided_by(experiment, "fidelity gained on the lower head" + fidelity.text(),
                    fidelity.average - fidelity.least);
}

/// Lines of N = n - 1 steps of one speed p, a condition each.
/// \param long_lines eps from the least one on with p N >= log(2/eps); else eps = 0.01
std::vector<Finding> mixes_in_twice_the_mean(Experiment& experiment, bool long_lines) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const MatrixXd& line = experiment.plan(i).stack->fixed[0];
    const double speed = line(0, 1);
    const auto steps = static_cast<double>(line.rows() - 1);
    const double least = std::max(2 * std::exp(-speed * steps), 1e-6);
    const std::vector<double> eps =
        long_lines ? std::vector<double>{least, std::sqrt(least), 1} : std::vector<double>{0.01};
    for (const double one : eps) {
      const double time = mixing_steps(faulty_plan(experiment, i).stack->fixed[0], one);
      finding.comparisons.push_back(
          not_below(experiment,
                    "2N/p minus the steps of a line, N = " + std::to_string(line.rows() - 1) +
                        ", p = " + number_text(speed) + ", eps = " + formatted("%.4g", one),
                    2 * steps / speed - time));
    }
  }
  return {std::move(finding)};
}

std::vector<Finding> long_lines_mix(Experiment& experiment) {
  return mixes_in_twice_the_mean(experiment, true);
}

std::vector<Finding> every_line_mixes(Experiment& experiment) {
  return mixes_in_twice_the_mean(experiment, false);
}

/// Nodes whose fidelity in the average is positive where the union of the graphs does not reach the
/// sink, or the other way round.
double exceptions(const Matrices& heads, const Matrices& graphs) {
  const Eigen::VectorXd fidelities = sink_fidelities(mean_head(heads), fidelity_horizon);
  const std::vector<bool> reaches = reach_last(mean_head(graphs).transpose());
  double count = 0;
  for (Eigen::Index j = 0; j < fidelities.size(); ++j) {
    count += (fidelities(j) > 0) != reaches[static_cast<std::size_t>(j)] ? 1 : 0;
  }
  return count;
}

/// The graphs of the scenario, and drawn ones of as many nodes.
std::vector<Finding> fidelity_follows_the_union(Experiment& experiment) {
  constexpr int draws = 200;
  const Plan& plan = experiment.plan();
  const double given = exceptions(faulty_plan(experiment, 0).stack->fixed, plan.stack->fixed);
  const int n = static_cast<int>(plan.n);
  std::mt19937_64 random(plan.seed);
  double drawn = 0;
  for (int draw = 0; draw < draws; ++draw) {
    Matrices graphs;
    for (std::size_t h = 0; h < plan.stack->fixed.size(); ++h) {
      GraphEdges edges;
      for (int to = 1; to < n; ++to) {
        for (int from = 0; from < to; ++from) {
          if (random() % 4 == 0) edges.emplace_back(from, to);
        }
      }
      graphs.push_back(graph_diffusion(n, edges));
    }
    drawn += exceptions(graphs, graphs);
  }
  Finding finding;
  finding.comparisons = {
      equal_to("nodes that are exceptions, graphs of the scenario", given, 0, 1,
               experiment.margin(), {}),
      equal_to("nodes that are exceptions, " + std::to_string(draws) + " draws of graphs", drawn, 0,
               1, experiment.margin(), {})};
  return {std::move(finding)};
}

}  // namespace

Claim synergy_claim() {
  return {.name = "synergy",
          .forms = {{.name = "faster", .examine = average_mixes_faster},
                    {.name = "best weights", .examine = best_weights_mix_no_slower},
                    {.name = "no slower", .examine = average_mixes_no_slower},
                    {.name = "fidelity above", .examine = fidelity_exceeds_both},
                    {.name = "fidelity not below", .examine = fidelity_stays_above_the_lower},
                    {.name = "long lines", .examine = long_lines_mix},
                    {.name = "every line", .examine = every_line_mixes},
                    {.name = "union", .examine = fidelity_follows_the_union}}};
}

}  // namespace headlab
