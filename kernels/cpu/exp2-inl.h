// SPDX-License-Identifier: Apache-2.0
// 2^t in SIMD.
#if defined(HEADLAB_CPU_EXP2_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_EXP2_INL_H
#undef HEADLAB_CPU_EXP2_INL_H
#else
#define HEADLAB_CPU_EXP2_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Smaller exponents give weight 0.
inline constexpr float min_exponent = -127.0f;
/// Limits of |offset|, without and with Clamp.
inline constexpr float max_plain_offset = 100.0f;
inline constexpr float max_offset = 0x1p17f;

/// Exp2<Clamp>: 2^(t + offset) for integer offsets from -max_offset to 127 and t + offset <= 127,
/// within 1.05 ulp (1.25 on the fallback target, whose MulAdd rounds twice); 0 below t + offset =
/// -126.5 or so. Without Clamp t + offset >= -125 and |offset| <= max_plain_offset are required;
/// the bits are the same.
#if HWY_TARGET <= HWY_AVX3
/// 2^(j / 16), j = 0 .. 15, looked up by one operation in all lanes at once.
inline constexpr std::size_t exp2_steps = 16;
inline constexpr float exp2_table[exp2_steps] = {
    1.0f,       1.0442737f, 1.0905077f, 1.1387886f, 1.1892071f, 1.2418578f, 1.2968396f, 1.3542556f,
    1.4142135f, 1.4768262f, 1.5422108f, 1.6104903f, 1.6817929f, 1.7562522f, 1.8340081f, 1.9152066f};

/// Those times 2^offset.
HWY_INLINE Float exp2_steps_from(float offset) {
  const std::int32_t bits = (127 + static_cast<std::int32_t>(offset)) << 23;
  return hn::Mul(hn::LoadU(float_tag, exp2_table),
                 hn::Set(float_tag, __builtin_bit_cast(float, bits)));
}

/// A mask of all lanes, without which g++ 12 warns of its own undefined register.
inline constexpr __mmask16 every_lane = 0xffff;

/// steps[j] 2^r for vectors t = n + j/16 + r, n and j integer, 0 <= r < 1/16. 2^r - 1 is a
/// polynomial of degree 3 (minimax in relative error, 2^-29.7, from a Remez exchange), multiplied
/// by steps[j] and added to it with one rounding. Each operation is done on all vectors before the
/// next one, because one chain of dependent operations would leave most of the processor idle.
template <std::size_t Vectors>
HWY_INLINE void exp2_fractions(const Float (&t)[Vectors], Float steps, Float (&power)[Vectors]) {
  const Float c1 = hn::Set(float_tag, 0.6931478f);
  const Float c2 = hn::Set(float_tag, 0.24017905f);
  const Float c3 = hn::Set(float_tag, 0.05671816f);
  // 1.5 2^19: rounds down to sixteenths and leaves j in the low bits.
  const Float to_sixteenths = hn::Set(float_tag, 786432.0f);
  constexpr int down = _MM_FROUND_TO_NEG_INF;
  constexpr int sixteenths = 4 << 4;
  Float r[Vectors], p[Vectors];
  for (std::size_t v = 0; v < Vectors; ++v) {
    const __m512 rounded = _mm512_maskz_add_round_ps(every_lane, t[v].raw, to_sixteenths.raw,
                                                     down | _MM_FROUND_NO_EXC);
    power[v] =
        Float{_mm512_maskz_permutexvar_ps(every_lane, _mm512_castps_si512(rounded), steps.raw)};
    r[v] = Float{_mm512_reduce_ps(t[v].raw, sixteenths | down)};
  }
  for (std::size_t v = 0; v < Vectors; ++v) p[v] = hn::MulAdd(c3, r[v], c2);
  for (std::size_t v = 0; v < Vectors; ++v) p[v] = hn::MulAdd(p[v], r[v], c1);
  for (std::size_t v = 0; v < Vectors; ++v) r[v] = hn::Mul(power[v], r[v]);
  for (std::size_t v = 0; v < Vectors; ++v) power[v] = hn::MulAdd(p[v], r[v], power[v]);
}

/// One operation multiplies by 2^n; the steps hold 2^offset.
template <bool Clamp>
class Exp2 {
 public:
  HWY_INLINE explicit Exp2(float offset)
      : offset_(hn::Set(float_tag, offset)), steps_(exp2_steps_from(Clamp ? 0 : offset)) {}
  /// Replaces each of the vectors t.
  template <std::size_t Vectors>
  HWY_INLINE void operator()(Float (&t)[Vectors]) const {
    Float power[Vectors];
    exp2_fractions(t, steps_, power);
    for (std::size_t v = 0; v < Vectors; ++v) {
      __mmask16 some = every_lane;
      if constexpr (Clamp) {
        const Float min = hn::Set(float_tag, min_exponent + 0.5f);
        some = _mm512_cmp_ps_mask(hn::Add(t[v], offset_).raw, min.raw, _CMP_GT_OQ);
        // The sum with t itself could be rounded up to the next integer.
        const Float n{_mm512_maskz_roundscale_ps(every_lane, t[v].raw, _MM_FROUND_TO_NEG_INF)};
        t[v] = hn::Add(n, offset_);
      }
      t[v] = Float{_mm512_maskz_scalef_ps(some, power[v].raw, t[v].raw)};
    }
  }

 private:
  Float offset_, steps_;
};

/// 2^(t + offset) for every t, |offset| <= max_plain_offset, with the steps in memory, which leaves
/// a register free. It has the bits of Exp2, and its speed, only where subnormal numbers are taken
/// for 0 (WithoutSubnormals).
struct StoredExp2 {
  alignas(sizeof(Float)) float steps[exp2_steps];

  StoredExp2() = default;
  HWY_ATTR explicit StoredExp2(float offset) {
    hn::Store(exp2_steps_from(offset), float_tag, steps);
  }
  template <std::size_t Vectors>
  HWY_INLINE void power(Float (&t)[Vectors]) const {
    Float power[Vectors];
    exp2_fractions(t, hn::Load(float_tag, steps), power);
    for (std::size_t v = 0; v < Vectors; ++v) {
      t[v] = Float{_mm512_maskz_scalef_ps(every_lane, power[v].raw, t[v].raw)};
    }
  }
};
#else
/// 2^f for t = n + f, |f| <= 1/2, by a polynomial of degree 6 (minimax in relative error, 2^-28.8,
/// from a Remez exchange). Adding 1.5 2^23 + offset rounds t to an integer and leaves n + offset in
/// the low bits, from where it is added to the exponent of 2^f, so that the offset costs nothing.
template <bool Clamp>
class Exp2 {
 public:
  HWY_INLINE explicit Exp2(float offset)
      : round_(hn::Set(float_tag, 12582912.0f + offset)),
        min_(hn::Set(float_tag, min_exponent - offset)) {}
  template <std::size_t Vectors>
  HWY_INLINE void operator()(Float (&t)[Vectors]) const {
    for (Float& vector : t) vector = power(vector);
  }

 private:
  HWY_INLINE Float power(Float t) const {
    if constexpr (Clamp) t = hn::Max(t, min_);
    const Float rounded = hn::Add(t, round_);
    const Float f = hn::Sub(t, hn::Sub(rounded, round_));
    Float p = hn::Set(float_tag, 1.5345812425948679e-4f);
    p = hn::MulAdd(p, f, hn::Set(float_tag, 1.3399930903688073e-3f));
    p = hn::MulAdd(p, f, hn::Set(float_tag, 9.618489071726799e-3f));
    p = hn::MulAdd(p, f, hn::Set(float_tag, 5.550328642129898e-2f));
    p = hn::MulAdd(p, f, hn::Set(float_tag, 0.24022646248340607f));
    p = hn::MulAdd(p, f, hn::Set(float_tag, 0.6931471824645996f));
    p = hn::MulAdd(p, f, hn::Set(float_tag, 1.0f));
    const hn::RebindToSigned<FloatTag> integers;
    return hn::BitCast(float_tag, hn::Add(hn::BitCast(integers, p),
                                          hn::ShiftLeft<23>(hn::BitCast(integers, rounded))));
  }
  Float round_, min_;
};
#endif

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
