// SPDX-License-Identifier: Apache-2.0
#include "kernels/philox.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/testing/paths.h"
#include "kernels/testing/tolerances.h"

#if defined(HEADLAB_HAVE_CURAND)
// cuRAND's device functions are plain C++ once they are not marked for the device. Random123 has a
// function of the same name and signature as one of them, and macros of the same value.
#define QUALIFIERS static inline
#define mulhilo32 curand_mulhilo32
#include <curand_kernel.h>
#undef mulhilo32
#endif

namespace headlab {
namespace {

constexpr std::uint64_t philox_seed = 0x243f6a8885a308d3u;

std::uint64_t join(std::uint32_t low, std::uint32_t high) {
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

/// The integer at one offset of a stream.
std::uint32_t word_at(std::uint64_t key, std::uint64_t stream, std::uint64_t offset) {
  return philox(key, stream, offset / 4).w[offset % 4];
}

/// The draw of (point, coordinate), points having `coordinates` numbers.
std::uint32_t draw(std::uint64_t stream, std::uint64_t point, int coordinate, int coordinates) {
  const auto per_point = static_cast<std::uint64_t>(quads_per_point(coordinates));
  const auto c = static_cast<std::uint64_t>(coordinate);
  return philox(philox_seed, stream, point * per_point + c / 4).w[c % 4];
}

TEST(Philox, GivesThePublishedAnswers) {
  std::ifstream file(test::source_dir() + "/kernels/philox_known_answers.txt");
  ASSERT_TRUE(file);
  int answers = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::uint32_t v[10];
    for (auto& x : v) ASSERT_TRUE(fields >> std::hex >> x) << line;
    const Words words = philox(join(v[4], v[5]), join(v[2], v[3]), join(v[0], v[1]));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words.w[i], v[6 + i]) << line;
    // The layout matters: the same numbers in other places give other words.
    const Words swapped = philox(join(v[4], v[5]), join(v[2], v[3]) + 1, join(v[0], v[1]));
    EXPECT_NE(words.w[0], swapped.w[0]);
    ++answers;
  }
  EXPECT_EQ(answers, 3);
}

TEST(Philox, NamesStreamsAndPlaces) {
  EXPECT_EQ(subsequence(Purpose::design, 7), 7u);
  EXPECT_EQ(subsequence(Purpose::noise, 0), std::uint64_t{2} << 40);
  EXPECT_EQ(subsequence(Purpose::pilot_noise, 5), (std::uint64_t{9} << 40) + 5);
  EXPECT_EQ(quads_per_point(1), 1);
  EXPECT_EQ(quads_per_point(4), 1);
  EXPECT_EQ(quads_per_point(5), 2);
  EXPECT_EQ(quads_per_point(4096), 1024);
  // Offset = point 4 ceil(d/4) + coordinate.
  for (const int d : {1, 3, 4, 5, 11}) {
    for (std::uint64_t point = 0; point < 6; ++point) {
      for (int c = 0; c < d; ++c) {
        const std::uint64_t offset =
            point * 4 * static_cast<std::uint64_t>((d + 3) / 4) + static_cast<std::uint64_t>(c);
        EXPECT_EQ(draw(3, point, c, d), word_at(philox_seed, 3, offset));
      }
    }
  }
}

/// The words of n points of d coordinates as a backend writes them, one counter after another.
std::vector<std::uint32_t> stream_of(int n, int d) {
  std::vector<std::uint32_t> words;
  for (int quad = 0; quad < n * quads_per_point(d); ++quad) {
    const Words w =
        philox(philox_seed, subsequence(Purpose::design, 1), static_cast<std::uint64_t>(quad));
    words.insert(words.end(), w.w, w.w + 4);
  }
  return words;
}

TEST(Philox, ASmallerNIsAPrefixOfALargerOne) {
  for (const int d : {1, 5}) {
    const auto small = stream_of(9, d), large = stream_of(100, d);
    EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
    EXPECT_EQ(large[static_cast<std::size_t>(4 * quads_per_point(d) * 7)],
              draw(subsequence(Purpose::design, 1), 7, 0, d));
  }
}

#if defined(HEADLAB_HAVE_CURAND)
std::uint32_t curand_at(std::uint64_t key, std::uint64_t stream, std::uint64_t offset) {
  curandStatePhilox4_32_10_t state;
  curand_init(key, stream, offset, &state);
  return curand(&state);
}

TEST(Philox, EqualsCurand) {
  std::int64_t differing = 0, differing_off_by_one = 0, compared = 0;
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xffffffff},
                                  std::uint64_t{1} << 32, philox_seed, ~std::uint64_t{0}}) {
    for (const std::uint64_t stream :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xffffffff}, std::uint64_t{1} << 32,
          subsequence(Purpose::noise, 123), subsequence(Purpose::pilot_noise, (1ull << 40) - 1)}) {
      for (const std::uint64_t base :
           {std::uint64_t{0}, std::uint64_t{1} << 20, (std::uint64_t{1} << 34) - 9,
            std::uint64_t{1} << 50, (std::uint64_t{1} << 63) - 9}) {
        for (std::uint64_t offset = base; offset < base + 19; ++offset) {
          const std::uint32_t theirs = curand_at(key, stream, offset);
          if (word_at(key, stream, offset) != theirs) ++differing;
          if (word_at(key, stream, offset + 1) != theirs) ++differing_off_by_one;
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(differing, 0);
  EXPECT_EQ(compared, 6 * 6 * 5 * 19);
  EXPECT_TRUE(differing_off_by_one >= compared - 1);
}

TEST(Philox, ACurandStreamGoesOnAsOurs) {
  curandStatePhilox4_32_10_t state;
  const std::uint64_t stream = subsequence(Purpose::queries, 17);
  curand_init(philox_seed, stream, 6, &state);
  for (std::uint64_t offset = 6; offset < 1000; ++offset) {
    ASSERT_EQ(curand(&state), word_at(philox_seed, stream, offset)) << offset;
  }
}
#endif

// Streams that differ in one id are uncorrelated. Under independence the sum of x y over n pairs of
// uniforms on (-1/2, 1/2) has mean 0 and variance n / 144, so z is N(0, 1); likewise of x^2 - 1/12,
// of variance 1/180. With some 150 tests, |z| <= 6 fails a right generator with probability 3e-7.
constexpr int length = 1 << 14;

using Stream = std::vector<double>;

bool uncorrelated(const Stream& x, const Stream& y) {
  double first = 0, second = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    first += x[i] * y[i];
    second += (x[i] * x[i] - 1.0 / 12) * (y[i] * y[i] - 1.0 / 12);
  }
  const double n = static_cast<double>(x.size());
  return std::fabs(first) <= strict_z_bound * std::sqrt(n) / 12 &&
         std::fabs(second) <= strict_z_bound * std::sqrt(n) / 180;
}

/// `length` numbers of one coordinate of five, from point `first` on.
Stream numbers(std::uint64_t key, std::uint64_t stream, int coordinate = 0,
               std::uint64_t first = 0) {
  Stream x;
  for (std::uint64_t i = first; i < first + length; ++i) {
    const auto c = static_cast<std::uint64_t>(coordinate);
    x.push_back((philox(key, stream, 2 * i + c / 4).w[c % 4] + 0.5) * 0x1p-32 - 0.5);
  }
  return x;
}

void expect_all_uncorrelated(const std::vector<Stream>& streams) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_TRUE(uncorrelated(streams[i], streams[j]));
  }
}

TEST(Philox, PurposesAreUncorrelated) {
  std::vector<Stream> streams;
  for (std::uint64_t p = 0; p < 10; ++p) {
    streams.push_back(numbers(philox_seed, subsequence(static_cast<Purpose>(p), 0)));
  }
  expect_all_uncorrelated(streams);
}

TEST(Philox, ReplicatesAreUncorrelated) {
  std::vector<Stream> streams;
  for (const std::uint64_t r : {0ull, 1ull, 2ull, 255ull, 256ull, 1ull << 32, (1ull << 40) - 1}) {
    streams.push_back(numbers(philox_seed, subsequence(Purpose::design, r)));
  }
  expect_all_uncorrelated(streams);
}

TEST(Philox, CoordinatesAreUncorrelated) {
  std::vector<Stream> streams;
  for (int c = 0; c < 8; ++c) streams.push_back(numbers(philox_seed, 0, c));
  expect_all_uncorrelated(streams);
}

TEST(Philox, PointsAreUncorrelated) {
  std::vector<Stream> streams;
  for (const std::uint64_t lag : {0ull, 1ull, 2ull, 4ull, 32ull, 4096ull}) {
    streams.push_back(numbers(philox_seed, 0, 0, lag));
  }
  expect_all_uncorrelated(streams);
}

TEST(Philox, SeedsAreUncorrelated) {
  std::vector<Stream> streams;
  for (const std::uint64_t s : {0ull, 1ull, 2ull, 3ull, 1ull << 32, 1ull << 63}) {
    streams.push_back(numbers(s, 0));
  }
  expect_all_uncorrelated(streams);
}

TEST(Philox, CorrelationIsSeen) {
  const Stream x = numbers(philox_seed, 0);
  EXPECT_FALSE(uncorrelated(x, x));
  EXPECT_FALSE(uncorrelated(numbers(philox_seed, subsequence(Purpose::noise, 3)),
                            numbers(philox_seed, subsequence(Purpose::noise, 3))));
  // A correlation of 0.1 is some 13 standard errors.
  Stream mixed = numbers(philox_seed, 1);
  for (std::size_t i = 0; i < x.size(); ++i) mixed[i] = 0.995 * mixed[i] + 0.1 * x[i];
  EXPECT_FALSE(uncorrelated(x, mixed));
  // Magnitudes shared, signs not: only the second sum sees it.
  Stream folded = numbers(philox_seed, 1);
  for (std::size_t i = 0; i < x.size(); ++i) folded[i] = folded[i] < 0 ? -x[i] : x[i];
  EXPECT_FALSE(uncorrelated(x, folded));
  Stream spoilt = numbers(philox_seed, 1);
  spoilt[5] = std::nan("");
  EXPECT_FALSE(uncorrelated(x, spoilt));
}

}  // namespace
}  // namespace headlab
