// SPDX-License-Identifier: Apache-2.0
#include "kernels/backend.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"
#include "kernels/replicate_worker.h"

namespace headlab {

ReplicateWorker::ReplicateWorker(const MomentLayout& layout)
    : layout_(layout), statistics_(leaf_replicates * layout.statistics()) {}

void ReplicateWorker::run(const Block& block, std::span<Moments> out) {
  const auto node = static_cast<std::uint64_t>(block.node);
  for (std::uint64_t i = 0; i < block.nodes(); ++i) {
    const std::uint64_t first = block.first + i * node;
    const std::uint64_t count = std::min(node, block.first + block.count - first);
    WindowCounts windows;
    for (std::uint64_t r = 0; r < count; ++r) {
      replicate(first + r,
                std::span(statistics_).subspan(r * layout_.statistics(), layout_.statistics()),
                windows);
    }
    leaf_moments(layout_, statistics_, static_cast<int>(count), out[i]);
    out[i].windows = windows;
  }
}

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

std::vector<std::string> backend_names() {
  return {"reference", "cpu"};
}

std::unique_ptr<Backend> make_backend(const std::string& name) {
  if (name == "reference") return make_reference_backend();
  if (name == "cpu" || name == "auto") return make_cpu_backend();
  if (name == "cuda") {
    throw std::invalid_argument("--backend cuda: this build has no CUDA backend - use cpu");
  }
  throw std::invalid_argument("--backend " + name +
                              ": no such backend (allowed: auto, reference, cpu)");
}

}  // namespace headlab
