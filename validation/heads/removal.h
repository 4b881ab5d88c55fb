// SPDX-License-Identifier: Apache-2.0
/// \file Which heads of a model go first, and the output maps of the others fitted again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "validation/heads/refit.h"

namespace headlab {

struct RemovedHead {
  int layer = 0;
  std::size_t head = 0;

  bool operator==(const RemovedHead&) const = default;
};

/// Another output map of a layer.
struct ChangedMap {
  Eigen::MatrixXd map;       ///< [H e][d], rows of removed heads 0
  Eigen::VectorXd constant;  ///< [d] that the bias gains; empty where the layer has none
};

/// What removal needs of a layer.
class RemovableLayer {
 public:
  RemovableLayer(const LayerActivations& layer, RemovalMoments moments);

  int number() const { return number_; }
  std::size_t heads() const { return shape_.heads; }
  std::size_t columns() const { return static_cast<std::size_t>(map_.rows()); }
  const AttentionShape& shape() const { return shape_; }
  std::size_t documents() const { return documents_; }
  bool has_bias() const { return has_bias_; }
  const RemovalMoments& moments() const { return moments_; }
  const Eigen::MatrixXd& map() const { return map_; }
  /// Second moment of z, about its mean where the bias takes a constant up; and with the ridge.
  const Eigen::MatrixXd& moment() const { return moment_; }
  Eigen::MatrixXd ridged() const;
  /// Mean square of the stream, or 1 where it is not known.
  double scale() const;

  /// Without some heads, the maps of the others fitted again or left as they are.
  ChangedMap without(const std::vector<std::size_t>& heads, bool refit) const;
  /// o_h . o_l of the moments [H][H]: summed over removed heads, the error without a refit.
  Eigen::MatrixXd products() const;

 private:
  int number_;
  AttentionShape shape_;
  std::size_t documents_;
  bool has_bias_;
  RemovalMoments moments_;
  Eigen::MatrixXd map_, moment_;
};

/// By what heads are ordered.
const std::vector<std::string>& removal_orders();

struct RemovalSetting {
  std::string by = "refit";
  bool refit = true;
  std::uint64_t seed = 0;  ///< of a random order
  bool even = false;       ///< all layers, and their groups, lose as many heads
};

/// Throws InvalidInput, one line, where the layers lack what the order or a refit needs.
void require_removable(const std::vector<RemovableLayer>& layers, const RemovalSetting& setting);

/// The first `count` heads to go. Throws InvalidInput where so many do not come evenly from layers
/// and groups, and have to.
std::vector<RemovedHead> removal_order(const std::vector<RemovableLayer>& layers,
                                       const RemovalSetting& setting, std::size_t count);

/// Of the heads up to each step: the share of the stream that is lost, summed over layers, and
/// nats a token, NaN without gradients.
struct RemovalPrediction {
  double share = 0, nats = std::numeric_limits<double>::quiet_NaN();
};
std::vector<RemovalPrediction> removal_predictions(const std::vector<RemovableLayer>& layers,
                                                   const std::vector<RemovedHead>& order,
                                                   bool refit);

}  // namespace headlab
