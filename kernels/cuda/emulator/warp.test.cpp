// SPDX-License-Identifier: Apache-2.0
// Operations of a warp in the emulator, and its numbers.
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
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
      for (unsigned round = 0; round < warp; ++round) {
        sum += shuffle_xor(sum, 16);
      }
      synchronise_block();
      sums[thread_index()] = sum;
    });
    for (unsigned t = 0; t < 128; ++t) {
      EXPECT_EQ(sums[t], 1 << (t / 32));
    }
  });
}

TEST_F(Emulator, AShuffleOfPartOfAWarpThrows) {
  in_both_orders([] {
    EXPECT_EQ(
        error_of({1, 1, 64, 0},
                 [] {
                   if (thread_index() != 50) {
                     shuffle_xor(1.0f, 2);
                   }
                 }),
        "emulated kernel, block (0, 0): thread 32 waits at shuffle_xor but thread 50 has ended "
        "- all 32 lanes of a warp have to call it");
    EXPECT_NE(error_of({},
                       [] {
                         if (thread_index() < 16) {
                           shuffle_xor(1.0f, 2);
                         } else {
                           shuffle_xor(1.0, 2);
                         }
                       }),
              "");
    EXPECT_NE(error_of({},
                       [] {
                         float d[4]{};
                         if (thread_index() == 3) {
                           shuffle_xor(1.0f, 2);
                         } else {
                           multiply_add_tf32(d, {1, 1, 1, 1}, {1, 1});
                         }
                       }),
              "");
  });
  EXPECT_NE(error_of({}, [] { shuffle_xor(1, 32); }), "");
  EXPECT_NE(error_of({}, [] { shuffle_xor(1, -1); }), "");
}

struct Matrices {
  float a[16][8];
  float b[8][8];
  float d[16][8];
};

/// d + a b by one warp. The elements of each lane are those of the PTX manual, "Matrix Fragments
/// for mma.m16n8k8", .tf32; `swapped` exchanges a1 and a2, as the fragments of float16 have them.
Matrices multiplied(Matrices m, bool swapped = false) {
  emulate({}, [&] {
    const unsigned group = thread_index() >> 2;
    const unsigned in_group = thread_index() & 3;
    float a[4];
    float b[2];
    float d[4];
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned low = swapped ? i / 2 : i % 2;
      const unsigned high = swapped ? i % 2 : i / 2;
      a[i] = m.a[low == 0 ? group : group + 8][high == 0 ? in_group : in_group + 4];
      d[i] = m.d[i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
    }
    for (unsigned i = 0; i < 2; ++i) {
      b[i] = m.b[i == 0 ? in_group : in_group + 4][group];
    }
    multiply_add_tf32(d, a, b);
    for (unsigned i = 0; i < 4; ++i) {
      m.d[i < 2 ? group : group + 8][in_group * 2 + (i & 1)] = d[i];
    }
  });
  return m;
}

/// Every element another integer, all of them and all sums exact in TF32 and float32.
Matrices integers() {
  Matrices m{};
  float next = 1;
  for (auto& row : m.a) {
    for (float& x : row) {
      x = next++;
    }
  }
  for (auto& row : m.b) {
    for (float& x : row) {
      x = next++;
    }
  }
  for (auto& row : m.d) {
    for (float& x : row) {
      x = 1000 * next++;
    }
  }
  return m;
}

/// Elements of `got` that are not d + a b.
int differences(const Matrices& given, const Matrices& got) {
  int count = 0;
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 8; ++j) {
      double sum = given.d[i][j];
      for (unsigned k = 0; k < 8; ++k) {
        sum += static_cast<double>(given.a[i][k]) * given.b[k][j];
      }
      count += got.d[i][j] == sum ? 0 : 1;
    }
  }
  return count;
}

TEST_F(Emulator, MultipliesMatricesInTheLayoutOfPtx) {
  const Matrices given = integers();
  in_both_orders([&] { EXPECT_EQ(differences(given, multiplied(given)), 0); });
  EXPECT_EQ(differences(given, multiplied(given, true)), 128) << "negative control";
}

TEST_F(Emulator, MultiplicationReadsNineteenBits) {
  Matrices given{};
  given.a[9][5] = -(1 + 0x1p-10f);          // is kept
  given.b[5][6] = 1 + 0x1p-11f + 0x1p-23f;  // becomes 1
  given.a[3][2] = 3.0f;
  given.b[2][1] = std::bit_cast<float>(0x7f800001u);  // not a number, by its last bit
  Matrices kept = given;
  kept.b[5][6] = 1;
  const Matrices got = multiplied(given);
  EXPECT_EQ(got.d[9][6], -(1 + 0x1p-10f));
  EXPECT_TRUE(std::isnan(got.d[3][1]));
  kept.b[2][1] = given.b[2][1] = 0;
  EXPECT_EQ(differences(kept, multiplied(given)), 0);
  EXPECT_EQ(differences(given, multiplied(given)), 1) << "negative control";
}

TEST_F(Emulator, MultiplicationOfPartOfAWarpThrows) {
  EXPECT_EQ(error_of({},
                     [] {
                       float d[4]{};
                       if (thread_index() > 0) {
                         multiply_add_tf32(d, {1, 1, 1, 1}, {1, 1});
                       }
                     }),
            "emulated kernel, block (0, 0): thread 1 waits at multiply_add_tf32 but thread 0 has "
            "ended - all 32 lanes of a warp have to call it");
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
