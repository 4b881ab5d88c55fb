// SPDX-License-Identifier: Apache-2.0
// Intervals from standard errors over documents cover the truth as often as they say.
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "validation/heads/measure.h"
#include "validation/heads/testing/arrays_in_memory.h"
#include "validation/heads/testing/made_layer.h"

namespace headlab {
namespace {

using test::ArraysInMemory;

constexpr std::size_t documents = 16, of_document = 3, tokens = 4, e = 8;
/// Of Student's t with 15 degrees of freedom, two-sided 5 %.
constexpr double quantile = 2.1314;

/// One head of z = a + u, a of the document and u of the token, both N(0, I): energy 2 e.
std::shared_ptr<ArraysInMemory> simulated(std::uint64_t set, bool grouped) {
  const std::size_t sequences = documents * of_document;
  const std::vector<double> common = test::normals(documents * e, 2 * set + 100);
  std::vector<double> z = test::normals(sequences * tokens * e, 2 * set + 101);
  std::vector<double> document;
  for (std::size_t b = 0; b < sequences; ++b) {
    for (std::size_t i = 0; i < tokens * e; ++i) {
      z[b * tokens * e + i] += common[b / of_document * e + i % e];
    }
    document.push_back(static_cast<double>(grouped ? b / of_document : b));
  }
  auto file = std::make_shared<ArraysInMemory>();
  file->put("z", {sequences, 1, tokens, e}, z);
  std::vector<double> identity(e * e);
  for (std::size_t i = 0; i < e; ++i) identity[i * e + i] = 1;
  file->put("W_O", {1, e, e}, identity);
  file->put("document", {sequences}, document, NumberKind::whole);
  return file;
}

constexpr int sets = 1000;

/// Share of the sets whose interval has the true energy.
double coverage(bool grouped) {
  int covered = 0;
  for (int set = 0; set < sets; ++set) {
    const auto file = simulated(static_cast<std::uint64_t>(set), grouped);
    const MeasuredLayer layer = measure_heads(file, {}, {}, 1).layers.at(0);
    const HeadFigure& figure = *layer.find("energy");
    if (std::abs(figure.values[0] - 2.0 * e) <= quantile * figure.errors[0]) ++covered;
  }
  return covered / static_cast<double>(sets);
}

// 92 to 97 % is accepted of intervals of 95 %, as sums of squares of few documents are skew; a
// share of 1000 sets is within three standard errors of its own,
// 0.026 and 0.016 there.
TEST(StandardErrors, CoverTheTruthWhereDocumentsAreTheReplicates) {
  const double share = coverage(true);
  EXPECT_GE(share, 0.92 - 0.026);
  EXPECT_LE(share, 0.97 + 0.016);
}

TEST(StandardErrors, OfSequencesThatShareADocumentAreTooSmall) {
  EXPECT_LT(coverage(false), 0.88);
}

}  // namespace
}  // namespace headlab
