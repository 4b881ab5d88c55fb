// SPDX-License-Identifier: Apache-2.0
#include "kernels/replicate_worker.h"

#include <algorithm>
#include <fstream>

namespace headlab {

ReplicateWorker::ReplicateWorker(const MomentLayout& layout)
    : layout_(layout), statistics_(leaf_replicates * layout.statistics()) {}

void ReplicateWorker::run(const Block& block, std::span<Moments> out) {
  const auto node = static_cast<std::uint64_t>(block.node);
  const auto largest = static_cast<std::uint64_t>(leaf_replicates);
  for (std::uint64_t i = 0; i < block.nodes(); ++i) {
    const std::uint64_t first = block.first + i * node;
    const std::uint64_t count = std::min(node, block.first + block.count - first);
    std::vector<Moments> leaves;
    for (std::uint64_t done = 0; done < count; done += largest) {
      leaves.push_back(leaf(first + done, std::min(largest, count - done)));
    }
    out[i] = merge_siblings(layout_, leaves);
  }
}

Moments ReplicateWorker::leaf(std::uint64_t first, std::uint64_t count) {
  Moments moments;
  WindowCounts windows;
  for (std::uint64_t r = 0; r < count; ++r) {
    replicate(first + r,
              std::span(statistics_).subspan(r * layout_.statistics(), layout_.statistics()),
              windows);
  }
  leaf_moments(layout_, statistics_, static_cast<int>(count), moments);
  moments.windows = windows;
  return moments;
}

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace headlab
