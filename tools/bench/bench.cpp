// SPDX-License-Identifier: Apache-2.0
// Kernel weights per second of the backends beside a plain loop, in one run. One weight is one
// kernel value and its share of the sums: replicates x queries x heads x n.
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/run.h"
#include "engine/scenario.h"
#include "kernels/backend.h"
#include "tools/bench/plain_loop.h"

namespace headlab::bench {
namespace {

constexpr std::size_t n = 4096;
constexpr std::size_t d = 32;
constexpr std::size_t heads = 8;
constexpr std::size_t queries = 64;

Plan plan_of(int k, const std::string& estimator, const std::string& moments, int points) {
  const std::string text =
      "[scenario]\nname = \"bench\"\n[data]\nn = " + std::to_string(points) +
      "\ndesign = { law = \"normal\", dim = 32 }\n"
      "regression = { law = \"zero\" }\nnoise = { law = \"normal\", sd = 1 }\n"
      "[heads]\ncount = 8\ndim = " +
      std::to_string(k) +
      "\nsubspaces = { law = \"haar\" }\nkernel = { law = \"gaussian\", bandwidth = 0.8 }\n"
      "[queries]\nlaw = \"design\"\ncount = 64\n"
      "[run]\nreplicates = 8\nestimator = \"" +
      estimator + "\"\nmoments = \"" + moments + "\"\n";
  return make_plan(parse_study(text, "bench").conditions.at(0));
}

void set_rate(benchmark::State& state, double weights) {
  state.counters["weights/s"] = benchmark::Counter(
      weights * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// A backend end to end: draws, projection, sums, moments.
void backend_rate(benchmark::State& state, const std::string& name, const std::string& estimator,
                  const std::string& moments, int points, std::uint64_t replicates) {
  const auto backend = make_backend(name);
  const Plan plan = plan_of(static_cast<int>(state.range(0)), estimator, moments, points);
  const int threads = static_cast<int>(state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(simulate(plan, *backend, threads, replicates));
  }
  set_rate(state, static_cast<double>(replicates) * queries * heads * points);
}

/// The plain loop from projected keys: it draws nothing and projects nothing.
void plain_rate(benchmark::State& state, decltype(&plain_loop) loop) {
  const auto k = static_cast<std::size_t>(state.range(0));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto draw = [&](std::size_t size) {
    std::vector<float> values(size);
    for (float& value : values) value = normal(random);
    return values;
  };
  const auto keys = draw(heads * k * n);
  const auto points = draw(heads * queries * k);
  const auto y = draw(n);
  std::vector<float> out(heads * queries);
  for (auto _ : state) {
    loop(keys.data(), points.data(), y.data(), n, heads, k, queries, 0.78f, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  set_rate(state, static_cast<double>(queries) * heads * n);
}

void register_all() {
  const std::vector<std::int64_t> dims = {1, 2, 4, 8};
  auto add = [&](const std::string& label, auto&& function, int threads) {
    auto* one = benchmark::RegisterBenchmark(label.c_str(), function);
    for (const std::int64_t k : dims) one->Args({k, threads});
    one->ArgNames({"k", "threads"})->UseRealTime()->Unit(benchmark::kMillisecond);
  };
  add(
      "plain_loop", [](benchmark::State& s) { plain_rate(s, plain_loop); }, 1);
  add(
      "plain_loop_fast_math", [](benchmark::State& s) { plain_rate(s, plain_loop_fast_math); }, 1);
  for (const int threads : {1, 2}) {
    for (const std::string estimator : {"plain", "conditional"}) {
      for (const std::string moments : {"pairwise", "aggregate"}) {
        add(
            "cpu/" + estimator + "/" + moments,
            [=](benchmark::State& s) { backend_rate(s, "cpu", estimator, moments, n, 16); },
            threads);
      }
    }
  }
  add(
      "reference/plain/pairwise",
      [](benchmark::State& s) { backend_rate(s, "reference", "plain", "pairwise", 256, 1); }, 1);
}

}  // namespace
}  // namespace headlab::bench

int main(int argc, char** argv) {
  headlab::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
