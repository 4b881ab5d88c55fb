// SPDX-License-Identifier: Apache-2.0
// Measures how often 95 % intervals cover with exact controls and without
// (docs/measured/controls.md).
//
//     headlab_control_coverage [RUNS [REPLICATES [PILOT]]]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/moments/estimates.h"
#include "engine/run/control_pilot.h"
#include "engine/run/simulate.h"
#include "engine/scenario/scenario.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "validation/statistics/intervals.h"
#include "validation/theory/controls/control_means.h"

namespace headlab {
namespace {

struct Problem {
  std::string name;
  std::vector<std::string> sets;
  std::uint64_t replicates = 0;  ///< of a run; 0: as asked for
};

const std::string text = R"([scenario]
name = "coverage"
[data]
n = 100
design = { law = "normal", dim = 4 }
regression = { law = "random_cosines", terms = 8, length_scale = 1.5 }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 3
dim = 2
subspaces = { law = "haar" }
kernel = { law = "gaussian", bandwidth = 0.5 }
[queries]
law = "points"
points = [[2.2, 1.5, -0.5, 1]]
[run]
replicates = 100
controls = "exact"
)";

/// Rows of a multivariate t law with 2 degrees of freedom.
std::string student_rows() {
  const auto path = std::filesystem::temp_directory_path() / "headlab_control_coverage.csv";
  std::ofstream file(path);
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 400; ++i) {
    double u = 0;
    for (int j = 0; j < 2; ++j) u += std::pow(normal(random), 2);
    const double scale = std::sqrt(2 / u);
    for (int j = 0; j < 4; ++j) file << normal(random) * scale << (j < 3 ? ',' : '\n');
  }
  return path.string();
}

/// Five rows of four coordinates.
std::string few_rows() {
  const auto path = std::filesystem::temp_directory_path() / "headlab_control_few_rows.csv";
  std::ofstream file(path);
  file
      << "0.1,0.2,-0.3,0.4\n1.2,-0.5,0.3,0.9\n-0.8,0.6,0.1,-0.2\n0.5,1.1,-0.9,0\n-0.4,-0.7,0.8,1\n";
  return path.string();
}

std::vector<Problem> problems(const std::string& rows, const std::string& few) {
  const std::string equiangular =
      "heads.subspaces={ law = \"principal_angles\", angles = [0.5, 1.2] }";
  return {
      {"a far query", {}},
      {"softmax, n 40, |a|² 4.4",
       {"data.n=40", "heads.kernel={ law = \"softmax\", temperature = 1.0 }",
        "heads.subspaces={ law = \"explicit\", matrices = [[[1,0],[0,1],[0,0],[0,0]], "
        "[[0,0],[1,0],[0,1],[0,0]], [[0,0],[0,0],[1,0],[0,1]]] }",
        "queries.points=[[1.483, 1.483, 1.483, 1.483]]"}},
      {"rows of Student t",
       {"data.design={ law = \"file\", path = \"" + rows + "\" }",
        "queries={ law = \"design\", "
        "count = 1, seed = 4 }",
        "heads.kernel={ law = \"gaussian\", bandwidth = 0.7 }"}},
      {"a mixture",
       {"data.design={ law = \"mixture\", weights = [0.3, 0.7], means = [[1, 0, 0, 1], [-1, 0, "
        "0.5, "
        "0]] }",
        "queries.points=[[0.5, 0.5, -0.5, 1]]"}},
      {"nearly perfect: n 5000, 64 replicates",
       {"data.n=5000", "data.regression={ law = \"linear\", coefficients = [1, 0.5, 0, 0.7] }",
        "data.noise={ law = \"normal\", sd = 0.1 }", "heads.count=2", equiangular,
        "heads.kernel={ law = \"gaussian\", bandwidth = 1 }", "queries.points=[[0.5, 0, 0, 0]]"},
       64},
      {"nearly perfect: a mixture, wide windows, 64 replicates",
       {"data.n=2000",
        "data.design={ law = \"mixture\", weights = [0.3, 0.7], means = [[1, 0, "
        "0, 1], [-1, 0, 0.5, 0]] }",
        "heads.kernel={ law = \"gaussian\", bandwidth = 1.2 }",
        "queries.points=[[0.5, 0.5, -0.5, 1]]"},
       64},
      {"nearly perfect: few rows, 64 replicates",
       {"data.n=400", "data.design={ law = \"file\", path = \"" + few + "\" }",
        "heads.kernel={ law = \"gaussian\", bandwidth = 1.5 }",
        "queries.points=[[0.3, 0.2, 0, 0.1]]"},
       64}};
}

/// Figures of one run with controls, as printed and with standard errors that leave the rounding of
/// float32 out, and without controls.
struct Row {
  std::vector<Estimate> printed, with, without;
};

std::vector<Estimate> numbers(const ConditionEstimates& estimates) {
  std::vector<Estimate> all;
  for (const auto& one : numbers_of<Estimate>(estimates)) all.push_back(*one.number);
  return all;
}

double mean_of(const std::vector<Row>& rows, std::vector<Estimate> Row::*part, std::size_t i) {
  double sum = 0;
  for (const Row& row : rows) sum += (row.*part)[i].value;
  return sum / static_cast<double>(rows.size());
}

/// Shares of rows whose interval is below `truth` and above it.
std::pair<double, double> misses(const std::vector<Row>& rows, std::vector<Estimate> Row::*part,
                                 std::size_t i, double truth, double quantile) {
  double below = 0, above = 0;
  for (const Row& row : rows) {
    const Estimate& one = (row.*part)[i];
    below += one.value + quantile * one.mcse < truth ? 1 : 0;
    above += one.value - quantile * one.mcse > truth ? 1 : 0;
  }
  const auto count = static_cast<double>(rows.size());
  return {below / count, above / count};
}

double variance_of(const std::vector<Row>& rows, std::vector<Estimate> Row::*part, std::size_t i) {
  const double mean = mean_of(rows, part, i);
  double sum = 0;
  for (const Row& row : rows) sum += std::pow((row.*part)[i].value - mean, 2);
  return sum / static_cast<double>(rows.size() - 1);
}

/// Intervals of these have to cover.
const std::vector<std::string> covered = {"mse", "head_variance_mean", "head_covariance_mean"};

/// True where intervals miss in 5 +- 1.5 % of the runs, on no side more than twice as often as on
/// the other, or no more so than without controls, give or take three standard errors of a count.
bool covers(std::pair<double, double> with, std::pair<double, double> without, double runs) {
  const double missed = with.first + with.second;
  const auto lopsided = [](std::pair<double, double> misses) {
    return std::max(misses.first, misses.second) - 2 * std::min(misses.first, misses.second);
  };
  const double slack = 3 * std::sqrt(5 * missed / runs);
  return std::abs(missed - 0.05) <= 0.015 &&
         lopsided(with) <= std::max(0.0, lopsided(without)) + slack;
}

/// The number of figures whose intervals do not cover.
int measure(const Problem& problem, std::size_t runs, std::uint64_t replicates,
            std::uint64_t pilot) {
  std::vector<std::string> sets = problem.sets;
  sets.push_back("run.controls={ law = \"exact\", pilot = " + std::to_string(pilot) + " }");
  const Scenario scenario = parse_scenario(text, "coverage.toml", sets);
  const Condition& condition = scenario.conditions.at(0);
  const Session session{.backend = "cpu", .control_means = control_means};
  Preparation found;
  find_controls(condition, found, session);
  const Plan plan = make_plan(condition, found);
  ControlUse exact = plan.controls->use;
  std::ranges::fill(exact.estimate_rounding, 0.0);
  std::ranges::fill(exact.noise_rounding, 0.0);
  std::vector<Row> rows(runs);
  int nodes = 0;
  parallel_for(runs, thread_count(0), [&](std::size_t run) {
    Plan seeded = plan;
    seeded.seed = run + 1;
    const MomentTree tree = simulate(seeded, *session.backend, 1, replicates);
    const ConditionEstimates with = estimate(tree, plan);
    rows[run] = {numbers(with), numbers(estimate(tree, plan.head_weights, plan.truth, &exact)),
                 numbers(estimate(tree.without_controls(), plan.head_weights, plan.truth))};
    if (run == 0) nodes = with.nodes();
  });
  const double quantile = student_quantile(0.975, nodes - 1);
  const auto names = numbers_of<Estimate>(ConditionEstimates());
  int failed = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    // The mean over all runs is the truth to a small part of a standard error of one.
    const double truth = mean_of(rows, &Row::with, i);
    const double z = (truth - mean_of(rows, &Row::without, i)) /
                     std::sqrt(variance_of(rows, &Row::without, i) / static_cast<double>(runs));
    const auto [below, above] = misses(rows, &Row::with, i, truth, quantile);
    const auto plain = misses(rows, &Row::without, i, truth, quantile);
    const auto printed = misses(rows, &Row::printed, i, truth, quantile);
    if (std::ranges::count(covered, names[i].name) > 0 &&
        !covers({below, above}, plain, static_cast<double>(runs))) {
      std::fprintf(stderr, "%s: %s: does not cover\n", problem.name.c_str(), names[i].name);
      ++failed;
    }
    std::printf("| %s | %s | %.1f %% | %.1f %% | %.1f, %.1f %% | %.1f %% | %.3g | %.1f |\n",
                problem.name.c_str(), names[i].name, 100 * (1 - printed.first - printed.second),
                100 * (1 - below - above), 100 * below, 100 * above,
                100 * (1 - plain.first - plain.second),
                variance_of(rows, &Row::without, i) / variance_of(rows, &Row::with, i), z);
  }
  return failed;
}

}  // namespace
}  // namespace headlab

int main(int argc, char** argv) {
  using namespace headlab;
  const auto argument = [&](int i, std::uint64_t none) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : none;
  };
  const std::uint64_t runs = argument(1, 2000), replicates = argument(2, 512),
                      pilot = argument(3, 1024);
  std::printf(
      "%llu runs of %llu replicates, a pilot of %llu\n"
      "| problem | figure | as printed | less rounding | too low, too high | without | variance "
      "without / with | z of the difference |\n|---|---|---|---|---|---|---|---|\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(replicates),
      static_cast<unsigned long long>(pilot));
  const std::string rows = student_rows(), few = few_rows();
  int failed = 0;
  for (const Problem& problem : problems(rows, few)) {
    failed +=
        measure(problem, runs, problem.replicates > 0 ? problem.replicates : replicates, pilot);
  }
  std::filesystem::remove(rows);
  std::filesystem::remove(few);
  return failed == 0 ? 0 : 1;
}
