// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/moment_tree.h"

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "engine/testing/same_bits.h"

namespace headlab {
namespace {

const MomentLayout layout{.queries = 1, .heads = 2};

/// Statistics of replicate r, a pure function of r.
std::vector<double> statistics(std::uint64_t r) {
  std::mt19937_64 random(r + 1);
  std::normal_distribution<double> normal;
  std::vector<double> values(layout.statistics());
  for (double& value : values) value = 5 + normal(random);
  return values;
}

Moments node(std::uint64_t first, std::uint64_t count) {
  std::vector<double> values;
  for (std::uint64_t r = first; r < first + count; ++r) {
    const auto one = statistics(r);
    values.insert(values.end(), one.begin(), one.end());
  }
  Moments moments;
  leaf_moments(layout, values, static_cast<int>(count), moments);
  return moments;
}

/// A run of `replicates` as the engine feeds it.
MomentTree grow(std::uint64_t replicates) {
  MomentTree tree(layout);
  while (tree.count() < replicates) {
    const std::uint64_t size = tree.count() < first_leaf ? 1 : leaf_replicates;
    tree.append(node(tree.count(), std::min(size, replicates - tree.count())));
  }
  return tree;
}

std::vector<std::uint64_t> sizes(const std::vector<Node>& nodes) {
  std::vector<std::uint64_t> result;
  for (const Node& n : nodes) result.push_back(n.moments.count);
  return result;
}

TEST(MomentTree, KeepsEveryReplicateBelow256) {
  const MomentTree tree = grow(255);

  EXPECT_EQ(sizes(tree.nodes()), std::vector<std::uint64_t>(255, 1));
  EXPECT_EQ(tree.jackknife_nodes().size(), 255u);
}

TEST(MomentTree, KeepsTheFinestLevelOfAtMost128Nodes) {
  EXPECT_EQ(sizes(grow(256).nodes()), std::vector<std::uint64_t>(32, 8));
  EXPECT_EQ(sizes(grow(1024).nodes()), std::vector<std::uint64_t>(128, 8));
  // One leaf more would be 129 nodes of 8, so they become nodes of 16.
  auto expected = std::vector<std::uint64_t>(64, 16);
  expected.push_back(8);
  EXPECT_EQ(sizes(grow(1032).nodes()), expected);
  // The tail is kept as binary pieces and a partial leaf, and counts as one node.
  expected = std::vector<std::uint64_t>(65, 32);
  for (const std::uint64_t piece : {16, 8, 3}) expected.push_back(piece);
  EXPECT_EQ(sizes(grow(65 * 32 + 27).nodes()), expected);
  EXPECT_EQ(grow(65 * 32 + 27).jackknife_nodes().back().moments.count, 27u);
}

TEST(MomentTree, NodesAreConsecutiveAndHoldEveryReplicateOnce) {
  for (const std::uint64_t replicates : {1, 7, 100, 256, 261, 2000, 5001}) {
    std::uint64_t next = 0;
    for (const Node& n : grow(replicates).jackknife_nodes()) {
      EXPECT_EQ(n.first, next);
      next += n.moments.count;
    }
    EXPECT_EQ(next, replicates);
  }
}

TEST(MomentTree, ALongRunPassesThroughTheBitsOfAShorterOne) {
  // Leaves of a run that passes 256 have the bits of leaves computed at once.
  const auto nodes = grow(300).nodes();
  const Moments at_once = node(8, 8);
  EXPECT_EQ(nodes[1].moments.mean, at_once.mean);
  EXPECT_EQ(nodes[1].moments.comoment, at_once.comoment);

  // Growing on from a shorter run gives the nodes of the longer one.
  MomentTree tree = grow(1024);
  while (tree.count() < 1600) tree.append(node(tree.count(), 8));
  const auto grown = tree.nodes();
  const auto fresh = grow(1600).nodes();
  ASSERT_EQ(grown.size(), fresh.size());
  for (std::size_t i = 0; i < grown.size(); ++i) {
    EXPECT_EQ(grown[i].moments.comoment, fresh[i].moments.comoment);
  }
}

TEST(MomentTree, LargerNodesGiveTheBitsOfTheirLeaves) {
  // From 2064 replicates on a whole node has 32, so nodes of 32 may come at once.
  MomentTree tree = grow(2080);
  while (tree.count() < 2400) {
    std::vector<Moments> leaves;
    for (std::uint64_t i = 0; i < 4; ++i) leaves.push_back(node(tree.count() + 8 * i, 8));
    tree.append(merge_siblings(layout, leaves));
  }
  const auto expected = grow(2400).nodes();
  const auto nodes = tree.nodes();
  ASSERT_EQ(nodes.size(), expected.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].first, expected[i].first);
    EXPECT_EQ(nodes[i].moments.mean, expected[i].moments.mean);
    EXPECT_EQ(nodes[i].moments.comoment, expected[i].moments.comoment);
  }
}

TEST(MomentTree, MeanAndVarianceAreThoseOfAllReplicates) {
  const std::uint64_t replicates = 1037;
  long double sum = 0;
  for (std::uint64_t r = 0; r < replicates; ++r) sum += statistics(r)[0];
  const long double mean = sum / replicates;
  long double square = 0;
  for (std::uint64_t r = 0; r < replicates; ++r) {
    square += (statistics(r)[0] - mean) * (statistics(r)[0] - mean);
  }

  Moments all;
  const MomentTree tree = grow(replicates);
  for (const Node& n : tree.nodes()) merge_moments(layout, all, n.moments);

  EXPECT_NEAR(all.mean[0], static_cast<double>(mean), 1e-13);
  EXPECT_NEAR(all.comoment[0], static_cast<double>(square), 1e-10);
}

/// A range of the run of `total` replicates, with the nodes of its leaves.
MomentTree grow_range(std::uint64_t first, std::uint64_t end, std::uint64_t total) {
  MomentTree tree(layout, {first, end - first, total});
  const std::uint64_t size = total < first_leaf ? 1 : leaf_replicates;
  while (tree.end() < end) tree.append(node(tree.end(), std::min(size, end - tree.end())));
  return tree;
}

TEST(MomentTree, RangesJoinToTheBitsOfOneRun) {
  std::mt19937_64 random(1);
  for (const std::uint64_t total : {1, 7, 255, 256, 261, 1032, 2107, 5001}) {
    for (int layout_number = 0; layout_number < 8; ++layout_number) {
      SCOPED_TRACE(std::to_string(total) + " " + std::to_string(layout_number));
      const std::uint64_t leaf = total < first_leaf ? 1 : leaf_replicates;
      const std::uint64_t leaves = (total + leaf - 1) / leaf;
      MomentTree joined(layout, {0, total, total});
      while (joined.end() < total) {
        const std::uint64_t cut = joined.end() / leaf + 1 + random() % leaves;
        joined.join(grow_range(joined.end(), std::min(cut * leaf, total), total));
      }
      expect_same_nodes(joined.whole_run(), grow(total));
    }
  }
}

TEST(MomentTree, RangesThatDoNotFollowAreRefused) {
  MomentTree tree(layout, {0, 2107, 2107});
  tree.join(grow_range(0, 800, 2107));
  EXPECT_THROW(tree.join(grow_range(808, 2107, 2107)), std::invalid_argument);  // a gap
  EXPECT_THROW(tree.join(grow_range(0, 800, 2107)), std::invalid_argument);     // twice
  EXPECT_THROW(tree.join(grow_range(800, 2107, 2200)), std::invalid_argument);  // another run
  EXPECT_THROW(tree.whole_run(), std::invalid_argument);  // the rest is missing
  tree.join(grow_range(800, 2107, 2107));
  EXPECT_EQ(tree.whole_run().count(), 2107u);
  // Cuts are between leaves, and a range has all of its nodes in their order.
  EXPECT_THROW(MomentTree(layout, {4, 8, 2107}), std::invalid_argument);
  std::vector<Node> nodes = grow_range(800, 1600, 2107).nodes();
  std::swap(nodes[0], nodes[1]);
  EXPECT_THROW(MomentTree(layout, {800, 800, 2107}, nodes), std::invalid_argument);
  // Across a gap nothing is merged.
  MomentTree part(layout, {0, 2107, 2107});
  part.join_after_gap(grow_range(0, 8, 2107));
  part.join_after_gap(grow_range(16, 24, 2107));
  EXPECT_EQ(sizes(part.nodes()), (std::vector<std::uint64_t>{8, 8}));
}

TEST(MomentTree, RefusesANodeThatIsNone) {
  MomentTree tree(layout);
  EXPECT_THROW(tree.append(Moments{}), std::invalid_argument);
  EXPECT_THROW(tree.append(node(0, 8)), std::invalid_argument) << "the first come one by one";

  MomentTree grown = grow(264);
  EXPECT_THROW(grown.append(node(264, 16)), std::invalid_argument) << "a whole node has 8";
  EXPECT_THROW(grown.append(node(264, 9)), std::invalid_argument);
  MomentTree later = grow(2088);
  EXPECT_THROW(later.append(node(2088, 32)), std::invalid_argument) << "not aligned to 32";
  EXPECT_NO_THROW(later.append(node(2088, 8)));
}

TEST(MomentTree, IsMadeAgainOfItsNodes) {
  for (const std::uint64_t replicates : {0, 1, 7, 100, 255, 256, 261, 1032, 2000, 2107, 5001}) {
    const MomentTree tree = grow(replicates);
    const MomentTree again(layout, tree.nodes());
    EXPECT_EQ(again.count(), replicates);
    EXPECT_EQ(sizes(again.nodes()), sizes(tree.nodes()));
  }
}

TEST(MomentTree, GoesOnFromItsWholeLeaves) {
  for (const std::uint64_t replicates : {0, 7, 255, 256, 2104}) {
    EXPECT_EQ(grow(replicates).whole().count(), replicates);
  }
  const MomentTree cut = grow(2107).whole();
  EXPECT_EQ(cut.count(), 2104u);
  EXPECT_EQ(sizes(cut.nodes()), sizes(grow(2104).nodes()));
  EXPECT_EQ(grow(261).whole().count(), 256u);
}

TEST(MomentTree, RefusesNodesThatNoRunKeeps) {
  const std::vector<Node> good = grow(1032).nodes();
  const auto refused = [&](const std::function<void(std::vector<Node>&)>& spoil) {
    std::vector<Node> nodes = good;
    spoil(nodes);
    EXPECT_THROW(MomentTree(layout, nodes), std::invalid_argument);
  };
  refused([](std::vector<Node>& nodes) { nodes.erase(nodes.begin()); });
  refused([](std::vector<Node>& nodes) { nodes[3].first += 1; });
  refused([](std::vector<Node>& nodes) { nodes[3].moments.count = 8; });
  refused([](std::vector<Node>& nodes) { nodes[3].moments.count = 0; });
  refused([](std::vector<Node>& nodes) { nodes[3].moments.mean.pop_back(); });
  refused([](std::vector<Node>& nodes) { nodes[3].moments.comoment.clear(); });
  // Single replicates where leaves are kept, and two pieces that are siblings.
  refused([](std::vector<Node>& nodes) { nodes.insert(nodes.begin(), grow(8).nodes()[0]); });
  refused([](std::vector<Node>& nodes) {
    nodes.pop_back();
    nodes.back().moments.count = 8;
    nodes.push_back({nodes.back().first + 8, nodes.back().moments});
  });
}

/// Extremes of consecutive replicates, many of whose keys are equal; those from 1024 on have larger
/// errors than those before.
Extremes extremes_of(std::uint64_t first, std::uint64_t count) {
  Extremes all;
  for (std::uint64_t r = first; r < first + count; ++r) {
    const double later = r < 1024 ? 0 : 30;
    all.max_error.add({later + std::floor(20 * std::abs(std::sin(static_cast<double>(r)))), r});
    all.min_sample_size->add({std::floor(20 * std::abs(std::cos(static_cast<double>(r)))), r});
  }
  return all;
}

/// A run of `replicates` from `tree` on, with extremes.
MomentTree grow_with_extremes(MomentTree tree, std::uint64_t replicates) {
  while (tree.count() < replicates) {
    const std::uint64_t first = tree.count();
    const std::uint64_t size =
        std::min<std::uint64_t>(first < first_leaf ? 1 : leaf_replicates, replicates - first);
    Moments moments = node(first, size);
    moments.extremes = std::make_shared<const Extremes>(extremes_of(first, size));
    tree.append(std::move(moments));
  }
  return tree;
}

TEST(MomentTree, HasTheExtremesOfAllReplicates) {
  for (const std::uint64_t replicates : {1u, 5u, 255u, 256u, 259u, 1000u, 1030u}) {
    const MomentTree tree = grow_with_extremes(MomentTree(layout), replicates);
    EXPECT_EQ(tree.extremes(), extremes_of(0, replicates)) << replicates;
    EXPECT_EQ(tree.whole().extremes(), extremes_of(0, tree.whole_count())) << replicates;
    for (const Node& one : tree.nodes()) EXPECT_EQ(one.moments.extremes, nullptr);
    // From where it can go on it has those of one run.
    EXPECT_EQ(grow_with_extremes(tree.whole(), 2000).extremes(), extremes_of(0, 2000));
    const MomentTree again(layout, tree.nodes(), tree.kept_extremes());
    EXPECT_EQ(again.whole().extremes(), tree.whole().extremes());
  }
  // Those shown do not do: the ones beyond them may take the place of what is simulated again.
  MomentTree shown = grow_with_extremes(MomentTree(layout), 1030);
  shown = MomentTree(layout, shown.nodes(), shown.extremes());
  EXPECT_NE(shown.whole().extremes(), extremes_of(0, 1024));
}

TEST(MomentTree, KnowsNoExtremesWhereANodeHasNone) {
  MomentTree tree = grow_with_extremes(MomentTree(layout), 300);
  ASSERT_TRUE(tree.extremes());
  tree = tree.whole();
  tree.append(node(tree.count(), leaf_replicates));
  EXPECT_FALSE(tree.extremes());
  EXPECT_FALSE(grow_with_extremes(tree, 400).extremes());
  EXPECT_FALSE(grow(300).extremes());
}

}  // namespace
}  // namespace headlab
