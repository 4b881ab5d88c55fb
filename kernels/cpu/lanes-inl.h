// SPDX-License-Identifier: Apache-2.0
// The SIMD value type that kernel laws are compiled with, and 2^t. Included once per SIMD target,
// after kernels/cpu/target.h has opened its namespace.

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

/// 2^t for t <= 127, within 1.05 ulp (1.25 on the fallback target, whose MulAdd rounds twice); 0
/// below t = -126.5 or so. t = n + f with n integer and |f| <= 1/2; 2^f by a polynomial of degree 6
/// (minimax in relative error, 2^-29.0, from a Remez exchange), 2^n through the exponent bits.
HWY_INLINE Float exp2(Float t) {
  t = hn::Max(t, hn::Set(float_tag, -127.0f));
  const Float n = hn::Round(t);
  const Float f = hn::Sub(t, n);
  Float p = hn::Set(float_tag, 1.5345812425948679e-4f);
  p = hn::MulAdd(p, f, hn::Set(float_tag, 1.3399930903688073e-3f));
  p = hn::MulAdd(p, f, hn::Set(float_tag, 9.618489071726799e-3f));
  p = hn::MulAdd(p, f, hn::Set(float_tag, 5.550328642129898e-2f));
  p = hn::MulAdd(p, f, hn::Set(float_tag, 0.24022646248340607f));
  p = hn::MulAdd(p, f, hn::Set(float_tag, 0.6931471824645996f));
  p = hn::MulAdd(p, f, hn::Set(float_tag, 1.0f));
  const hn::RebindToSigned<FloatTag> integers;
  const auto exponent = hn::Add(hn::ConvertTo(integers, n), hn::Set(integers, 127));
  return hn::Mul(p, hn::BitCast(float_tag, hn::ShiftLeft<23>(exponent)));
}
