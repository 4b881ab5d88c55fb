// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/peak_fma.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headlab::bench {
namespace hn = hwy::HWY_NAMESPACE;

// Two units of latency 4 or 5 need 8 to 10 chains; 12 and two constants fit into 16 registers.
HWY_ATTR float run_fmas(std::uint64_t rounds) {
  const hn::ScalableTag<float> tag;
  // x -> x / 2 + 1 tends to 2: no chain overflows or gets subnormal.
  const auto half = hn::Set(tag, 0.5f);
  const auto one = hn::Set(tag, 1.0f);
  auto a = hn::Iota(tag, 0.0f), b = hn::Iota(tag, 1.0f), c = hn::Iota(tag, 2.0f),
       d = hn::Iota(tag, 3.0f), e = hn::Iota(tag, 4.0f), f = hn::Iota(tag, 5.0f),
       g = hn::Iota(tag, 6.0f), h = hn::Iota(tag, 7.0f), i = hn::Iota(tag, 8.0f),
       j = hn::Iota(tag, 9.0f), k = hn::Iota(tag, 10.0f), l = hn::Iota(tag, 11.0f);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (auto* chain : {&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l}) {
      *chain = hn::MulAdd(*chain, half, one);
    }
  }
  for (const auto* chain : {&b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l}) a = hn::Add(a, *chain);
  return hn::GetLane(hn::SumOfLanes(tag, a));
}

std::uint64_t fmas_per_round() {
  return 12 * hn::Lanes(hn::ScalableTag<float>());
}

}  // namespace headlab::bench
HWY_AFTER_NAMESPACE();
