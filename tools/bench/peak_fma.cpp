// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/targets.h"
#include "tools/bench/yardsticks.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/bench/peak_fma.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headlab::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Two units of latency 4 or 5 need 8 to 10 chains; 12 and two constants fit into 16 registers.
HWY_ATTR float run(std::uint64_t rounds) {
  const hn::ScalableTag<float> tag;
  // x -> x / 2 + 1 tends to 2: no chain overflows or gets subnormal.
  const auto half = hn::Set(tag, 0.5f);
  const auto one = hn::Set(tag, 1.0f);
  auto a = hn::Iota(tag, 0.0f), b = hn::Iota(tag, 1.0f), c = hn::Iota(tag, 2.0f),
       d = hn::Iota(tag, 3.0f), e = hn::Iota(tag, 4.0f), f = hn::Iota(tag, 5.0f),
       g = hn::Iota(tag, 6.0f), h = hn::Iota(tag, 7.0f), i = hn::Iota(tag, 8.0f),
       j = hn::Iota(tag, 9.0f), k = hn::Iota(tag, 10.0f), l = hn::Iota(tag, 11.0f);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, half, one);
    b = hn::MulAdd(b, half, one);
    c = hn::MulAdd(c, half, one);
    d = hn::MulAdd(d, half, one);
    e = hn::MulAdd(e, half, one);
    f = hn::MulAdd(f, half, one);
    g = hn::MulAdd(g, half, one);
    h = hn::MulAdd(h, half, one);
    i = hn::MulAdd(i, half, one);
    j = hn::MulAdd(j, half, one);
    k = hn::MulAdd(k, half, one);
    l = hn::MulAdd(l, half, one);
  }
  for (const auto& chain : {b, c, d, e, f, g, h, i, j, k, l}) a = hn::Add(a, chain);
  return hn::GetLane(hn::SumOfLanes(tag, a));
}

std::uint64_t per_round() {
  return 12 * hn::Lanes(hn::ScalableTag<float>());
}

}  // namespace
}  // namespace headlab::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab::bench {

HWY_EXPORT(run);
HWY_EXPORT(per_round);

float run_fmas(std::uint64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(run)(rounds);
}

std::uint64_t fmas_per_round() {
  return HWY_DYNAMIC_DISPATCH(per_round)();
}

}  // namespace headlab::bench
#endif
