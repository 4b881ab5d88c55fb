// SPDX-License-Identifier: Apache-2.0
#include "validation/compression/compression.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "engine/files/models/projected_head.h"
#include "engine/testing/refusal.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd random_matrix(Index rows, Index columns, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  return MatrixXd::NullaryExpr(rows, columns, [&] { return normal(engine); });
}

/// Layers 1 and 3 of three heads of dimension 4 on 7 dimensions; heads share keys where `shared`.
HeadFile random_heads(bool shared = false) {
  HeadFile file;
  file.temperature = 2;
  file.kv_heads = shared ? 1 : 3;
  for (const int number : {1, 3}) {
    HeadLayer& layer = file.layers.emplace_back();
    layer.number = number;
    for (unsigned h = 0; h < 3; ++h) {
      const auto seed = static_cast<unsigned>(100 * number) + h;
      add_projected_head(layer, random_matrix(7, 4, seed + 10),
                         random_matrix(7, 4, shared ? static_cast<unsigned>(number) : seed), false);
    }
  }
  return file;
}

const CompressionLoss& loss(const Compression& all, std::size_t layer, const std::string& method,
                            std::size_t head) {
  for (const MethodLoss& one : all.layers[layer].methods) {
    if (one.name == method) return one.heads[head];
  }
  throw std::out_of_range(method);
}

ArrayXd softmax(const VectorXd& logits) {
  const ArrayXd w = (logits.array() - logits.maxCoeff()).exp();
  return w / w.sum();
}

/// By another generator and the d-dimensional inputs themselves.
double simulated_variation(const HeadFile& file, const HeadFile& compressed, int replicates,
                           double temperature) {
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  const HeadLayer& a = file.layers[0];
  const HeadLayer& b = compressed.layers[0];
  double sum = 0;
  for (int r = 0; r < replicates; ++r) {
    const MatrixXd x = MatrixXd::NullaryExpr(40, 7, [&] { return normal(engine); });
    const VectorXd q = VectorXd::NullaryExpr(7, [&] { return normal(engine); });
    const ArrayXd w = softmax(x * a.w_k[1] * (a.w_q[1].transpose() * q) / temperature);
    const ArrayXd v = softmax(x * b.w_k[1] * (b.w_q[1].transpose() * q) / temperature);
    sum += (w - v).abs().sum() / 2;
  }
  return sum / replicates;
}

TEST(Compression, LosesTheScoresOfTheInputsGiven) {
  const HeadFile file = random_heads();
  CompressionSetting setting{.rank = 2, .replicates = 8};
  setting.tokens = random_matrix(60, 7, 1) * random_matrix(7, 7, 2);
  const Compression all = compression_of(file, "heads.nc", setting, 2);
  ASSERT_EQ(all.layers.size(), 2u);
  EXPECT_EQ(all.layers[1].number, 3);
  EXPECT_EQ(all.rows, 60u);
  for (const std::string& name : low_rank_methods()) {
    const HeadFile small = compressed_heads(file, "heads.nc", *low_rank_method(name), setting, 1);
    for (std::size_t h = 0; h < 3; ++h) {
      const auto scores = [&](const HeadFile& of) {
        const HeadLayer& layer = of.layers[1];
        return MatrixXd(setting.tokens * layer.w_q[h] * layer.w_k[h].transpose() *
                        setting.tokens.transpose());
      };
      const double lost = (scores(file) - scores(small)).squaredNorm() / scores(file).squaredNorm();
      EXPECT_NEAR(loss(all, 1, name, h).scores, lost, 1e-10);
      EXPECT_GE(loss(all, 1, name, h).scores, loss(all, 1, "kq_svd", h).scores);
    }
  }
  EXPECT_GT(loss(all, 1, "k_svd", 0).scores, 1.01 * loss(all, 1, "kq_svd", 0).scores);
}

TEST(Compression, SimulatesTheWeights) {
  const HeadFile file = random_heads();
  const CompressionSetting setting{.rank = 2, .keys = 40, .replicates = 400};
  const Compression all = compression_of(file, "heads.nc", setting, 2);
  const HeadFile small = compressed_heads(file, "heads.nc", LowRankMethod::k_svd, setting, 1);
  const Estimate& found = loss(all, 0, "k_svd", 1).weights;
  const double other = simulated_variation(file, small, 4000, 2);
  // The other simulation has a standard error of its own, of 4000 single queries.
  const double se = std::hypot(found.mcse, 0.5 / std::sqrt(4000.0));
  EXPECT_LT(se, 0.01);
  EXPECT_NEAR(found.value, other, 4 * se);
  EXPECT_GT(std::abs(found.value - simulated_variation(file, small, 4000, 20)), 4 * se);
  // Layers average over heads.
  double mean = 0;
  for (std::size_t h = 0; h < 3; ++h) mean += loss(all, 0, "k_svd", h).outputs.value / 3;
  EXPECT_NEAR(all.layers[0].methods[1].mean.outputs.value, mean, 1e-12);
}

TEST(Compression, HasStandardErrorsThatCoverOtherSeeds) {
  const HeadFile file = random_heads();
  const auto of_seed = [&](std::uint64_t seed) {
    return compression_of(file, "heads.nc",
                          {.rank = 1, .keys = 20, .queries = 4, .replicates = 64, .seed = seed}, 2);
  };
  double squares = 0;
  int count = 0;
  const Compression reference = compression_of(
      file, "heads.nc", {.rank = 1, .keys = 20, .queries = 4, .replicates = 4096, .seed = 99}, 2);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Compression all = of_seed(seed);
    for (const std::string& name : low_rank_methods()) {
      for (const auto figure :
           {&CompressionLoss::weights, &CompressionLoss::outputs, &CompressionLoss::noise}) {
        const Estimate& one = loss(all, 0, name, 0).*figure;
        const double z = (one.value - (loss(reference, 0, name, 0).*figure).value) / one.mcse;
        squares += z * z;
        ++count;
      }
    }
  }
  const double rms = std::sqrt(squares / count);
  EXPECT_GT(rms, 0.6);
  EXPECT_LT(rms, 1.5);
}

TEST(Compression, HasItsBitsWhateverTheThreads) {
  const HeadFile file = random_heads();
  const CompressionSetting setting{.rank = 3, .keys = 16, .replicates = 16};
  const auto text = [&](const CompressionSetting& of, int threads) {
    return compression_json(compression_of(file, "heads.nc", of, threads), "heads.nc", {});
  };
  EXPECT_EQ(text(setting, 1), text(setting, 4));
  CompressionSetting other = setting;
  other.seed = 1;
  EXPECT_NE(text(setting, 1), text(other, 1));
  // A head is the same alone as with others.
  HeadFile alone = file;
  alone.layers.erase(alone.layers.begin());
  EXPECT_EQ(loss(compression_of(file, "", setting, 1), 1, "joint", 2).weights.value,
            loss(compression_of(alone, "", setting, 1), 0, "joint", 2).weights.value);
}

TEST(Compression, MakesHeadsOfTheRankWithTheSameSoftmax) {
  for (const bool shared : {false, true}) {
    const HeadFile file = random_heads(shared);
    for (const LowRankMethod method : {LowRankMethod::kq_svd, LowRankMethod::k_svd}) {
      const HeadFile small = compressed_heads(file, "heads.nc", method, {.rank = 2}, 2);
      EXPECT_EQ(small.k(), 2);
      EXPECT_EQ(small.d(), 7);
      EXPECT_EQ(small.temperature, 2);
      EXPECT_EQ(small.kv_heads, shared && method == LowRankMethod::k_svd ? 1 : 3);
      const HeadLayer& layer = small.layers[1];
      ASSERT_EQ(layer.w_q.size(), 3u);
      const MatrixXd& basis = layer.subspaces[2];
      EXPECT_LE((basis.transpose() * basis - MatrixXd::Identity(2, 2)).cwiseAbs().maxCoeff(),
                1e-13);
      EXPECT_LE((basis * (basis.transpose() * layer.w_k[2]) - layer.w_k[2]).cwiseAbs().maxCoeff(),
                1e-12);
      const MatrixXd product = layer.w_q[2] * layer.w_k[2].transpose();
      EXPECT_NEAR(product.squaredNorm(), layer.singular_values[2].squaredNorm(),
                  1e-10 * product.squaredNorm());
      // Keys of heads that share them stay in the space of the keys.
      const MatrixXd& keys = file.layers[1].subspaces[2];
      EXPECT_LE((keys * (keys.transpose() * basis) - basis).cwiseAbs().maxCoeff(), 1e-12);
    }
  }
  EXPECT_EQ(compressed_heads(random_heads(), "", LowRankMethod::joint, {.rank = 2}, 1).left_out,
            "scores beyond rank 2 (joint)");
}

TEST(Compression, KeepsHeadsThatAreAbsent) {
  HeadFile file = random_heads();
  file.model_heads = 4;
  for (HeadLayer& layer : file.layers) layer.heads = {0, 2, 3};
  const HeadFile small = compressed_heads(file, "", LowRankMethod::kq_svd, {.rank = 2}, 1);
  ASSERT_EQ(small.deficient.size(), 2u);
  EXPECT_EQ(small.deficient[1].layer, 3);
  EXPECT_EQ(small.deficient[1].head, 1);
  EXPECT_EQ(small.layers[0].heads, (std::vector<int>{0, 2, 3}));
}

TEST(Compression, SaysWhereNothingIsTheBest) {
  HeadFile file = random_heads();
  file.layers[0].w_k[1] = file.layers[0].subspaces[1];  // of one length in every direction
  const CompressionSetting setting{.rank = 2, .keys = 16, .replicates = 8};
  const Compression all = compression_of(file, "h.nc", setting, 1);
  EXPECT_TRUE(std::isnan(loss(all, 0, "k_svd", 1).scores));
  EXPECT_TRUE(std::isnan(all.layers[0].methods[1].mean.weights.value));
  EXPECT_FALSE(std::isnan(loss(all, 0, "kq_svd", 1).scores));
  EXPECT_FALSE(std::isnan(loss(all, 0, "k_svd", 0).scores));
  EXPECT_EQ(
      refusal_line([&] { compressed_heads(file, "h.nc", LowRankMethod::k_svd, setting, 2); }),
      "h.nc: layer 1, head 1: k_svd has no best subspace: singular values 2 and 3 agree to 1e-9 - "
      "choose another --by or --rank");
  const auto refusal_of = [&](const HeadFile& of, const CompressionSetting& with) {
    return refusal_line([&] { compression_of(of, "h.nc", with, 1); });
  };
  CompressionSetting narrow = setting;
  narrow.tokens = random_matrix(5, 6, 1);
  EXPECT_EQ(refusal_of(file, narrow), "h.nc: has heads on d = 7, the inputs have 6 columns");
}

}  // namespace
}  // namespace headlab
