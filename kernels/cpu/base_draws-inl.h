// SPDX-License-Identifier: Apache-2.0
// Base draws of a tile of points in SIMD, with the bits of kernels/philox.h and kernels/draws.h.
//
// Every operation is done on all vectors of a row of the tile before the next one, because one
// chain of dependent operations would leave most of the processor idle. Words stay in 32-bit lanes:
// 64-bit lanes take a tenth fewer operations a round and twice the registers, and were slower.
#if defined(HEADLAB_CPU_BASE_DRAWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_BASE_DRAWS_INL_H
#undef HEADLAB_CPU_BASE_DRAWS_INL_H
#else
#define HEADLAB_CPU_BASE_DRAWS_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <utility>

#include <hwy/highway.h>

#include "kernels/cpu/lanes-inl.h"
#include "kernels/draws.h"
#include "kernels/philox.h"
#include "kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// The four integers of one counter for each point of a tile, [word][point].
struct alignas(64) TileWords {
  std::uint32_t w[4][tile_points];
};

/// The words of counters first, first + stride, and so on, one for each point.
inline void draw_one_by_one(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t first,
                            std::uint64_t stride, TileWords& words) {
  for (std::size_t i = 0; i < tile_points; ++i) {
    const Words drawn = philox(seed, subsequence, first + i * stride);
    for (std::size_t j = 0; j < 4; ++j) words.w[j][i] = drawn.w[j];
  }
}

#if HWY_NATIVE_FMA

using WordTag = hn::RebindToUnsigned<FloatTag>;
using WideTag = hn::RepartitionToWide<WordTag>;
inline constexpr WordTag word_tag;
inline constexpr WideTag wide_tag;

/// The vectors of one row of a tile, or of several.
template <class Vector, std::size_t Count>
struct Row {
  Vector v[Count];
};
template <std::size_t Count>
using WordRow = Row<hn::Vec<WordTag>, Count>;
template <std::size_t Count>
using FloatRow = Row<Float, Count>;
inline constexpr std::size_t tile_vectors = tile_points / lane_count;

/// The row of function(vector 0), function(vector 1) and so on.
template <class Function, std::size_t... I>
HWY_INLINE auto by_vector(const Function& function, std::index_sequence<I...>) {
  return Row<decltype(function(std::size_t{})), sizeof...(I)>{{function(I)...}};
}
template <std::size_t Count, class Function>
HWY_INLINE auto by_vector(const Function& function) {
  return by_vector(function, std::make_index_sequence<Count>());
}

/// The rows from[0], from[1] and so on.
template <std::size_t Rows>
HWY_INLINE auto load(const std::uint32_t* const (&from)[Rows]) {
  return by_vector<Rows * tile_vectors>([&](std::size_t i) {
    return hn::Load(word_tag, from[i / tile_vectors] + i % tile_vectors * lane_count);
  });
}
template <class Vector, class Lane, std::size_t Rows>
HWY_INLINE void store(const Row<Vector, Rows * tile_vectors>& row, Lane* const (&to)[Rows]) {
  const hn::ScalableTag<Lane> tag;
  by_vector<Rows * tile_vectors>([&](std::size_t i) {
    hn::Store(row.v[i], tag, to[i / tile_vectors] + i % tile_vectors * lane_count);
    return i;
  });
}

/// The second words, or the first, of each pair in `even` and of each in `odd`, in turn.
HWY_INLINE hn::Vec<WordTag> odd_words(hn::Vec<WordTag> even, hn::Vec<WordTag> odd) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<WordTag>{_mm512_mask_shuffle_epi32(odd.raw, 0x5555, even.raw, _MM_PERM_DDBB)};
#else
  return hn::OddEven(odd, hn::DupOdd(even));
#endif
}
HWY_INLINE hn::Vec<WordTag> even_words(hn::Vec<WordTag> even, hn::Vec<WordTag> odd) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<WordTag>{_mm512_mask_shuffle_epi32(even.raw, 0xaaaa, odd.raw, _MM_PERM_CCAA)};
#else
  return hn::OddEven(hn::DupEven(odd), even);
#endif
}

/// Both halves of the 64-bit product of each word and a constant.
struct Product {
  WordRow<tile_vectors> high, low;
};
HWY_INLINE Product multiply(const WordRow<tile_vectors>& a, std::uint32_t constant) {
  const auto factor = hn::Set(word_tag, constant);
  const auto words = [](auto lanes) { return hn::BitCast(word_tag, lanes); };
  const auto even =
      by_vector<tile_vectors>([&](std::size_t i) { return words(hn::MulEven(a.v[i], factor)); });
  const auto odd = by_vector<tile_vectors>(
      [&](std::size_t i) { return words(hn::MulEven(hn::DupOdd(a.v[i]), factor)); });
  return {by_vector<tile_vectors>([&](std::size_t i) { return odd_words(even.v[i], odd.v[i]); }),
          by_vector<tile_vectors>([&](std::size_t i) { return even_words(even.v[i], odd.v[i]); })};
}
HWY_INLINE WordRow<tile_vectors> exclusive_or(const WordRow<tile_vectors>& a,
                                              const WordRow<tile_vectors>& b, std::uint32_t key) {
  const auto keys = hn::Set(word_tag, key);
  return by_vector<tile_vectors>([&](std::size_t i) { return hn::Xor3(a.v[i], b.v[i], keys); });
}

/// A stream (seed, subsequence) of Philox4x32-10, for a tile at a time.
class TileStream {
 public:
  TileStream(std::uint64_t seed, std::uint64_t subsequence)
      : seed_(seed), subsequence_(subsequence) {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      keys_[round][0] = static_cast<std::uint32_t>(seed) + round * PHILOX_W32_0;
      keys_[round][1] = static_cast<std::uint32_t>(seed >> 32) + round * PHILOX_W32_1;
    }
  }

  /// The words of counters first, first + stride, and so on, one for each point.
  HWY_ATTR HWY_NOINLINE void draw(std::uint64_t first, std::uint64_t stride,
                                  TileWords& words) const {
    if (first >> 32 != (first + (tile_points - 1) * stride) >> 32) {
      // The points differ in the counter's second word: once in 2^32 counters.
      draw_one_by_one(seed_, subsequence_, first, stride, words);
      return;
    }
    const auto same = [](std::uint64_t word) {
      const auto vector = hn::Set(word_tag, static_cast<std::uint32_t>(word));
      return by_vector<tile_vectors>([&](std::size_t) { return vector; });
    };
    const auto steps = hn::Set(word_tag, static_cast<std::uint32_t>(stride));
    WordRow<tile_vectors> c0 = by_vector<tile_vectors>([&](std::size_t i) {
      const auto start = static_cast<std::uint32_t>(first + i * lane_count * stride);
      return hn::Add(hn::Set(word_tag, start), hn::Mul(hn::Iota(word_tag, 0), steps));
    });
    // The points differ only in c0: in the first two rounds one product is the same for all.
    const std::uint64_t same0 =
        std::uint64_t{PHILOX_M4x32_1} * static_cast<std::uint32_t>(subsequence_);
    const std::uint32_t next0 = static_cast<std::uint32_t>(same0 >> 32) ^
                                static_cast<std::uint32_t>(first >> 32) ^ keys_[0][0];
    const std::uint64_t same1 = std::uint64_t{PHILOX_M4x32_0} * next0;
    const Product from0 = multiply(c0, PHILOX_M4x32_0);
    const Product from1 =
        multiply(exclusive_or(from0.high, same(subsequence_ >> 32), keys_[0][1]), PHILOX_M4x32_1);
    c0 = exclusive_or(from1.high, same(same0), keys_[1][0]);
    WordRow<tile_vectors> c1 = from1.low;
    WordRow<tile_vectors> c2 = exclusive_or(same(same1 >> 32), from0.low, keys_[1][1]);
    WordRow<tile_vectors> c3 = same(same1);
#pragma GCC unroll 8
    for (std::size_t round = 2; round < rounds; ++round) {
      const Product p0 = multiply(c0, PHILOX_M4x32_0);
      const Product p1 = multiply(c2, PHILOX_M4x32_1);
      c0 = exclusive_or(p1.high, c1, keys_[round][0]);
      c1 = p1.low;
      c2 = exclusive_or(p0.high, c3, keys_[round][1]);
      c3 = p0.low;
    }
    store(c0, {words.w[0]});
    store(c1, {words.w[1]});
    store(c2, {words.w[2]});
    store(c3, {words.w[3]});
  }

 private:
  static constexpr std::size_t rounds = 10;
  std::uint64_t seed_;
  std::uint64_t subsequence_;
  std::uint32_t keys_[rounds][2];
};

template <std::size_t Count>
HWY_INLINE FloatRow<Count> fused(const FloatRow<Count>& a, const FloatRow<Count>& b,
                                 const FloatRow<Count>& c) {
  return by_vector<Count>([&](std::size_t i) { return hn::MulAdd(a.v[i], b.v[i], c.v[i]); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> fused(const FloatRow<Count>& a, const FloatRow<Count>& b, float c) {
  const Float constant = hn::Set(float_tag, c);
  return by_vector<Count>([&](std::size_t i) { return hn::MulAdd(a.v[i], b.v[i], constant); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> fused(const FloatRow<Count>& a, float b, const FloatRow<Count>& c) {
  const Float constant = hn::Set(float_tag, b);
  return by_vector<Count>([&](std::size_t i) { return hn::MulAdd(a.v[i], constant, c.v[i]); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> fused(const FloatRow<Count>& a, float b, float c) {
  const Float factor = hn::Set(float_tag, b);
  const Float constant = hn::Set(float_tag, c);
  return by_vector<Count>([&](std::size_t i) { return hn::MulAdd(a.v[i], factor, constant); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> operator*(const FloatRow<Count>& a, const FloatRow<Count>& b) {
  return by_vector<Count>([&](std::size_t i) { return hn::Mul(a.v[i], b.v[i]); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> operator*(const FloatRow<Count>& a, float b) {
  const Float constant = hn::Set(float_tag, b);
  return by_vector<Count>([&](std::size_t i) { return hn::Mul(a.v[i], constant); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> operator+(const FloatRow<Count>& a, float b) {
  const Float constant = hn::Set(float_tag, b);
  return by_vector<Count>([&](std::size_t i) { return hn::Add(a.v[i], constant); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> sqrt(const FloatRow<Count>& a) {
  return by_vector<Count>([&](std::size_t i) { return hn::Sqrt(a.v[i]); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> operator-(const FloatRow<Count>& a) {
  return by_vector<Count>([&](std::size_t i) { return hn::Neg(a.v[i]); });
}
template <std::size_t Count>
HWY_INLINE WordRow<Count> operator+(const WordRow<Count>& a, std::uint32_t b) {
  const auto constant = hn::Set(word_tag, b);
  return by_vector<Count>([&](std::size_t i) { return hn::Add(a.v[i], constant); });
}
template <std::size_t Count>
HWY_INLINE WordRow<Count> operator-(const WordRow<Count>& a, const WordRow<Count>& b) {
  return by_vector<Count>([&](std::size_t i) { return hn::Sub(a.v[i], b.v[i]); });
}
template <std::size_t Count>
HWY_INLINE WordRow<Count> operator&(const WordRow<Count>& a, std::uint32_t b) {
  const auto constant = hn::Set(word_tag, b);
  return by_vector<Count>([&](std::size_t i) { return hn::And(a.v[i], constant); });
}
template <int Bits, std::size_t Count>
HWY_INLINE WordRow<Count> shift_left(const WordRow<Count>& a) {
  return by_vector<Count>([&](std::size_t i) { return hn::ShiftLeft<Bits>(a.v[i]); });
}
template <int Bits, std::size_t Count>
HWY_INLINE WordRow<Count> shift_right(const WordRow<Count>& a) {
  return by_vector<Count>([&](std::size_t i) { return hn::ShiftRight<Bits>(a.v[i]); });
}
template <std::size_t Count>
HWY_INLINE WordRow<Count> to_bits(const FloatRow<Count>& a) {
  return by_vector<Count>([&](std::size_t i) { return hn::BitCast(word_tag, a.v[i]); });
}
template <std::size_t Count>
HWY_INLINE FloatRow<Count> from_bits(const WordRow<Count>& a) {
  return by_vector<Count>([&](std::size_t i) { return hn::BitCast(float_tag, a.v[i]); });
}
/// The float nearest to each word taken as a signed integer.
template <std::size_t Count>
HWY_INLINE FloatRow<Count> to_float(const WordRow<Count>& a) {
  const hn::RebindToSigned<FloatTag> integers;
  return by_vector<Count>(
      [&](std::size_t i) { return hn::ConvertTo(float_tag, hn::BitCast(integers, a.v[i])); });
}
/// yes where the word's first bit is set, else no.
template <std::size_t Count>
HWY_INLINE FloatRow<Count> where_first_bit(const WordRow<Count>& a, const FloatRow<Count>& yes,
                                           const FloatRow<Count>& no) {
  return by_vector<Count>([&](std::size_t i) {
    return hn::IfNegativeThenElse(hn::BitCast(float_tag, a.v[i]), yes.v[i], no.v[i]);
  });
}
/// a >= 0 with the first bit of each word as its sign.
template <std::size_t Count>
HWY_INLINE FloatRow<Count> with_sign(const FloatRow<Count>& a, const WordRow<Count>& bits) {
  const Float sign = hn::Set(float_tag, -0.0f);
  return by_vector<Count>([&](std::size_t i) {
    return hn::Or(a.v[i], hn::And(sign, hn::BitCast(float_tag, bits.v[i])));
  });
}

/// sqrt(-2 ln u) of `normal_pair`, from u and u - 1 times -2: signs and powers of two pass through
/// every operation exactly, and stand where they save one.
template <std::size_t Count>
HWY_INLINE FloatRow<Count> radius(const WordRow<Count>& a) {
  const auto high = to_float(shift_right<16>(a));
  const auto low = fused(to_float(a & 0xffffu), -0x1p-31f, -0x1p-32f);
  const auto u = fused(high, -0x1p-15f, low);
  // u - 1 is minus the uniform of the complement of the word.
  const auto near_one = fused(high + -65536.0f, -0x1p-15f, low);

  // u = 2^exponent (1 + f). Where u >= 2/3 the exponent is 0, `distance` not negative.
  const auto distance = to_bits(u) + (0u - 0xbfaaaaabu);
  const auto exponent = distance & 0xff800000u;  // times 2^23
  const auto f =
      where_first_bit(distance, from_bits(to_bits(u) - exponent) + 2.0f, near_one);  // times -2
  auto q = fused(f, -0x1.07c964p-3f * -0x1p-9f, 0x1.1e678cp-3f * 0x1p-8f);           // times -1/2
  q = fused(q, f, -0x1.f332a6p-4f * -0x1p-7f);
  q = fused(q, f, 0x1.1ed662p-3f * 0x1p-6f);
  q = fused(q, f, -0x1.559c46p-3f * -0x1p-5f);
  q = fused(q, f, 0x1.99d044p-3f * 0x1p-4f);
  q = fused(q, f, -0x1.fffefcp-3f * -0x1p-3f);
  q = fused(q, f, 0x1.555506p-2f * 0x1p-2f);
  q = fused(q, f, -0.5f * -0x1p-1f);
  return sqrt(fused(to_float(exponent), 0x1.62e430p-1f * -0x1p-22f, fused(f * f, q, f)));
}

/// `normal_pair` of the words a and b of each point, for several rows of a tile at a time.
template <std::size_t Rows>
HWY_INLINE void normal_pairs(const std::uint32_t* const (&a)[Rows],
                             const std::uint32_t* const (&b)[Rows], float* const (&first)[Rows],
                             float* const (&second)[Rows]) {
  const auto size = radius(load(a));
  const auto turn = load(b);
  // The angle beyond the nearest quarter turn: the last 30 bits, signed.
  const auto r = to_float(shift_left<2>(turn)) * 0x1p-34f;
  const auto z = r * r;
  auto sine = fused(z, -0x1.2da156p+6f, 0x1.465eeap+6f);
  auto cosine = fused(z, 0x1.d4f7eep+5f, -0x1.55b2b6p+6f);
  sine = fused(sine, z, -0x1.4abbbap+5f);
  cosine = fused(cosine, z, 0x1.03c1b0p+6f);
  sine = fused(sine, z, -0x1.a32beap-23f);
  cosine = fused(cosine, z, -0x1.3bd3ccp+4f);
  sine = fused(r, 0x1.921fb6p+2f, r * sine);
  cosine = fused(cosine, z, 1.0f);

  // The first bit of `quarter` is a half turn, the next a quarter turn.
  const auto quarter = turn + 0x20000000u;
  const auto signed_size = with_sign(size, quarter);
  sine = signed_size * sine;
  cosine = signed_size * cosine;
  const auto odd = shift_left<1>(quarter);
  store(where_first_bit(odd, -sine, cosine), first);
  store(where_first_bit(odd, cosine, sine), second);
}

#else  // MulAdd rounds twice here, the scalar functions do not

class TileStream {
 public:
  TileStream(std::uint64_t seed, std::uint64_t subsequence)
      : seed_(seed), subsequence_(subsequence) {}
  void draw(std::uint64_t first, std::uint64_t stride, TileWords& words) const {
    draw_one_by_one(seed_, subsequence_, first, stride, words);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t subsequence_;
};

template <std::size_t Rows>
void normal_pairs(const std::uint32_t* const (&a)[Rows], const std::uint32_t* const (&b)[Rows],
                  float* const (&first)[Rows], float* const (&second)[Rows]) {
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t i = 0; i < tile_points; ++i) {
      const NormalPair pair = normal_pair(a[r][i], b[r][i]);
      first[r][i] = pair.first;
      second[r][i] = pair.second;
    }
  }
}

#endif  // HWY_NATIVE_FMA

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
