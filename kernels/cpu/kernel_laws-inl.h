// SPDX-License-Identifier: Apache-2.0
// The kernel laws compiled for a SIMD target, in its namespace `laws`, and the number type of their
// formulas.
#if defined(HEADLAB_CPU_KERNEL_LAWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_KERNEL_LAWS_INL_H
#undef HEADLAB_CPU_KERNEL_LAWS_INL_H
#else
#define HEADLAB_CPU_KERNEL_LAWS_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "kernels/cpu/lanes-inl.h"
#include "kernels/kernel_laws.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// A float in each lane, with the operations of kernels/law/kernel/kernel_law.h and no other.
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
  const Float none = hn::Set(float_tag, never);
  return hn::IfThenElse(hn::Gt(a.v, hn::Zero(float_tag)), hn::Log(float_tag, a.v), none);
}

}  // namespace headlab::HWY_NAMESPACE

#undef HEADLAB_LAW_NAMESPACE
#define HEADLAB_LAW_NAMESPACE headlab::HWY_NAMESPACE::laws
#include "kernels/kernel_laws-inl.h"
HWY_AFTER_NAMESPACE();
#endif
