// SPDX-License-Identifier: Apache-2.0
// Processor time of a stack of attention layers on one thread of the cpu backend, next to what its
// products, exponentials and normals take at their own rates: docs/measured/depth.md.
//
//     headlab_stack_rate [REPLICATES]
//
// Prints one JSON object, times in microseconds a replicate of the stack of stack_plan.h: `state`
// without metrics, `metrics` with all that are on by default, through the backend's worker.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/backends.h"
#include "kernels/cpu/stack_arithmetic.h"
#include "kernels/cpu/targets.h"
#include "kernels/stack/layers.h"
#include "tools/bench/stack_plan.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/bench/stack_rate.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headlab::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

HWY_ATTR void expm1_of_all(const double* x, std::size_t count, double* out) {
  const hn::CappedTag<double, 8> tag;
  for (std::size_t i = 0; i < count; i += hn::Lanes(tag)) {
    hn::StoreU(hn::Expm1(tag, hn::LoadU(tag, x + i)), tag, out + i);
  }
}

}  // namespace
}  // namespace headlab::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab::bench {
namespace {

HWY_EXPORT(expm1_of_all);

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Median of `rounds` times of one call [microseconds].
template <class Work>
double microseconds(int rounds, int calls, const Work& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double begin = processor_seconds();
    for (int call = 0; call < calls; ++call) work(call);
    times.push_back(1e6 * (processor_seconds() - begin) / calls);
  }
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[static_cast<std::size_t>(rounds / 2)];
}

int run(int replicates) {
  const Plan plan = stack_plan();
  const StackArithmetic& arithmetic = cpu_stack_arithmetic();
  const auto backend = make_backend("cpu");

  StackState state;
  const double of_state = microseconds(5, replicates, [&](int r) {
    const StackDraws draws = {plan.seed, static_cast<std::uint64_t>(r), &arithmetic};
    state.begin(*plan.stack, draws, cpu_stack_tokens(plan, draws.replicate), false);
    for (int l = 0; l < stack_layers; ++l) state.advance();
  });
  const Plan* const one = &plan;
  const auto worker = backend->worker(Plans(&one, 1));
  std::vector<Moments> moments(1);
  const Block block{
      .first = 256, .count = static_cast<std::uint64_t>(replicates), .node = replicates};
  const double with_metrics =
      microseconds(5, 1, [&](int) { worker->run(block, moments); }) / replicates;

  // log |R|_F of the last tokens, for comparisons with other programs.
  const std::size_t last = stack_layers * plan.layout().per_query();
  const double variance = moments[0].comoment[last] / (replicates - 1);

  const RowMatrix a = normal_matrix({1, 0}, Purpose::design, 0, stack_tokens, stack_tokens, 1);
  RowMatrix out(stack_tokens, stack_tokens);
  const double product = microseconds(15, 200, [&](int) { arithmetic.product(a, a, out); });
  const double expm1 = microseconds(15, 200, [&](int) {
    HWY_DYNAMIC_DISPATCH(expm1_of_all)
    (a.data(), static_cast<std::size_t>(a.size()), out.data());
  });
  const std::span<double> all(out.data(), static_cast<std::size_t>(out.size()));
  const double normals = microseconds(15, 200, [&](int) { arithmetic.normals(1, 2, 3, 0.5, all); });

  constexpr double n = stack_tokens;
  constexpr double flop = stack_layers * (8 * n * n * n + 4 * n * n * n);
  constexpr double exponentials = stack_layers * 2 * stack_heads * n * n;
  constexpr double draws = n * n + stack_layers * 4 * n * n;
  const double of_products = flop * product / (2 * n * n * n);
  const double of_exponentials = exponentials * expm1 / (n * n);
  const double of_draws = draws * normals / (n * n);
  const nlohmann::ordered_json found = {
      {"simd", backend->simd()},
      {"state", of_state},
      {"metrics", with_metrics},
      {"log_residual", moments[0].mean[last]},
      {"log_residual_mcse", std::sqrt(variance / replicates)},
      {"count", of_products + of_exponentials + of_draws},
      {"products", of_products},
      {"exponentials", of_exponentials},
      {"draws", of_draws},
      {"Gflop_per_second", 2e-3 * n * n * n / product},
      {"ns_per_expm1", 1e3 * expm1 / (n * n)},
      {"ns_per_normal", 1e3 * normals / (n * n)},
  };
  std::cout << found.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace headlab::bench

int main(int argc, char** argv) {
  const int replicates = argc > 1 ? std::atoi(argv[1]) : 512;
  if (argc > 2 || replicates < 2) {
    std::cerr << "headlab_stack_rate: takes one number of replicates, from 2\n";
    return 2;
  }
  return headlab::bench::run(replicates);
}
#endif
