// SPDX-License-Identifier: Apache-2.0
// The SIMD value type that kernel laws are compiled with, and 2^t. Included once per SIMD target,
// inside the target's namespace.

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using Float = hn::Vec<FloatTag>;
inline constexpr FloatTag float_tag;
inline constexpr std::size_t lane_count = hn::MaxLanes(float_tag);
static_assert(tile_points % lane_count == 0);

/// One float a lane, with the operations a kernel law may use.
struct Lanes {
  Float v;

  Lanes() = default;
  HWY_INLINE Lanes(Float value) : v(value) {}
  HWY_INLINE explicit Lanes(float value) : v(hn::Set(float_tag, value)) {}
  HWY_INLINE explicit Lanes(double value) : Lanes(static_cast<float>(value)) {}
  HWY_INLINE explicit Lanes(int value) : Lanes(static_cast<float>(value)) {}
};
HWY_INLINE Lanes operator+(Lanes a, Lanes b) {
  return hn::Add(a.v, b.v);
}
HWY_INLINE Lanes operator-(Lanes a, Lanes b) {
  return hn::Sub(a.v, b.v);
}
HWY_INLINE Lanes operator*(Lanes a, Lanes b) {
  return hn::Mul(a.v, b.v);
}
HWY_INLINE Lanes fused(Lanes a, Lanes b, Lanes c) {
  return hn::MulAdd(a.v, b.v, c.v);
}
HWY_INLINE Lanes max(Lanes a, Lanes b) {
  return hn::Max(a.v, b.v);
}
HWY_INLINE Lanes min(Lanes a, Lanes b) {
  return hn::Min(a.v, b.v);
}
HWY_INLINE Lanes sqrt(Lanes a) {
  return hn::Sqrt(a.v);
}
/// Natural logarithm; -inf at 0.
HWY_INLINE Lanes log(Lanes a) {
  const Float none = hn::Set(float_tag, -std::numeric_limits<float>::infinity());
  return hn::IfThenElse(hn::Gt(a.v, hn::Zero(float_tag)), hn::Log(float_tag, a.v), none);
}

/// Exponents below this give weight 0.
inline constexpr float min_exponent = -127.0f;
/// See Exp2.
inline constexpr float largest_plain_whole = 100.0f;
inline constexpr float largest_whole = 0x1p17f;

/// 2^(t + whole) for integers `whole` from -`largest_whole` to 127 and t + whole <= 127,
/// within 1.05 ulp (1.25 on the fallback target, whose MulAdd rounds twice); 0 below t + whole =
/// -126.5 or so. Without Clamp, t + whole is to be at least -125 and |whole| at most
/// `largest_plain_whole`; the bits are the same.
#if HWY_TARGET <= HWY_AVX3
/// 2^(j / 16), j = 0 .. 15: one operation looks them up, in all lanes at once.
inline constexpr std::size_t exp2_steps = 16;
inline constexpr float exp2_table[exp2_steps] = {
    1.0f,       1.0442737f, 1.0905077f, 1.1387886f, 1.1892071f, 1.2418578f, 1.2968396f, 1.3542556f,
    1.4142135f, 1.4768262f, 1.5422108f, 1.6104903f, 1.6817929f, 1.7562522f, 1.8340081f, 1.9152066f};

/// Those times 2^whole.
HWY_INLINE Float exp2_steps_from(float whole) {
  const std::int32_t bits = (127 + static_cast<std::int32_t>(whole)) << 23;
  return hn::Mul(hn::LoadU(float_tag, exp2_table),
                 hn::Set(float_tag, __builtin_bit_cast(float, bits)));
}

/// All lanes: without a mask g++ 12 warns of its own undefined register.
inline constexpr __mmask16 every_lane = 0xffff;

/// For each of the vectors t = n + j/16 + r, n and j integer, 0 <= r < 1/16: steps[j] 2^r. 2^r is 1
/// and a polynomial of degree 3 (minimax in relative error, 2^-29.7, from a Remez exchange), which
/// what is looked up is multiplied by without being rounded once more. One operation on all vectors
/// before the next one, because one chain of operations would leave most of the processor idle.
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

/// One operation multiplies by 2^n; 2^whole is in what is looked up.
template <bool Clamp>
class Exp2 {
 public:
  HWY_INLINE explicit Exp2(float whole)
      : whole_(hn::Set(float_tag, whole)), steps_(exp2_steps_from(Clamp ? 0 : whole)) {}
  /// In the place of each of the vectors t.
  template <std::size_t Vectors>
  HWY_INLINE void operator()(Float (&t)[Vectors]) const {
    Float power[Vectors];
    exp2_fractions(t, steps_, power);
    for (std::size_t v = 0; v < Vectors; ++v) {
      __mmask16 some = every_lane;
      if constexpr (Clamp) {
        const Float least = hn::Set(float_tag, min_exponent + 0.5f);
        some = _mm512_cmp_ps_mask(hn::Add(t[v], whole_).raw, least.raw, _CMP_GT_OQ);
        // The sum with t itself could be rounded up to the next integer.
        const Float n{_mm512_maskz_roundscale_ps(every_lane, t[v].raw, _MM_FROUND_TO_NEG_INF)};
        t[v] = hn::Add(n, whole_);
      }
      t[v] = Float{_mm512_maskz_scalef_ps(some, power[v].raw, t[v].raw)};
    }
  }

 private:
  Float whole_, steps_;
};

/// The same for every t, from steps in memory, where registers hold other things; |whole| is to be
/// at most `largest_plain_whole`. It has the bits of Exp2, and is fast, only where subnormal
/// numbers are taken for 0 (WithoutSubnormals).
struct StoredExp2 {
  alignas(sizeof(Float)) float steps[exp2_steps];

  StoredExp2() = default;
  HWY_ATTR explicit StoredExp2(float whole) { hn::Store(exp2_steps_from(whole), float_tag, steps); }
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
/// t = n + f, |f| <= 1/2; 2^f by a polynomial of degree 6 (minimax in relative error, 2^-28.8, from
/// a Remez exchange). Adding 1.5 2^23 + whole rounds t to an integer and leaves n + whole in the
/// low bits, from where it is added to the exponent of 2^f: `whole` costs nothing.
template <bool Clamp>
class Exp2 {
 public:
  HWY_INLINE explicit Exp2(float whole)
      : round_(hn::Set(float_tag, 12582912.0f + whole)),
        least_(hn::Set(float_tag, min_exponent - whole)) {}
  template <std::size_t Vectors>
  HWY_INLINE void operator()(Float (&t)[Vectors]) const {
    for (Float& vector : t) vector = power(vector);
  }

 private:
  HWY_INLINE Float power(Float t) const {
    if constexpr (Clamp) t = hn::Max(t, least_);
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
  Float round_, least_;
};
#endif

/// Sum over the lanes.
HWY_INLINE double total(Float lanes) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(float_tag, lanes)));
}
