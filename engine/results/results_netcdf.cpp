// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_netcdf.h"

#include <algorithm>
#include <functional>
#include <variant>

#include "engine/files/error.h"
#include "engine/files/netcdf_file.h"
#include "engine/results/results_nodes.h"
#include "engine/results/results_scenario.h"

namespace headlab {
namespace {

std::vector<double> members(const std::vector<Figure>& figures, double Figure::*member) {
  std::vector<double> numbers;
  for (const Figure& figure : figures) numbers.push_back(figure.*member);
  return numbers;
}

void write_provenance(const NetcdfGroup& root, const Study& study, const RunResult& result,
                      const Provenance& program) {
  write_study(root, study, program);
  root.put_attribute("format_version", std::int64_t{results_format_version});
  root.put_attribute("backend", result.backend);
  root.put_attribute("simd", result.simd);
  root.put_attribute("device", result.device);
  root.put_attribute("threads", std::int64_t{result.threads});
  root.put_attribute("complete", std::int64_t{result.complete ? 1 : 0});
  root.put_attribute("conditions_planned", static_cast<std::int64_t>(study.conditions.size()));
}

void write_counts(const NetcdfGroup& root, const RunResult& result) {
  auto write = [&](const char* name, const char* long_name,
                   const std::function<std::uint64_t(const ConditionResult&)>& count) {
    std::vector<std::int64_t> values;
    for (const ConditionResult& condition : result.conditions) {
      values.push_back(static_cast<std::int64_t>(count(condition)));
    }
    root.write(name, {"condition"}, {long_name}, values);
  };
  using Result = const ConditionResult&;
  auto whole = [](int number) { return static_cast<std::uint64_t>(number); };
  write("replicates", "training sets simulated", [](Result of) { return of.estimates.replicates; });
  write("replicates_planned", "training sets asked for",
        [](Result of) { return of.scenario.replicates; });
  write("jackknife_nodes", "nodes behind the standard errors",
        [&](Result of) { return whole(of.estimates.nodes()); });
  write("seed", "seed of the simulation", [](Result of) { return of.plan.seed; });
  write("n", "training points in one training set", [](Result of) { return of.plan.n; });
  write("d", "dimension of the design", [&](Result of) { return whole(of.plan.d); });
  write("heads", "number of heads H", [&](Result of) { return whole(of.plan.heads); });
  write("k", "per-head dimension d_k", [&](Result of) { return whole(of.plan.k); });
  write("queries", "number of queries Q", [&](Result of) { return whole(of.plan.queries); });
  write("empty_windows", "windows without a kernel value above 2^-126 (softmax: not counted)",
        [](Result of) { return of.estimates.windows.empty; });
  write("narrow_windows", "windows of effective sample size below 2",
        [](Result of) { return of.estimates.windows.narrow; });
}

void write_summary_figures(const NetcdfGroup& root, const RunResult& result) {
  auto write = [&](const std::string& name, const std::string& long_name,
                   Figure Estimates::*figure) {
    std::vector<Figure> figures;
    for (const ConditionResult& condition : result.conditions) {
      figures.push_back(condition.estimates.*figure);
    }
    root.write(name, {"condition"}, {long_name}, members(figures, &Figure::value));
    root.write(name + "_mcse", {"condition"}, {"Monte Carlo standard error of " + name},
               members(figures, &Figure::mcse));
  };
  write("mse", "mean squared error of the ensemble, mean over queries", &Estimates::mse);
  write("bias_squared", "squared bias, corrected for the variance of the mean",
        &Estimates::bias_squared);
  write("variance_term", "sum over heads of a_h^2 V_h", &Estimates::variance_term);
  write("covariance_term", "sum over pairs of different heads of a_h a_l C_hl",
        &Estimates::covariance_term);
  write("bias_squared_plugin", "squared bias, not corrected", &Estimates::bias_squared_plugin);
  write("head_variance_mean", "mean over heads of V_h", &Estimates::head_variance_mean);
  write("head_covariance_mean", "mean over pairs of heads of C_hl",
        &Estimates::head_covariance_mean);
  write("output_correlation", "head_covariance_mean / head_variance_mean",
        &Estimates::output_correlation);

  auto write_numbers = [&](const char* name, const VariableText& text,
                           const std::function<double(const ConditionResult&)>& number) {
    std::vector<double> values;
    for (const ConditionResult& condition : result.conditions) values.push_back(number(condition));
    root.write(name, {"condition"}, text, values);
  };
  using Result = const ConditionResult&;
  write_numbers("mse_query_se", {"standard error of mse over the queries"},
                [](Result of) { return of.estimates.mse_query_se; });
  write_numbers("seconds", {"wall time of the simulation", "s"},
                [](Result of) { return of.seconds; });
  write_numbers("weights_per_second", {"kernel weights evaluated in a second", "s-1"},
                [](Result of) { return of.weights_per_second; });
}

void write_indices(const NetcdfGroup& root, const RunResult& result,
                   const std::vector<ConditionIndices>& indices) {
  if (indices.empty()) return;
  for (const IndexValue& like : indices.front()) {
    std::vector<Figure> figures(result.conditions.size());
    std::vector<double> ceilings(figures.size(), Figure{}.value);
    for (std::size_t i = 0; i < std::min(figures.size(), indices.size()); ++i) {
      for (const IndexValue& index : indices[i]) {
        if (index.name != like.name) continue;
        figures[i] = index.figure;
        ceilings[i] = index.ceiling;
      }
    }
    const std::string name = "index_" + like.name;
    root.write(name, {"condition"}, {"diversity index " + like.name},
               members(figures, &Figure::value));
    if (like.simulated) {
      root.write(name + "_mcse", {"condition"}, {"Monte Carlo standard error of " + name},
                 members(figures, &Figure::mcse));
    }
    root.write(name + "_ceiling", {"condition"}, {"largest value of " + name}, ceilings);
  }
}

void write_query_figures(const NetcdfGroup& root, const RunResult& result) {
  root.define_doubles("head_weights", {"condition", "head"}, {"head weights a_h"});
  root.define_doubles("x", {"condition", "query", "coordinate"}, {"query points"});
  root.define_doubles("truth", {"condition", "query"}, {"regression function m(x)"});
  auto define = [&](const std::string& name, std::vector<std::string> more,
                    const std::string& long_name) {
    more.insert(more.begin(), {"condition", "query"});
    root.define_doubles(name, more, {long_name});
    root.define_doubles(name + "_mcse", more, {"Monte Carlo standard error of " + name});
  };
  define("query_mse", {}, "mean squared error of the ensemble at a query");
  define("head_bias", {"head"}, "E f_h - m(x)");
  define("head_covariance", {"head", "head_2"}, "Cov(f_h, f_l) over training sets");

  for (std::size_t c = 0; c < result.conditions.size(); ++c) {
    const ConditionResult& condition = result.conditions[c];
    const auto queries = static_cast<std::size_t>(condition.plan.queries);
    const auto heads = static_cast<std::size_t>(condition.plan.heads);
    const auto d = static_cast<std::size_t>(condition.plan.d);
    root.put("head_weights", {{c, 0}, {1, heads}}, condition.plan.head_weights);
    root.put("x", {{c, 0, 0}, {1, queries, d}}, condition.plan.query_points);
    root.put("truth", {{c, 0}, {1, queries}}, condition.plan.truth);
    // Each figure of all queries in a row, as the file has it; short only where nothing was run.
    std::vector<Figure> mse, bias, covariance;
    for (const QueryEstimates& at : condition.estimates.queries) {
      mse.push_back(at.mse);
      bias.insert(bias.end(), at.head_bias.begin(), at.head_bias.end());
      covariance.insert(covariance.end(), at.head_covariance.begin(), at.head_covariance.end());
    }
    auto put = [&](const std::string& name, const NetcdfGroup::Slab& where,
                   const std::vector<Figure>& figures) {
      if (figures.empty()) return;
      root.put(name, where, members(figures, &Figure::value));
      root.put(name + "_mcse", where, members(figures, &Figure::mcse));
    };
    put("query_mse", {{c, 0}, {1, queries}}, mse);
    put("head_bias", {{c, 0, 0}, {1, queries, heads}}, bias);
    put("head_covariance", {{c, 0, 0, 0}, {1, queries, heads, heads}}, covariance);
  }
}

void write_root(const NetcdfGroup& root, const Study& study, const RunResult& result,
                const std::vector<ConditionIndices>& indices, const Provenance& program) {
  int queries = 0, heads = 0, d = 0;  // the most of any condition
  for (const ConditionResult& condition : result.conditions) {
    queries = std::max(queries, condition.plan.queries);
    heads = std::max(heads, condition.plan.heads);
    d = std::max(d, condition.plan.d);
  }
  root.define_dimension("condition", result.conditions.size());
  root.define_dimension("query", static_cast<std::size_t>(queries));
  root.define_dimension("head", static_cast<std::size_t>(heads));
  root.define_dimension("head_2", static_cast<std::size_t>(heads));
  root.define_dimension("coordinate", static_cast<std::size_t>(d));
  write_provenance(root, study, result, program);
  std::vector<const Scenario*> scenarios;
  for (const ConditionResult& condition : result.conditions) {
    scenarios.push_back(&condition.scenario);
  }
  write_swept(root, "condition", study.swept, scenarios);
  write_summary_figures(root, result);
  write_indices(root, result, indices);
  write_counts(root, result);
  std::vector<std::string> estimators, modes;
  for (const ConditionResult& condition : result.conditions) {
    estimators.emplace_back(name_of(condition.plan.estimator));
    modes.emplace_back(name_of(condition.plan.moments));
  }
  root.write("estimator", {"condition"}, {"how the noise enters", ""}, estimators);
  root.write("moments", {"condition"}, {"which moments are kept", ""}, modes);
  write_query_figures(root, result);
}

}  // namespace

void write_results(const std::string& path, const Study& study, const RunResult& result,
                   const std::vector<ConditionIndices>& indices, const Provenance& program) {
  try {
    NetcdfImage image;
    write_root(image.root(), study, result, indices, program);
    for (std::size_t i = 0; i < result.conditions.size(); ++i) {
      write_nodes(image.root(), i, result.conditions[i]);
    }
    image.save(path);
  } catch (const NetcdfError& error) {
    throw CouldNotFinish(path + ": cannot be written (" + error.what() + ")");
  }
}

}  // namespace headlab
