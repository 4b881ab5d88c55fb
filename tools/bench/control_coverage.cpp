// SPDX-License-Identifier: Apache-2.0
// Measures how often 95 % intervals cover with exact controls and without
// (docs/measured/controls.md).
//
//     headlab_control_coverage [RUNS [REPLICATES [PILOT]]]
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "engine/moments/estimates.h"
#include "engine/run/control_pilot.h"
#include "engine/run/simulate.h"
#include "engine/scenario/scenario.h"
#include "kernels/parallel_for.h"
#include "validation/statistics/intervals.h"
#include "validation/theory/controls/control_means.h"

namespace headlab {
namespace {

struct Problem {
  std::string name;
  std::vector<std::string> sets;
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

std::vector<Problem> problems(const std::string& rows) {
  return {{"a far query", {}},
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
            "queries.points=[[0.5, 0.5, -0.5, 1]]"}}};
}

/// Figures of one run, with controls and without.
struct Row {
  std::vector<Estimate> with, without;
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

/// Share of rows whose interval holds `truth`.
double coverage(const std::vector<Row>& rows, std::vector<Estimate> Row::*part, std::size_t i,
                double truth, double quantile) {
  double covered = 0;
  for (const Row& row : rows) {
    const Estimate& one = (row.*part)[i];
    covered += std::abs(one.value - truth) <= quantile * one.mcse ? 1 : 0;
  }
  return covered / static_cast<double>(rows.size());
}

double variance_of(const std::vector<Row>& rows, std::vector<Estimate> Row::*part, std::size_t i) {
  const double mean = mean_of(rows, part, i);
  double sum = 0;
  for (const Row& row : rows) sum += std::pow((row.*part)[i].value - mean, 2);
  return sum / static_cast<double>(rows.size() - 1);
}

void measure(const Problem& problem, std::size_t runs, std::uint64_t replicates,
             std::uint64_t pilot) {
  std::vector<std::string> sets = problem.sets;
  sets.push_back("run.controls={ law = \"exact\", pilot = " + std::to_string(pilot) + " }");
  const Scenario scenario = parse_scenario(text, "coverage.toml", sets);
  const Condition& condition = scenario.conditions.at(0);
  const Session session{.backend = "cpu", .control_means = control_means};
  Preparation found;
  find_controls(condition, found, session);
  const Plan plan = make_plan(condition, found);
  std::vector<Row> rows(runs);
  int nodes = 0;
  parallel_for(runs, thread_count(0), [&](std::size_t run) {
    Plan seeded = plan;
    seeded.seed = run + 1;
    const MomentTree tree = simulate(seeded, *session.backend, 1, replicates);
    const ConditionEstimates with = estimate(tree, plan);
    rows[run] = {numbers(with),
                 numbers(estimate(tree.without_controls(), plan.head_weights, plan.truth))};
    if (run == 0) nodes = with.nodes();
  });
  const double quantile = student_quantile(0.975, nodes - 1);
  const auto names = numbers_of<Estimate>(ConditionEstimates());
  for (std::size_t i = 0; i < names.size(); ++i) {
    // The mean over all runs is the truth to a small part of a standard error of one.
    const double truth = mean_of(rows, &Row::with, i);
    const double z = (truth - mean_of(rows, &Row::without, i)) /
                     std::sqrt(variance_of(rows, &Row::without, i) / static_cast<double>(runs));
    std::printf("| %s | %s | %.1f %% | %.1f %% | %.3g | %.1f |\n", problem.name.c_str(),
                names[i].name, 100 * coverage(rows, &Row::with, i, truth, quantile),
                100 * coverage(rows, &Row::without, i, truth, quantile),
                variance_of(rows, &Row::without, i) / variance_of(rows, &Row::with, i), z);
  }
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
      "| problem | figure | coverage with | without | variance without / with | z of the "
      "difference |\n|---|---|---|---|---|---|\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(replicates),
      static_cast<unsigned long long>(pilot));
  const std::string rows = student_rows();
  for (const Problem& problem : problems(rows)) measure(problem, runs, replicates, pilot);
  std::filesystem::remove(rows);
}
