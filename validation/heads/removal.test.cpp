// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/removal.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"
#include "kernels/decompositions.h"
#include "validation/heads/testing/made_layer.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using test::ArraysInMemory;
using test::MadeLayer;

constexpr std::size_t head_columns = 2;

RemovableLayer removable(const std::shared_ptr<ArraysInMemory>& file, int number = 0) {
  const LayerActivations layer(file, number);
  return {layer, removal_moments(layer, {}, 1, {})};
}

std::shared_ptr<ArraysInMemory> with_bias() {
  auto file = MadeLayer().arrays();
  file->put("b_O", {16}, test::normals(16, 9));
  return file;
}

/// Columns of all tokens, and of some heads.
MatrixXd all_values(const std::shared_ptr<ArraysInMemory>& file) {
  const LayerActivations layer(file, 0);
  MatrixXd all(480, 12);
  for (std::size_t b = 0; b < 12; ++b) {
    all.middleRows(static_cast<Index>(b) * 40, 40) =
        values_of(layer, b, layer.tokens(b), {.exact = true}, 1).z;
  }
  return all;
}

std::vector<Index> columns_of(const std::vector<std::size_t>& heads) {
  std::vector<Index> all;
  for (const std::size_t h : heads) {
    for (std::size_t i = 0; i < head_columns; ++i) {
      all.push_back(static_cast<Index>(h * head_columns + i));
    }
  }
  return all;
}

/// Least squares with rows for the ridge, each of which says that the map stays as it is.
void expect_least_squares(bool bias) {
  const auto file = bias ? with_bias() : MadeLayer().arrays();
  const RemovableLayer layer = removable(file);
  MatrixXd z = all_values(file);
  const Eigen::RowVectorXd mean = z.colwise().mean();
  if (bias) z.rowwise() -= mean;
  const double ridge = 1e-6 * z.squaredNorm() / 480 / 12;
  MatrixXd rows(492, 12);
  rows << z, std::sqrt(480 * ridge) * MatrixXd::Identity(12, 12);
  const std::vector<Index> kept = columns_of({1, 2, 4, 5});
  const MatrixXd some = rows(Eigen::all, kept), wanted = rows * layer.map();
  const ChangedMap found = layer.without({3, 0}, true);
  const MatrixXd fitted = found.map(kept, Eigen::all);
  EXPECT_EQ(found.map(columns_of({0, 3}), Eigen::all).cwiseAbs().maxCoeff(), 0);
  for (Index column = 0; column < wanted.cols(); ++column) {
    const Eigen::VectorXd best = shortest_solution(some, wanted.col(column), 1e-12);
    EXPECT_LE((fitted.col(column) - best).norm(), 1e-9 * best.norm());
  }
  ASSERT_EQ(found.constant.size(), bias ? 16 : 0);
  if (bias) {
    const Eigen::RowVectorXd lost = mean * (layer.map() - found.map);
    EXPECT_LE((found.constant.transpose() - lost).norm(), 1e-9 * lost.norm());
  }
  const auto predicted = removal_predictions({layer}, {{0, 3}, {0, 0}}, true);
  const double error = (wanted - some * fitted).squaredNorm() / 480;
  EXPECT_NEAR(predicted.back().share * layer.scale(), error, 1e-9 * error);
  // Left as they are, the others do not take up what is lost.
  const auto plain = removal_predictions({layer}, {{0, 3}, {0, 0}}, false);
  const MatrixXd gone = z(Eigen::all, columns_of({0, 3}));
  const MatrixXd map = layer.map()(columns_of({0, 3}), Eigen::all);
  const double without = (gone * map).squaredNorm() / 480;
  EXPECT_NEAR(plain.back().share * layer.scale(), without, 1e-9 * without);
  EXPECT_GT(without, error);
}

TEST(Removal, RefitsByLeastSquares) {
  expect_least_squares(true);
  expect_least_squares(false);
}

/// Two layers of which the second is another.
std::vector<RemovableLayer> two_layers() {
  const auto first = with_bias();
  const auto both = std::make_shared<ArraysInMemory>();
  for (const auto& [name, info] : first->arrays()) {
    std::vector<double> numbers = first->read(name);
    both->put("layers.0." + name, info.shape, numbers);
    if (name == "W_O") {
      for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] *= 1 + 0.1 * static_cast<double>(i % 7);
    }
    both->put("layers.1." + name, info.shape, numbers);
  }
  return {removable(both, 0), removable(both, 1)};
}

TEST(Removal, TakesWhatAddsLeastFirst) {
  const std::vector<RemovableLayer> layers = two_layers();
  for (const bool refit : {true, false}) {
    const auto order = removal_order(layers, {.by = refit ? "refit" : "spread"}, 3);
    std::vector<RemovedHead> taken;
    for (const RemovedHead& step : order) {
      double least = HUGE_VAL;
      RemovedHead best;
      for (const int number : {0, 1}) {
        for (std::size_t h = 0; h < 6; ++h) {
          if (std::ranges::find(taken, RemovedHead{number, h}) != taken.end()) continue;
          std::vector<RemovedHead> with = taken;
          with.push_back({number, h});
          const double share = removal_predictions(layers, with, refit).back().share;
          if (share < least) best = with.back();
          least = std::min(least, share);
        }
      }
      EXPECT_EQ(step, best);
      taken.push_back(step);
    }
  }
}

/// Of heads 0 to 5 two each share keys.
TEST(Removal, TakesEvenlyWhereThatIsAsked) {
  const std::vector<RemovableLayer> layers = two_layers();
  int uneven = 0;
  for (const std::string& by : removal_orders()) {
    std::map<std::pair<int, std::size_t>, int> of_group;
    for (const RemovedHead& one : removal_order(layers, {.by = by, .even = true}, 6)) {
      ++of_group[{one.layer, one.head / 2}];
    }
    EXPECT_EQ(of_group.size(), 6U) << by;
    std::map<std::pair<int, std::size_t>, int> free;
    for (const RemovedHead& one : removal_order(layers, {.by = by}, 6)) {
      ++free[{one.layer, one.head / 2}];
    }
    uneven += free.size() < 6 ? 1 : 0;
  }
  EXPECT_GT(uneven, 0) << "orders come out even without that too";
  EXPECT_EQ(removal_order(layers, {.even = true}, 6).front(), removal_order(layers, {}, 1).front());
  EXPECT_EQ(refusal_line([&] { removal_order(layers, {.even = true}, 4); }),
            "remove: 4 heads do not come evenly from 2 layers with 6 groups of heads (allowed: "
            "multiples of 6)");
}

TEST(Removal, OrdersByLossesAndBySeed) {
  const std::vector<RemovableLayer> layers = two_layers();
  const auto by_loss = removal_order(layers, {.by = "second_order"}, 12);
  const auto predictions = removal_predictions(layers, by_loss, false);
  // 12 sequences are too few for pairs: each step adds its own, which grow.
  double before = 0, last = 0;
  for (const RemovalPrediction& one : predictions) {
    EXPECT_GE(one.nats - before, last);
    last = one.nats - before;
    before = one.nats;
  }
  const auto one = removal_order(layers, {.by = "random", .seed = 1}, 12);
  EXPECT_EQ(one, removal_order(layers, {.by = "random", .seed = 1}, 12));
  EXPECT_NE(one, removal_order(layers, {.by = "random", .seed = 2}, 12));
}

TEST(Removal, SaysWhatItNeeds) {
  const auto file = MadeLayer().arrays();
  file->remove("grad_z");
  const auto refused = [&](const RemovalSetting& setting) {
    return refusal_line([&] { require_removable({removable(file)}, setting); });
  };
  EXPECT_EQ(refused({}), "accepted");
  EXPECT_EQ(refused({.by = "sensitivity"}), "by: sensitivity needs gradients, which layer 0 lacks");
  file->put("length", {12}, std::vector<double>(12, 10), NumberKind::whole);
  EXPECT_EQ(refused({}),
            "refit: needs 192 tokens and 8 documents, there are 120 and 12 - give more, or plan "
            "without refit");
  EXPECT_EQ(refused({.by = "spread", .refit = false}), "accepted");
  file->remove("residual");
  const RemovableLayer layer = removable(file);
  EXPECT_NO_THROW(
      require_removable({layer, layer}, {.by = "spread", .refit = false, .even = true}));
  EXPECT_THROW(require_removable({layer, layer}, {.by = "spread", .refit = false}), InvalidInput);
}

}  // namespace
}  // namespace headlab
