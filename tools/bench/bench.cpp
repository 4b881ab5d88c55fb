// SPDX-License-Identifier: Apache-2.0
// Kernel weights per second of the backends compared with a plain loop and with what the processor
// can do, in one run. One weight is one kernel value and its share of the sums: replicates x
// queries x heads x n.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "kernels/backends.h"
#include "kernels/cpu/worker.h"
#include "kernels/host.h"
#include "tools/bench/yardsticks.h"

namespace headlab::bench {
namespace {

using benchmark::State;

/// What one benchmark computes.
struct Work {
  std::uint64_t n = 4096;
  int k = 4;
  int heads = 8;
  int queries = 64;
  /// As many as make the memory that a job asks for first cost nothing.
  std::uint64_t replicates = 256;
  std::string estimator = "plain";
  std::string moments = "pairwise";

  int d() const { return std::max(32, k); }
  double weights() const {
    return static_cast<double>(replicates) * static_cast<double>(n) * heads * queries;
  }
};

/// The bandwidth grows with sqrt(k), so that exponents are as large for every k.
Plan plan_of(const Work& work) {
  const std::string text =
      "[scenario]\nname = \"bench\"\n[data]\nn = " + std::to_string(work.n) +
      "\ndesign = { law = \"normal\", dim = " + std::to_string(work.d()) +
      " }\nregression = { law = \"zero\" }\nnoise = { law = \"normal\", sd = 1 }\n" +
      "[heads]\ncount = " + std::to_string(work.heads) + "\ndim = " + std::to_string(work.k) +
      "\nsubspaces = { law = \"haar\" }\nkernel = { law = \"gaussian\", bandwidth = " +
      std::to_string(0.8 * std::sqrt(work.k)) +
      " }\n[queries]\nlaw = \"design\"\ncount = " + std::to_string(work.queries) +
      "\n[run]\nreplicates = 8\nestimator = \"" + work.estimator + "\"\nmoments = \"" +
      work.moments + "\"\n";
  return make_plan(parse_scenario(text, "bench").conditions.at(0));
}

/// `amount` a loop round, as a rate of the wall time. With several threads each adds its own.
void set_rate(State& state, const char* unit, double amount) {
  state.counters[unit] = benchmark::Counter(amount * static_cast<double>(state.iterations()),
                                            benchmark::Counter::kIsRate);
}

void peak_fma(State& state) {
  constexpr std::uint64_t rounds = 1'000'000;
  for (auto _ : state) benchmark::DoNotOptimize(run_fmas(rounds));
  set_rate(state, "FMA/s", static_cast<double>(rounds * fmas_per_round()));
}

/// The sums alone.
void cpu_core(State& state, const Work& work) {
  const Plan plan = plan_of(work);
  const auto parts = make_cpu_parts(plan);
  parts->draw(0);
  parts->project();
  for (auto _ : state) {
    parts->sum();
    benchmark::ClobberMemory();
  }
  set_rate(state, "weights/s", work.weights());
}

/// Projection and sums from training points that are there. Each thread has its own replicate.
void cpu_given_x(State& state, const Work& work) {
  const Plan plan = plan_of(work);
  const auto parts = make_cpu_parts(plan);
  parts->draw(static_cast<std::uint64_t>(state.thread_index()));
  for (auto _ : state) {
    parts->project();
    parts->sum();
    benchmark::ClobberMemory();
  }
  set_rate(state, "weights/s", work.weights());
}

/// The points and the noise of a training set.
void cpu_draw(State& state, const Work& work) {
  const Plan plan = plan_of(work);
  const auto parts = make_cpu_parts(plan);
  std::uint64_t replicate = 0;
  for (auto _ : state) {
    parts->draw(replicate++);
    benchmark::ClobberMemory();
  }
  set_rate(state, "normals/s", static_cast<double>(work.n) * (work.d() + 1));
}

/// A backend end to end: draws, projection, sums, moments.
void whole_job(State& state, const std::string& name, const Work& work, int threads) {
  const auto backend = make_backend(name);
  const Plan plan = plan_of(work);
  for (auto _ : state) {
    benchmark::DoNotOptimize(simulate(plan, *backend, threads, work.replicates));
  }
  set_rate(state, "weights/s", work.weights());
}

/// H heads of dimension k = D/H on coordinates of their own, the ways to spend a budget of D = d =
/// 16. The regression costs what one costs that is worth a scenario.
std::vector<Plan> nested_plans(std::uint64_t n, int queries) {
  std::vector<Plan> plans;
  for (const int k : {1, 2, 4, 8, 16}) {
    const std::string text =
        "[scenario]\nname = \"nested\"\n[data]\nn = " + std::to_string(n) +
        "\ndesign = { law = \"normal\", dim = 16 }\n"
        "regression = { law = \"random_cosines\", terms = 16, length_scale = 4.0 }\n"
        "noise = { law = \"normal\", sd = 1 }\n[heads]\ncount = " +
        std::to_string(16 / k) + "\ndim = " + std::to_string(k) +
        "\nsubspaces = { law = \"orthogonal\" }\n"
        "kernel = { law = \"gaussian\", bandwidth = 1.0 }\n"
        "[queries]\nlaw = \"design\"\ncount = " +
        std::to_string(queries) +
        "\n[run]\nreplicates = 8\nestimator = \"conditional\"\nmoments = \"aggregate\"\n";
    plans.push_back(make_plan(parse_scenario(text, "bench").conditions.at(0)));
  }
  return plans;
}

/// Seconds that `work` takes.
double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A study of all these plans at once. In turn with it, outside the time: each plan alone. `ratio`
/// is how many times as long those take together.
void nested_allocations(State& state, std::uint64_t n, int queries) {
  const auto backend = make_backend("cpu");
  const std::vector<Plan> plans = nested_plans(n, queries);
  std::vector<const Plan*> all;
  for (const Plan& plan : plans) all.push_back(&plan);
  const std::uint64_t replicates = 32;
  double together = 0, separate = 0;
  std::vector<double> alone(plans.size());
  for (auto _ : state) {
    const double seconds = seconds_of(
        [&] { benchmark::DoNotOptimize(simulate(Plans(all), *backend, 1, replicates)); });
    state.SetIterationTime(seconds);
    together += seconds;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const double one = seconds_of(
          [&] { benchmark::DoNotOptimize(simulate(plans[p], *backend, 1, replicates)); });
      alone[p] += one;
      separate += one;
    }
  }
  state.counters["ratio"] = separate / together;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    state.counters["k:" + std::to_string(plans[p].k)] = alone[p] / together;
  }
}

/// The plain loop from projected keys: it draws nothing and projects nothing.
void plain_rate(State& state, const Work& work, decltype(&plain_loop) loop) {
  const auto n = static_cast<std::size_t>(work.n);
  const auto k = static_cast<std::size_t>(work.k);
  const auto heads = static_cast<std::size_t>(work.heads);
  const auto queries = static_cast<std::size_t>(work.queries);
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
  const float scale = 0.78f / static_cast<float>(k);
  std::vector<float> out(heads * queries);
  for (auto _ : state) {
    loop(keys.data(), points.data(), y.data(), n, heads, k, queries, scale, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  set_rate(state, "weights/s", work.weights());
}

benchmark::internal::Benchmark* add(const std::string& name, std::function<void(State&)> function) {
  return benchmark::RegisterBenchmark(name.c_str(), std::move(function))
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

/// 1, 2, the powers of two that follow, and all of this machine.
std::vector<int> thread_counts() {
  const int cores = usable_processors();
  std::vector<int> counts = {1, 2};
  for (int threads = 4; threads < cores; threads *= 2) counts.push_back(threads);
  if (cores > 2) counts.push_back(cores);
  return counts;
}

std::string threads_of(int threads) {
  return "/threads:" + std::to_string(threads);
}

constexpr int head_dims[] = {1, 2, 4, 8, 16, 32, 64};

void add_parts() {
  for (const int threads : thread_counts()) add("peak_fma", peak_fma)->Threads(threads);
  add("cpu_draw", [](State& state) { cpu_draw(state, {.replicates = 1}); });
  for (const int k : head_dims) {
    const Work work{.k = k, .replicates = 1};
    const std::string at = "/k:" + std::to_string(k);
    add("cpu_core" + at, [=](State& state) { cpu_core(state, work); });
    for (const int threads : thread_counts()) {
      add("cpu_given_x" + at, [=](State& state) { cpu_given_x(state, work); })->Threads(threads);
    }
    add("plain_loop" + at, [=](State& state) { plain_rate(state, work, plain_loop); });
    add("plain_loop_fast_math" + at,
        [=](State& state) { plain_rate(state, work, plain_loop_fast_math); });
  }
}

void add_jobs() {
  for (const std::string estimator : {"plain", "conditional"}) {
    for (const std::string moments : {"pairwise", "aggregate"}) {
      for (const int k : head_dims) {
        for (const int threads : {1, 2}) {
          const Work work{.k = k, .estimator = estimator, .moments = moments};
          add("cpu/" + estimator + "/" + moments + "/k:" + std::to_string(k) + threads_of(threads),
              [=](State& state) { whole_job(state, "cpu", work, threads); });
        }
      }
    }
  }
  for (const int k : {1, 2, 4, 8}) {
    const Work work{.n = 256, .k = k, .replicates = 1};
    add("reference/plain/pairwise/k:" + std::to_string(k) + threads_of(1),
        [=](State& state) { whole_job(state, "reference", work, 1); });
  }
}

/// Whole jobs of the conditional estimator that grow in one direction each.
void add_scaling() {
  auto one = [](const std::string& what, std::uint64_t value, const Work& work, int threads = 1) {
    add("scaling/" + what + ":" + std::to_string(value),
        [=](State& state) { whole_job(state, "cpu", work, threads); });
  };
  for (std::uint64_t n = 100; n <= 1'000'000; n *= 10) {
    one("n", n,
        {.n = n, .queries = 8, .replicates = 8, .estimator = "conditional", .moments = "pairwise"});
  }
  for (std::uint64_t r = 10; r <= 100'000; r *= 10) {
    one("R", r,
        {.n = 100,
         .queries = 8,
         .replicates = r,
         .estimator = "conditional",
         .moments = "pairwise"});
  }
  for (int size = 1; size <= 128; size *= 2) {
    const auto value = static_cast<std::uint64_t>(size);
    one("H", value,
        {.n = 1000,
         .heads = size,
         .queries = 16,
         .estimator = "conditional",
         .moments = "aggregate"});
    one("Q", value,
        {.n = 1000, .queries = size, .estimator = "conditional", .moments = "pairwise"});
  }
  for (const int threads : thread_counts()) {
    one("threads", static_cast<std::uint64_t>(threads),
        {.estimator = "conditional", .moments = "pairwise"}, threads);
  }
}

void add_nested() {
  for (const std::uint64_t n : {500, 4096}) {
    for (const int queries : {16, 32}) {
      const std::string name =
          "nested_allocations/n:" + std::to_string(n) + "/Q:" + std::to_string(queries);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](State& state) { nested_allocations(state, n, queries); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace headlab::bench

int main(int argc, char** argv) {
  headlab::bench::add_parts();
  headlab::bench::add_jobs();
  headlab::bench::add_scaling();
  headlab::bench::add_nested();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
