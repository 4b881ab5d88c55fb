// SPDX-License-Identifier: Apache-2.0
// Operations of a warp in the emulator, and its numbers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/testing/emulator_fixture.h"

namespace headlab::emulated_cuda {
namespace {

TEST_F(Emulator, ShufflesEveryTypeAcrossEveryMask) {
  in_both_orders([] {
    check_shuffle<float>(0.25f);
    check_shuffle<double>(1e100);
    check_shuffle<int>(-3);
    check_shuffle<unsigned>(0x01000001u);
    check_shuffle<unsigned long long>(0x0100000000000001ull);
  });
}

TEST_F(Emulator, ShufflesInWarpsThatTakeDifferentPaths) {
  in_both_orders([] {
    std::vector<int> sums(128);
    emulate({1, 1, 128, 0}, [&] {
      const unsigned warp = thread_index() / 32;
      int sum = 1;
      for (unsigned round = 0; round < warp; ++round) sum += shuffle_xor(sum, 16);
      synchronise_block();
      sums[thread_index()] = sum;
    });
    for (unsigned t = 0; t < 128; ++t) EXPECT_EQ(sums[t], 1 << (t / 32));
  });
}

TEST_F(Emulator, AShuffleOfPartOfAWarpThrows) {
  in_both_orders([] {
    EXPECT_EQ(
        error_of({1, 1, 64, 0},
                 [] {
                   if (thread_index() != 50) shuffle_xor(1.0f, 2);
                 }),
        "emulated kernel, block (0, 0): thread 32 waits at shuffle_xor but thread 50 has ended "
        "- all 32 lanes of a warp have to call it");
    EXPECT_NE(error_of({},
                       [] {
                         if (thread_index() < 16)
                           shuffle_xor(1.0f, 2);
                         else
                           shuffle_xor(1.0, 2);
                       }),
              "");
    EXPECT_NE(error_of({},
                       [] {
                         float d[4]{};
                         const std::uint32_t words[4]{};
                         const std::uint32_t two[2]{};
                         if (thread_index() == 3)
                           shuffle_xor(1.0f, 2);
                         else
                           multiply_add_f16(d, words, two);
                       }),
              "");
  });
  EXPECT_NE(error_of({}, [] { shuffle_xor(1, 32); }), "");
  EXPECT_NE(error_of({}, [] { shuffle_xor(1, -1); }), "");
}

struct Matrices {
  float a[16][16];
  float b[16][8];
  float d[16][8];
};

/// d + a b by one warp, of K columns of a. The elements of each lane are those of the PTX manual,
/// "Matrix Fragments for mma.m16n8k16 with floating point type" and m16n8k8, with b read from
/// shared memory; `swapped` exchanges a1 and a2.
template <int K>
Matrices multiplied(Matrices m, bool swapped = false) {
  emulate({1, 1, 32, 16 * 8 * 2}, [&] {
    auto* rows = reinterpret_cast<std::uint16_t*>(shared_memory());
    for (unsigned at = thread_index(); at < 16 * 8; at += 32)
      rows[at] = static_cast<std::uint16_t>(pack_halves(m.b[at / 8][at % 8], 0));
    synchronise_block();
    const unsigned group = thread_index() >> 2;
    const unsigned first = (thread_index() & 3) * 2;
    std::uint32_t a[K / 4];
    std::uint32_t b[2];
    float d[4];
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned low = swapped ? i / 2 : i % 2;
      const unsigned high = swapped ? i % 2 : i / 2;
      if (i < K / 4) {
        const float* row = &m.a[low == 0 ? group : group + 8][high == 0 ? first : first + 8];
        a[i] = pack_halves(row[0], row[1]);
      }
      d[i] = m.d[i < 2 ? group : group + 8][first + (i & 1)];
    }
    load_transposed(b, reinterpret_cast<const std::uint32_t*>(rows + thread_index() % 16 * 8));
    if constexpr (K == 16) {
      multiply_add_f16(d, a, b);
    } else {
      const std::uint32_t upper[1] = {b[0]};
      multiply_add_f16(d, a, upper);
    }
    for (unsigned i = 0; i < 4; ++i) m.d[i < 2 ? group : group + 8][first + (i & 1)] = d[i];
  });
  return m;
}

/// Every element another integer, all of them and all sums exact in float16 and float32.
Matrices integers() {
  Matrices m{};
  float next = 1;
  for (auto& row : m.a)
    for (float& x : row) x = next++;
  for (auto& row : m.b)
    for (float& x : row) x = next++;
  for (auto& row : m.d)
    for (float& x : row) x = 1000 * next++;
  return m;
}

/// Elements of `got` that are not d + a b, of K columns of a.
int differences(const Matrices& given, const Matrices& got, unsigned columns) {
  int count = 0;
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 8; ++j) {
      double sum = given.d[i][j];
      for (unsigned k = 0; k < columns; ++k)
        sum += static_cast<double>(given.a[i][k]) * given.b[k][j];
      count += got.d[i][j] == sum ? 0 : 1;
    }
  }
  return count;
}

/// d + a b of 8 columns of a, in TF32. The elements of each lane are those of the PTX manual,
/// "Matrix Fragments for mma.m16n8k8"; `swapped` exchanges a1 and a2.
Matrices multiplied_tf32(Matrices m, bool swapped = false) {
  emulate({1, 1, 32, 0}, [&] {
    const unsigned g = thread_index() / 4;
    const unsigned c = thread_index() % 4;
    std::uint32_t a[4];
    float d[4];
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned low = swapped ? i / 2 : i % 2;
      const unsigned high = swapped ? i % 2 : i / 2;
      a[i] = std::bit_cast<std::uint32_t>(m.a[g + 8 * low][c + 4 * high]);
      d[i] = m.d[g + 8 * (i / 2)][2 * c + i % 2];
    }
    const std::uint32_t b[2] = {std::bit_cast<std::uint32_t>(m.b[c][g]),
                                std::bit_cast<std::uint32_t>(m.b[c + 4][g])};
    multiply_add_tf32(d, a, b);
    for (unsigned i = 0; i < 4; ++i) m.d[g + 8 * (i / 2)][2 * c + i % 2] = d[i];
  });
  return m;
}

TEST_F(Emulator, MultipliesMatricesInTheLayoutOfPtx) {
  const Matrices given = integers();
  in_both_orders([&] {
    EXPECT_EQ(differences(given, multiplied<16>(given), 16), 0);
    EXPECT_EQ(differences(given, multiplied<8>(given), 8), 0);
  });
  EXPECT_EQ(differences(given, multiplied<16>(given, true), 16), 128) << "negative control";

  in_both_orders([&] {
    EXPECT_EQ(differences(given, multiplied_tf32(given), 8), 0);
    EXPECT_GT(differences(given, multiplied_tf32(given, true), 8), 0);
  });
  // The last 13 bits of a float are not read.
  Matrices fine = given;
  fine.a[3][5] = 1 + 0x1p-11f;
  Matrices coarse = given;
  coarse.a[3][5] = 1;
  EXPECT_EQ(differences(coarse, multiplied_tf32(fine), 8), 0);
}

TEST_F(Emulator, TensorCoresTruncateOneBitBeyondTheLargestTerm) {
  Matrices m{};
  std::ranges::fill(std::span(&m.a[0][0], 16 * 16), 0x1p-12f);
  std::ranges::fill(std::span(&m.b[0][0], 16 * 8), 0x1p-12f);
  std::ranges::fill(std::span(&m.d[0][0], 16 * 8), 1.0f);
  // Sixteen products of 2^-24 beside 1 are kept, and of half of that lost.
  EXPECT_EQ(multiplied<16>(m).d[3][5], 1 + 0x1p-20f);
  EXPECT_EQ(multiplied_tf32(m).d[3][5], 1 + 0x1p-21f);
  std::ranges::fill(std::span(&m.b[0][0], 16 * 8), 0x1p-13f);
  EXPECT_EQ(multiplied<16>(m).d[3][5], 1.0f);
  EXPECT_EQ(multiplied_tf32(m).d[3][5], 1.0f);
  // Where nothing is larger they are all there.
  std::ranges::fill(std::span(&m.d[0][0], 16 * 8), 0.0f);
  EXPECT_EQ(multiplied<16>(m).d[3][5], 0x1p-21f);
  m.d[3][5] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(multiplied<16>(m).d[3][5], m.d[3][5]);
  m.d[3][5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(multiplied<16>(m).d[3][5]));
}

TEST_F(Emulator, Float16HasElevenBits) {
  EXPECT_EQ(low_half(pack_halves(-(1 + 0x1p-10f), 3)), -(1 + 0x1p-10f));
  EXPECT_EQ(high_half(pack_halves(3, 1 + 0x1p-12f)), 1.0f);
  EXPECT_EQ(low_half(pack_halves(0x1p-24f, 0)), 0x1p-24f);
  EXPECT_EQ(low_half(pack_halves(0x1p-26f, 0)), 0.0f);
  EXPECT_EQ(low_half(pack_halves(65504, 0)), 65504.0f);
  EXPECT_EQ(high_half(pack_halves(0, -65520)), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(low_half(pack_halves(std::numeric_limits<float>::quiet_NaN(), 0))));
}

TEST_F(Emulator, MultiplicationOfPartOfAWarpThrows) {
  EXPECT_EQ(error_of({},
                     [] {
                       float d[4]{};
                       const std::uint32_t a[4]{};
                       const std::uint32_t b[2]{};
                       if (thread_index() > 0) multiply_add_f16(d, a, b);
                     }),
            "emulated kernel, block (0, 0): thread 1 waits at multiply_add_f16 but thread 0 has "
            "ended - all 32 lanes of a warp have to call it");
}

TEST_F(Emulator, MatricesAreLoadedFromSharedMemory) {
  EXPECT_EQ(error_of({1, 1, 32, 64},
                     [] {
                       std::uint32_t out[4];
                       load_transposed(out, reinterpret_cast<const std::uint32_t*>(
                                                shared_memory() + 16 * thread_index()));
                     }),
            "load_transposed: not in the shared memory of the block");
}

// ---- Numbers ----

TEST_F(Emulator, Exp2FlushesWhatIsBelowTheNormalNumbers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp2_unit(0.0f), 1.0f);
  EXPECT_EQ(exp2_unit(-3.0f), 0.125f);
  EXPECT_EQ(exp2_unit(0x1p-140f), 1.0f);
  EXPECT_EQ(exp2_unit(-126.0f), 0x1p-126f);
  EXPECT_EQ(exp2_unit(-126.5f), 0.0f);
  EXPECT_GT(std::exp2(-126.5f), 0.0f) << "negative control";
  EXPECT_EQ(exp2_unit(-infinity), 0.0f);
  EXPECT_EQ(exp2_unit(128.0f), infinity);
  EXPECT_EQ(exp2_unit(infinity), infinity);
  EXPECT_TRUE(std::isnan(exp2_unit(std::numeric_limits<float>::quiet_NaN())));
}

TEST_F(Emulator, AddsAtomically) {
  unsigned long long sum = 1ull << 40;
  emulate({5, 1, 64, 0}, [&] { add_atomically(&sum, thread_index()); });
  EXPECT_EQ(sum, (1ull << 40) + 5 * (63 * 64 / 2));
}

}  // namespace
}  // namespace headlab::emulated_cuda
