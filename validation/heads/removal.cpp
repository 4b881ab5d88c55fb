// SPDX-License-Identifier: Apache-2.0
// With P the inverse of the second moment of z of the heads that are left, the refit without rows A
// adds tr W_A^T (P_AA)^-1 W_A to the error; then P loses P_KA (P_AA)^-1 P_AK and W loses
// P_KA (P_AA)^-1 W_A.
#include "validation/heads/removal.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/files/error.h"
#include "kernels/counted.h"
#include "kernels/decompositions.h"
#include "kernels/draws.h"
#include "kernels/philox.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Sequences for each head of all layers that pairs of second order need: F has their rank at most.
constexpr std::size_t sequences_for_pairs = 40;

std::vector<Index> rows_of(const std::vector<std::size_t>& heads, std::size_t size) {
  std::vector<Index> rows;
  for (const std::size_t h : heads) {
    for (std::size_t i = 0; i < size; ++i) rows.push_back(static_cast<Index>(h * size + i));
  }
  return rows;
}

/// All heads but some.
std::vector<std::size_t> others(std::size_t all, const std::vector<std::size_t>& heads) {
  std::vector<std::size_t> left;
  for (std::size_t h = 0; h < all; ++h) {
    if (std::ranges::find(heads, h) == heads.end()) left.push_back(h);
  }
  return left;
}

/// Heads that go one after another.
class RefitState {
 public:
  explicit RefitState(const RemovableLayer& layer) : size_(layer.shape().e), map_(layer.map()) {
    const MatrixXd c = layer.ridged();
    const Cholesky factor(c);
    inverse_ = factor.succeeded() ? factor.solve(MatrixXd(MatrixXd::Identity(c.rows(), c.cols())))
                                  : MatrixXd::Constant(c.rows(), c.cols(), std::nan(""));
    left_ = others(layer.heads(), {});
  }

  /// Error that the refit without this head too adds.
  double added(std::size_t head) const {
    const std::vector<Index> a = own_rows(head);
    const MatrixXd w = map_(a, Eigen::all);
    return Cholesky(inverse_(a, a)).solve(w).cwiseProduct(w).sum();
  }

  void remove(std::size_t head) {
    const std::vector<Index> a = own_rows(head);
    std::erase(left_, head);
    std::vector<Index> k;
    for (Index i = 0; i < map_.rows(); ++i) {
      if (i < a.front() || i > a.back()) k.push_back(i);
    }
    const MatrixXd share = Cholesky(inverse_(a, a)).solve(MatrixXd(inverse_(a, k))).transpose();
    map_ = MatrixXd(map_(k, Eigen::all)) - share * map_(a, Eigen::all);
    inverse_ = MatrixXd(inverse_(k, k)) - share * inverse_(a, k);
  }

  const std::vector<std::size_t>& left() const { return left_; }
  const MatrixXd& map() const { return map_; }  ///< of the heads left

 private:
  std::vector<Index> own_rows(std::size_t head) const {
    const auto place = std::ranges::find(left_, head) - left_.begin();
    return rows_of({static_cast<std::size_t>(place)}, size_);
  }

  std::size_t size_;
  std::vector<std::size_t> left_;
  MatrixXd map_, inverse_;
};

std::vector<RemovedHead> all_heads(const std::vector<RemovableLayer>& layers) {
  std::vector<RemovedHead> all;
  for (const RemovableLayer& layer : layers) {
    for (std::size_t h = 0; h < layer.heads(); ++h) all.push_back({layer.number(), h});
  }
  return all;
}

/// Errors of the outputs over the streams, of pairs within layers.
MatrixXd spread_products(const std::vector<RemovableLayer>& layers) {
  const auto count = static_cast<Index>(all_heads(layers).size());
  MatrixXd products = MatrixXd::Zero(count, count);
  Index first = 0;
  for (const RemovableLayer& layer : layers) {
    const auto heads = static_cast<Index>(layer.heads());
    products.block(first, first, heads, heads) = layer.products() / layer.scale();
    first += heads;
  }
  return products;
}

bool have_losses(const std::vector<RemovableLayer>& layers) {
  return std::ranges::all_of(
      layers, [](const RemovableLayer& layer) { return layer.moments().losses.size() > 0; });
}

/// F of all heads; without its pairs where the sequences are too few for them.
MatrixXd loss_products(const std::vector<RemovableLayer>& layers) {
  const auto heads = static_cast<Index>(all_heads(layers).size());
  const Index sequences = layers.front().moments().losses.rows();
  MatrixXd u(sequences, heads);
  Index first = 0;
  for (const RemovableLayer& layer : layers) {
    const MatrixXd& own = layer.moments().losses;
    u.middleCols(first, own.cols()) = own;
    first += own.cols();
  }
  MatrixXd products = u.transpose() * u / (2 * layers.front().moments().tokens);
  const bool pairs =
      static_cast<std::size_t>(sequences) >= sequences_for_pairs * static_cast<std::size_t>(heads);
  if (!pairs) products = MatrixXd(products.diagonal().asDiagonal());
  return products;
}

/// What a head adds to a sum over all pairs of those taken.
double added_pairs(const MatrixXd& products, Index at, const std::vector<Index>& taken) {
  double sum = products(at, at);
  for (const Index other : taken) sum += 2 * products(at, other);
  return sum;
}

/// How many heads are to go, and from where.
class Quota {
 public:
  /// \param even as many from each layer, and from each of its groups
  Quota(const std::vector<RemovableLayer>& layers, std::size_t count, bool even)
      : layers_(layers), count_(count), most_(count) {
    if (!even) return;
    std::size_t parts = 0;
    for (const RemovableLayer& layer : layers) parts += parts_of(layer);
    if (count % parts != 0) {
      throw InvalidInput("remove: " + counted(count, "head does", "heads do") +
                         " not come evenly from " + counted(layers.size(), "layer") + " with " +
                         counted(parts, "group") + " of heads (allowed: multiples of " +
                         std::to_string(parts) + ")");
    }
    most_ = count / parts;
  }

  std::size_t count() const { return count_; }

  /// Takes the head, and from `left` those that have to stay then.
  void take(const RemovedHead& one, std::vector<RemovedHead>& left) {
    const auto part = part_of(one);
    if (++taken_[part] < most_) return;
    std::erase_if(left, [&](const RemovedHead& other) { return part_of(other) == part; });
  }

 private:
  /// Layers whose heads share no keys are one part.
  static std::size_t parts_of(const RemovableLayer& layer) {
    const AttentionShape& shape = layer.shape();
    return shape.groups == shape.heads ? 1 : shape.groups;
  }
  std::pair<int, std::size_t> part_of(const RemovedHead& one) const {
    const RemovableLayer& layer = *std::ranges::find(layers_, one.layer, &RemovableLayer::number);
    return {one.layer, one.head * parts_of(layer) / layer.heads()};
  }

  const std::vector<RemovableLayer>& layers_;
  std::size_t count_, most_;
  std::map<std::pair<int, std::size_t>, std::size_t> taken_;
};

/// Of those left the one that adds least, as often as the quota says.
std::vector<RemovedHead> greedy(std::vector<RemovedHead> left, Quota quota,
                                const std::function<double(const RemovedHead&)>& cost,
                                const std::function<void(const RemovedHead&)>& take) {
  std::vector<RemovedHead> order;
  while (order.size() < quota.count()) {
    std::vector<double> costs;
    for (const RemovedHead& one : left) costs.push_back(cost(one));
    const auto at = std::ranges::min_element(costs) - costs.begin();
    order.push_back(left[static_cast<std::size_t>(at)]);
    left.erase(left.begin() + at);
    quota.take(order.back(), left);
    take(order.back());
  }
  return order;
}

std::vector<RemovedHead> greedy_by_refit(const std::vector<RemovableLayer>& layers,
                                         const Quota& quota) {
  std::vector<RefitState> states(layers.begin(), layers.end());
  // Errors of a layer change where it loses a head alone.
  std::vector<std::vector<double>> costs;
  const auto costs_of = [&](std::size_t i) {
    std::vector<double> own(layers[i].heads());
    for (const std::size_t h : states[i].left()) own[h] = states[i].added(h) / layers[i].scale();
    return own;
  };
  for (std::size_t i = 0; i < layers.size(); ++i) costs.push_back(costs_of(i));
  const auto place = [&](const RemovedHead& one) {
    const auto at = std::ranges::find(layers, one.layer, &RemovableLayer::number);
    return static_cast<std::size_t>(at - layers.begin());
  };
  return greedy(
      all_heads(layers), quota, [&](const RemovedHead& one) { return costs[place(one)][one.head]; },
      [&](const RemovedHead& one) {
        states[place(one)].remove(one.head);
        costs[place(one)] = costs_of(place(one));
      });
}

std::vector<RemovedHead> greedy_by_pairs(const std::vector<RemovableLayer>& layers,
                                         const MatrixXd& products, const Quota& quota) {
  const std::vector<RemovedHead> all = all_heads(layers);
  std::vector<Index> taken;
  const auto place = [&](const RemovedHead& one) {
    return std::ranges::find(all, one) - all.begin();
  };
  return greedy(
      all, quota, [&](const RemovedHead& one) { return added_pairs(products, place(one), taken); },
      [&](const RemovedHead& one) { taken.push_back(place(one)); });
}

std::vector<RemovedHead> sorted_by(const std::vector<RemovableLayer>& layers,
                                   const std::vector<double>& keys, const Quota& quota) {
  const std::vector<RemovedHead> all = all_heads(layers);
  const auto key = [&](const RemovedHead& one) {
    return keys[static_cast<std::size_t>(std::ranges::find(all, one) - all.begin())];
  };
  return greedy(all, quota, key, [](const RemovedHead&) {});
}

}  // namespace

RemovableLayer::RemovableLayer(const LayerActivations& layer, RemovalMoments moments)
    : number_(layer.number()),
      shape_(layer.shape()),
      documents_(layer.documents()),
      has_bias_(layer.has("b_O")),
      moments_(std::move(moments)),
      map_(layer.output_map()),
      moment_(std::move(moments_.squares)) {
  // Without a bias there is no place for a constant.
  if (has_bias_) moment_ -= moments_.mean * moments_.mean.transpose();
}

MatrixXd RemovableLayer::ridged() const {
  MatrixXd c = moment_;
  c.diagonal().array() += HeadSetting().ridge * c.trace() / static_cast<double>(c.rows());
  return c;
}

double RemovableLayer::scale() const {
  return std::isnan(moments_.stream) ? 1 : moments_.stream;
}

ChangedMap RemovableLayer::without(const std::vector<std::size_t>& heads, bool refit) const {
  ChangedMap out{.map = map_, .constant = {}};
  const std::vector<Index> a = rows_of(heads, shape_.e),
                           k = rows_of(others(shape_.heads, heads), shape_.e);
  out.map(a, Eigen::all).setZero();
  if (refit && !a.empty() && !k.empty()) {
    // Least squares for what the removed heads wrote.
    const MatrixXd c = ridged();
    const MatrixXd lost = c(k, a) * map_(a, Eigen::all);
    out.map(k, Eigen::all) += Cholesky(c(k, k)).solve(lost);
  }
  if (has_bias_) out.constant = (map_ - out.map).transpose() * moments_.mean;
  return out;
}

MatrixXd RemovableLayer::products() const {
  return block_products(moment_, map_ * map_.transpose(), shape_);
}

const std::vector<std::string>& removal_orders() {
  static const std::vector<std::string> all = {"refit", "spread", "second_order", "sensitivity",
                                               "random"};
  return all;
}

void require_removable(const std::vector<RemovableLayer>& layers, const RemovalSetting& setting) {
  const HeadSetting limits;
  for (const RemovableLayer& layer : layers) {
    const double needed = limits.refit_tokens * static_cast<double>(layer.columns());
    const bool few = layer.moments().tokens < needed || layer.documents() < limits.min_documents;
    if (setting.refit && few) {
      throw InvalidInput("refit: needs " + std::to_string(static_cast<long>(needed)) +
                         " tokens and " + std::to_string(limits.min_documents) +
                         " documents, there are " +
                         std::to_string(static_cast<long>(layer.moments().tokens)) + " and " +
                         std::to_string(layer.documents()) + " - give more, or plan without refit");
    }
    const bool of_loss = setting.by == "second_order" || setting.by == "sensitivity";
    if (of_loss && layer.moments().losses.size() == 0) {
      throw InvalidInput("by: " + setting.by + " needs gradients, which layer " +
                         std::to_string(layer.number()) + " lacks");
    }
    // Where each loses as many, heads of different layers are not compared.
    if (layers.size() > 1 && !setting.even && (setting.by == "refit" || setting.by == "spread") &&
        std::isnan(layer.moments().stream)) {
      throw InvalidInput(
          "by: ranks hold within layers - give residual, one layer alone, or second_order");
    }
  }
}

std::vector<RemovedHead> removal_order(const std::vector<RemovableLayer>& layers,
                                       const RemovalSetting& setting, std::size_t count) {
  const Quota quota(layers, count, setting.even);
  if (setting.by == "refit") return greedy_by_refit(layers, quota);
  if (setting.by == "spread") return greedy_by_pairs(layers, spread_products(layers), quota);
  if (setting.by == "second_order") return greedy_by_pairs(layers, loss_products(layers), quota);
  std::vector<double> keys;
  for (const RemovableLayer& layer : layers) {
    for (std::size_t h = 0; h < layer.heads(); ++h) {
      if (setting.by == "sensitivity") {
        keys.push_back(layer.moments().sensitivity(static_cast<Index>(h)));
      } else {
        const std::uint64_t stream =
            subsequence(Purpose::queries_choice, static_cast<std::uint64_t>(layer.number()));
        keys.push_back(philox(setting.seed, stream, h).w[0]);
      }
    }
  }
  return sorted_by(layers, keys, quota);
}

std::vector<RemovalPrediction> removal_predictions(const std::vector<RemovableLayer>& layers,
                                                   const std::vector<RemovedHead>& order,
                                                   bool refit) {
  const std::vector<RemovedHead> all = all_heads(layers);
  const MatrixXd spread = refit ? MatrixXd() : spread_products(layers);
  const bool losses = have_losses(layers);
  const MatrixXd products = losses ? loss_products(layers) : MatrixXd();
  std::vector<RefitState> states;
  for (std::size_t i = 0; refit && i < layers.size(); ++i) states.emplace_back(layers[i]);
  std::vector<RemovalPrediction> out;
  std::vector<Index> taken;
  RemovalPrediction sum{.share = 0, .nats = losses ? 0 : std::nan("")};
  for (const RemovedHead& one : order) {
    const Index at = std::ranges::find(all, one) - all.begin();
    if (refit) {
      const auto layer = std::ranges::find(layers, one.layer, &RemovableLayer::number);
      RefitState& state = states[static_cast<std::size_t>(layer - layers.begin())];
      sum.share += state.added(one.head) / layer->scale();
      state.remove(one.head);
    } else {
      sum.share += added_pairs(spread, at, taken);
    }
    if (losses) sum.nats += added_pairs(products, at, taken);
    taken.push_back(at);
    out.push_back(sum);
  }
  return out;
}

}  // namespace headlab
