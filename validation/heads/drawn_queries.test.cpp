// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/drawn_queries.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"
#include "validation/heads/measure.h"
#include "validation/heads/testing/arrays_in_memory.h"
#include "validation/heads/testing/made_layer.h"

namespace headlab {
namespace {

using test::expect_same_figures;
using test::MadeLayer;

MeasuredLayer with_queries(const std::shared_ptr<ArrayFile>& file, std::size_t queries,
                           std::size_t exchanged) {
  return measure_heads(file, {}, {.queries = queries, .exchange_queries = exchanged}, 2)
      .layers.at(0);
}

/// 40 tokens, and 30 before the padding.
TEST(DrawnQueries, AsManyAsThereAreAreAll) {
  const auto file = MadeLayer().arrays();
  file->remove("grad_z");
  const MeasuredLayer all = with_queries(file, 0, 20);
  for (const std::size_t queries : {40U, 41U, 1000U})
    expect_same_figures(with_queries(file, queries, 20), all);
  file->put("length", {12}, std::vector<double>(12, 30), NumberKind::whole);
  expect_same_figures(with_queries(file, 30, 20), with_queries(file, 0, 20));
}

/// Keys before the first query too.
TEST(DrawnQueries, AsManyAsThereAreHaveTheValuesOfAllKeys) {
  const auto file = MadeLayer().arrays();
  file->remove("grad_z");
  file->remove("residual");
  const std::vector<double>& q = file->values("q");
  std::vector<double> last;  // the queries from 10 on
  for (std::size_t i = 0; i < q.size(); ++i) {
    if (i / 4 % 40 >= 10) last.push_back(q[i]);
  }
  file->put("q", {12, 6, 30, 4}, last);
  expect_same_figures(with_queries(file, 30, 20), with_queries(file, 0, 20));
}

TEST(DrawnQueries, OfNumbersTooLargeForTheirProductsAreRefused) {
  const auto file = MadeLayer().arrays();
  file->values("q").at(0) = 1e200;
  file->values("k").at(0) = 1e200;
  EXPECT_EQ(
      refusal_line([&] { with_queries(file, 0, 20); }),
      "memory: layer 0: products of queries and keys of sequence 0 are too large for its type "
      "of numbers");
}

}  // namespace
}  // namespace headlab
