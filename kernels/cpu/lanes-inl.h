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

/// 2^(t + whole) for t + whole <= 127, within 1.05 ulp (1.25 on the fallback target, whose MulAdd
/// rounds twice); 0 below t + whole = -126.5 or so. Without Clamp, t + whole >= -125 as well.
///
/// t = n + f with n integer and |f| <= 1/2; 2^f by a polynomial of degree 6 (minimax in relative
/// error, 2^-29.0, from a Remez exchange). Adding 1.5 2^23 + whole rounds t to an integer and
/// leaves n + whole in the low bits, from where it is added to the exponent of 2^f: `whole` costs
/// nothing.
template <bool Clamp>
HWY_INLINE Float exp2(Float t, float whole = 0) {
  const Float round = hn::Set(float_tag, 12582912.0f + whole);
  if constexpr (Clamp) t = hn::Max(t, hn::Set(float_tag, least_exponent - whole));
  const Float rounded = hn::Add(t, round);
  const Float f = hn::Sub(t, hn::Sub(rounded, round));
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

/// Sum over the lanes.
HWY_INLINE double total(Float lanes) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(float_tag, lanes)));
}
