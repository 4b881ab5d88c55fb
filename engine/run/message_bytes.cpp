// SPDX-License-Identifier: Apache-2.0
#include "engine/run/message_bytes.h"

#include <memory>
#include <optional>
#include <utility>

namespace headlab {
namespace {

void put_list(MessageWriter& message, const ExtremeList& list) {
  std::vector<double> keys;
  std::vector<std::uint64_t> replicates;
  for (const Extreme& one : list.all()) {
    keys.push_back(one.key);
    replicates.push_back(one.replicate);
  }
  message.put(keys);
  message.put(replicates);
}

void take_list(MessageReader& message, ExtremeList& list) {
  const auto keys = message.numbers<double>();
  const auto replicates = message.numbers<std::uint64_t>();
  if (keys.size() != replicates.size()) throw std::invalid_argument("a message is damaged");
  for (std::size_t i = 0; i < keys.size(); ++i) list.add({keys[i], replicates[i]}, keys.size());
}

void put_extremes(MessageWriter& message, const Extremes& extremes) {
  put_list(message, extremes.max_error);
  message.put(extremes.min_sample_size.has_value());
  if (extremes.min_sample_size) put_list(message, *extremes.min_sample_size);
}

Extremes take_extremes(MessageReader& message) {
  Extremes extremes;
  take_list(message, extremes.max_error);
  if (message.number<bool>()) {
    take_list(message, *extremes.min_sample_size);
  } else {
    extremes.min_sample_size.reset();
  }
  return extremes;
}

}  // namespace

void put_moments(MessageWriter& message, const Moments& moments) {
  message.put(moments.count);
  message.put(moments.mean);
  message.put(moments.comoment);
  message.put(moments.windows.empty);
  message.put(moments.windows.narrow);
  message.put(moments.extremes != nullptr);
  if (!moments.extremes) return;
  put_extremes(message, *moments.extremes);
}

Moments take_moments(MessageReader& message) {
  Moments moments{.count = message.number<std::uint64_t>()};
  moments.mean = message.numbers<double>();
  moments.comoment = message.numbers<double>();
  moments.windows.empty = message.number<std::uint64_t>();
  moments.windows.narrow = message.number<std::uint64_t>();
  if (!message.number<bool>()) return moments;
  moments.extremes = std::make_shared<const Extremes>(take_extremes(message));
  return moments;
}

std::string bytes_of(const MomentTree& tree) {
  MessageWriter message;
  message.put(std::uint64_t{tree.nodes().size()});
  for (const Node& node : tree.nodes()) {
    message.put(node.first);
    put_moments(message, node.moments);
  }
  message.put(tree.kept_extremes().has_value());
  if (tree.kept_extremes()) put_extremes(message, *tree.kept_extremes());
  return std::move(message).bytes();
}

MomentTree tree_of(const MomentLayout& layout, const std::string& bytes) {
  MessageReader message(bytes);
  std::vector<Node> nodes;
  const auto count = message.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto first = message.number<std::uint64_t>();
    nodes.push_back({first, take_moments(message)});
    const Moments& moments = nodes.back().moments;
    if (moments.mean.size() != layout.statistics() ||
        moments.comoment.size() != layout.comoments()) {
      throw std::invalid_argument("moments of another layout");
    }
  }
  std::optional<Extremes> extremes;
  if (message.number<bool>()) extremes = take_extremes(message);
  return MomentTree(layout, std::move(nodes), std::move(extremes));
}

}  // namespace headlab
