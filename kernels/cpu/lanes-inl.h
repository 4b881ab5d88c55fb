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
inline constexpr float least_exponent = -127.0f;
/// See Exp2.
inline constexpr float largest_plain_whole = 100.0f;

/// 2^(t + whole) for integers `whole` and t + whole <= 127, within 1.05 ulp (1.3 with AVX-512,
/// where f is rounded if -1 < t < 0; 1.25 on the fallback target, whose MulAdd rounds twice); 0
/// below t + whole = -126.5 or so. Without Clamp, t + whole is to be at least -125 and |whole| at
/// most `largest_plain_whole`; the bits are the same.
///
/// t = n + f with n integer; 2^f by a polynomial of degree 6 (minimax in relative error, 2^-28.8 or
/// less, from a Remez exchange).
#if HWY_TARGET <= HWY_AVX3
/// Coefficients of 2^whole 2^f, the highest power first.
inline constexpr std::size_t exp2_terms = 7;
inline void exp2_coefficients(float whole, float (&c)[exp2_terms]) {
  const std::int32_t bits = (127 + static_cast<std::int32_t>(whole)) << 23;
  const float scale = __builtin_bit_cast(float, bits);
  constexpr float coefficients[] = {2.1565984934568405e-4f,
                                    1.2482288293540478e-3f,
                                    9.673775173723698e-3f,
                                    5.548618361353874e-2f,
                                    0.24022908508777618f,
                                    0.6931470632553101f,
                                    1.0f};
  for (std::size_t i = 0; i < exp2_terms; ++i) c[i] = coefficients[i] * scale;
}

/// 0 <= f < 1 is one operation, and another one multiplies by 2^n; 2^whole is in the coefficients.
template <bool Clamp>
class Exp2 {
 public:
  HWY_INLINE explicit Exp2(float whole) : whole_(hn::Set(float_tag, whole)) {
    float c[exp2_terms];
    exp2_coefficients(Clamp ? 0 : whole, c);
    for (std::size_t i = 0; i < exp2_terms; ++i) c_[i] = hn::Set(float_tag, c[i]);
  }
  /// In the place of each of the vectors t; one operation on all of them before the next one,
  /// because one chain of operations would leave most of the processor idle.
  template <std::size_t Vectors>
  HWY_INLINE void operator()(Float (&t)[Vectors]) const {
    Float f[Vectors], p[Vectors];
    for (std::size_t v = 0; v < Vectors; ++v) {
      f[v] = Float{_mm512_reduce_ps(t[v].raw, _MM_FROUND_TO_NEG_INF)};
      p[v] = c_[0];
    }
    for (std::size_t i = 1; i < 7; ++i) {
      for (std::size_t v = 0; v < Vectors; ++v) p[v] = hn::MulAdd(p[v], f[v], c_[i]);
    }
    for (std::size_t v = 0; v < Vectors; ++v) {
      // Without a mask g++ 12 warns of its own undefined register.
      __mmask16 some = 0xffff;
      if constexpr (Clamp) {
        const Float least = hn::Set(float_tag, least_exponent + 0.5f);
        some = _mm512_cmp_ps_mask(hn::Add(t[v], whole_).raw, least.raw, _CMP_GT_OQ);
        t[v] = hn::Add(hn::Sub(t[v], f[v]), whole_);
      }
      t[v] = Float{_mm512_maskz_scalef_ps(some, p[v].raw, t[v].raw)};
    }
  }

 private:
  Float whole_;
  Float c_[exp2_terms];
};

/// The same for every t, from coefficients in memory, where registers hold other things; |whole| is
/// to be at most `largest_plain_whole`. It has the bits of Exp2, and is fast, only where subnormal
/// numbers are taken for 0 (WithoutSubnormals).
struct StoredExp2 {
  float c[exp2_terms];

  StoredExp2() = default;
  explicit StoredExp2(float whole) { exp2_coefficients(whole, c); }
  template <std::size_t Vectors>
  HWY_INLINE void power(Float (&t)[Vectors]) const {
    Float f[Vectors], p[Vectors];
    for (std::size_t v = 0; v < Vectors; ++v) {
      f[v] = Float{_mm512_reduce_ps(t[v].raw, _MM_FROUND_TO_NEG_INF)};
      p[v] = hn::Set(float_tag, c[0]);
    }
    for (std::size_t i = 1; i < exp2_terms; ++i) {
      const Float next = hn::Set(float_tag, c[i]);
      for (std::size_t v = 0; v < Vectors; ++v) p[v] = hn::MulAdd(p[v], f[v], next);
    }
    for (std::size_t v = 0; v < Vectors; ++v) {
      // Without a mask g++ 12 warns of its own undefined register.
      t[v] = Float{_mm512_maskz_scalef_ps(0xffff, p[v].raw, t[v].raw)};
    }
  }
};
#else
/// |f| <= 1/2: adding 1.5 2^23 + whole rounds t to an integer and leaves n + whole in the low bits,
/// from where it is added to the exponent of 2^f: `whole` costs nothing.
template <bool Clamp>
class Exp2 {
 public:
  HWY_INLINE explicit Exp2(float whole)
      : round_(hn::Set(float_tag, 12582912.0f + whole)),
        least_(hn::Set(float_tag, least_exponent - whole)) {}
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
