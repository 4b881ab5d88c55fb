// SPDX-License-Identifier: Apache-2.0
/// \file A layer of random numbers for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/attention.h"
#include "kernels/draws.h"
#include "kernels/philox.h"
#include "validation/heads/measure.h"
#include "validation/heads/testing/arrays_in_memory.h"

namespace headlab::test {

/// Independent N(0, 1) of a stream.
inline std::vector<double> normals(std::size_t count, std::uint64_t stream) {
  std::vector<double> numbers;
  for (std::uint64_t i = 0; numbers.size() < count; ++i) {
    const Words words = philox(1, subsequence(Purpose::design, stream), i);
    numbers.push_back(normal_pair(words.w[0], words.w[1]).first);
  }
  return numbers;
}

/// 12 sequences of 6 heads in 3 groups, T 40, k 4, e 2, d 16; a document each.
struct MadeLayer {
  std::size_t sequences = 12, heads = 6, groups = 3, tokens = 40, k = 4, e = 2, d = 16;

  std::shared_ptr<ArraysInMemory> arrays() const {
    auto file = std::make_shared<ArraysInMemory>();
    const auto put = [&](const char* name, const std::vector<std::uint64_t>& shape,
                         std::uint64_t stream) {
      std::size_t size = 1;
      for (const std::uint64_t length : shape) size *= length;
      file->put(name, shape, normals(size, stream));
    };
    put("q", {sequences, heads, tokens, k}, 1);
    put("k", {sequences, groups, tokens, k}, 2);
    put("v", {sequences, groups, tokens, e}, 3);
    put("W_O", {heads, e, d}, 4);
    put("residual", {sequences, tokens, d}, 5);
    put("grad_z", {sequences, heads, tokens, e}, 6);
    put("W_V", {groups, d, e}, 7);
    return file;
  }

  /// The weights of these arrays under a rule, as the model's own [1][H][T][T].
  void put_attention(ArraysInMemory& file, const AttentionRule& rule) const {
    AttentionSequence<double> one;
    one.shape = {
        .heads = heads, .groups = groups, .queries = tokens, .keys = tokens, .k = k, .e = e};
    one.q = file.read("q", 0, 1);
    one.k = file.read("k", 0, 1);
    one.v = file.read("v", 0, 1);
    std::vector<std::uint32_t> rows;
    for (std::uint32_t t = 0; t < tokens; ++t) rows.push_back(t);
    std::vector<double> all;
    for (std::size_t h = 0; h < heads; ++h) {
      const std::vector<double> own = attention_weights(rule, one, h, rows);
      all.insert(all.end(), own.begin(), own.end());
    }
    file.put("attention", {1, heads, tokens, tokens}, all);
  }
};

/// Figures and their standard errors, with the same bits.
inline void expect_same_figures(const MeasuredLayer& found, const MeasuredLayer& expected) {
  ASSERT_EQ(found.figures.size(), expected.figures.size());
  for (std::size_t f = 0; f < found.figures.size(); ++f) {
    EXPECT_EQ(found.figures[f].values, expected.figures[f].values) << found.figures[f].name;
    EXPECT_EQ(found.figures[f].errors, expected.figures[f].errors) << found.figures[f].name;
  }
}

}  // namespace headlab::test
