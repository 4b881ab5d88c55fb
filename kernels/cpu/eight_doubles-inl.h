// SPDX-License-Identifier: Apache-2.0
// Eight doubles at a time: sums have eight chains on every target.
#if defined(HEADLAB_CPU_EIGHT_DOUBLES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_EIGHT_DOUBLES_INL_H
#undef HEADLAB_CPU_EIGHT_DOUBLES_INL_H
#else
#define HEADLAB_CPU_EIGHT_DOUBLES_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::CappedTag<double, 8>;
constexpr Doubles doubles;
using Vector = hn::Vec<Doubles>;
constexpr std::size_t lanes = hn::MaxLanes(doubles);

/// a b + c, rounded once on every target.
HWY_INLINE Vector mul_add(Vector a, Vector b, Vector c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  static_assert(lanes == 1);
  return hn::Set(doubles, std::fma(hn::GetLane(a), hn::GetLane(b), hn::GetLane(c)));
#endif
}
/// The first `count` numbers at p, 0 behind them.
HWY_INLINE Vector load_some(const double* p, std::size_t count) {
  // With one lane Highway would read the number before it looks at the mask.
  if (lanes == 1 && count == 0) return hn::Zero(doubles);
  return hn::MaskedLoad(hn::FirstN(doubles, count), doubles, p);
}
HWY_INLINE void store_some(Vector x, double* p, std::size_t count) {
  hn::BlendedStore(x, hn::FirstN(doubles, count), doubles, p);
}

constexpr std::size_t eight = 8;
constexpr std::size_t vectors = eight / lanes;

struct Eight {
  Vector v[vectors];
};

template <class Function, class... Arguments>
HWY_INLINE Eight by_vector(const Function& function, const Arguments&... arguments) {
  Eight out;
  for (std::size_t i = 0; i < vectors; ++i) out.v[i] = function(arguments.v[i]...);
  return out;
}

HWY_INLINE Eight set(double x) {
  Eight out;
  for (std::size_t i = 0; i < vectors; ++i) out.v[i] = hn::Set(doubles, x);
  return out;
}
HWY_INLINE std::size_t in_vector(std::size_t i, std::size_t count) {
  return std::min(lanes, count - std::min(count, i * lanes));
}
/// The first `count` numbers at p, all eight from 8 on; 0 behind them.
HWY_INLINE Eight load(const double* p, std::size_t count) {
  Eight out;
  if (count >= eight) {
    for (std::size_t i = 0; i < vectors; ++i) out.v[i] = hn::LoadU(doubles, p + i * lanes);
    return out;
  }
  for (std::size_t i = 0; i < vectors; ++i) {
    out.v[i] = load_some(p + i * lanes, in_vector(i, count));
  }
  return out;
}
HWY_INLINE void store(const Eight& x, double* p, std::size_t count) {
  if (count >= eight) {
    for (std::size_t i = 0; i < vectors; ++i) hn::StoreU(x.v[i], doubles, p + i * lanes);
    return;
  }
  for (std::size_t i = 0; i < vectors; ++i) {
    store_some(x.v[i], p + i * lanes, in_vector(i, count));
  }
}
/// x with 0 behind its first `count` numbers.
HWY_INLINE Eight first(const Eight& x, std::size_t count) {
  if (count >= eight) return x;
  Eight out;
  for (std::size_t i = 0; i < vectors; ++i) {
    out.v[i] = hn::IfThenElseZero(hn::FirstN(doubles, in_vector(i, count)), x.v[i]);
  }
  return out;
}

HWY_INLINE Eight operator+(const Eight& a, const Eight& b) {
  return by_vector([](Vector x, Vector y) HWY_ATTR { return hn::Add(x, y); }, a, b);
}
HWY_INLINE Eight operator-(const Eight& a, const Eight& b) {
  return by_vector([](Vector x, Vector y) HWY_ATTR { return hn::Sub(x, y); }, a, b);
}
HWY_INLINE Eight operator*(const Eight& a, const Eight& b) {
  return by_vector([](Vector x, Vector y) HWY_ATTR { return hn::Mul(x, y); }, a, b);
}
HWY_INLINE Eight fused(const Eight& a, const Eight& b, const Eight& c) {
  return by_vector([](Vector x, Vector y, Vector z) HWY_ATTR { return mul_add(x, y, z); }, a, b, c);
}
HWY_INLINE Eight max(const Eight& a, const Eight& b) {
  return by_vector([](Vector x, Vector y) HWY_ATTR { return hn::Max(x, y); }, a, b);
}
HWY_INLINE Eight abs(const Eight& a) {
  return by_vector([](Vector x) HWY_ATTR { return hn::Abs(x); }, a);
}
HWY_INLINE Eight exp(const Eight& a) {
  return by_vector([](Vector x) HWY_ATTR { return hn::Exp(doubles, x); }, a);
}
HWY_INLINE Eight expm1(const Eight& a) {
  return by_vector([](Vector x) HWY_ATTR { return hn::Expm1(doubles, x); }, a);
}
HWY_INLINE Eight log(const Eight& a) {
  return by_vector([](Vector x) HWY_ATTR { return hn::Log(doubles, x); }, a);
}
HWY_INLINE Eight log1p(const Eight& a) {
  return by_vector([](Vector x) HWY_ATTR { return hn::Log1p(doubles, x); }, a);
}

/// Lane i and lane i + half, until one is left.
template <class Tag, class Combine>
HWY_INLINE double fold([[maybe_unused]] Tag tag, hn::Vec<Tag> x,
                       [[maybe_unused]] const Combine& combine) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(tag) > 1) {
    const hn::Half<Tag> half;
    return fold(half, combine(hn::LowerHalf(half, x), hn::UpperHalf(half, x)), combine);
  }
#endif
  return hn::GetLane(x);
}
template <class Combine>
HWY_INLINE double fold(Eight x, const Combine& combine) {
  for (std::size_t width = vectors / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) x.v[i] = combine(x.v[i], x.v[i + width]);
  }
  return fold(doubles, x.v[0], combine);
}
HWY_INLINE double total(const Eight& x) {
  return fold(x, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}
HWY_INLINE double largest(const Eight& x) {
  return fold(x, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

/// Calls body(j, count) for the eights of a row of n numbers.
template <class Body>
HWY_INLINE void for_eights(std::size_t n, const Body& body) {
  std::size_t j = 0;
  for (; j + eight <= n; j += eight) body(j, eight);
  if (j < n) body(j, n - j);
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
