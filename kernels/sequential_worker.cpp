// SPDX-License-Identifier: Apache-2.0
#include "kernels/sequential_worker.h"

#include <utility>
#include <vector>

namespace headlab {
namespace {

class SequentialWorker : public Worker {
 public:
  explicit SequentialWorker(std::vector<std::unique_ptr<Worker>> workers)
      : workers_(std::move(workers)) {}

  void run(const Block& block, std::span<Moments> out) override {
    const auto nodes = static_cast<std::size_t>(block.nodes());
    for (std::size_t p = 0; p < workers_.size(); ++p) {
      workers_[p]->run(block, out.subspan(p * nodes, nodes));
    }
  }

 private:
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

std::unique_ptr<Worker> make_sequential_worker(
    Plans plans, const std::function<std::unique_ptr<Worker>(const Plan&)>& one) {
  if (plans.size() == 1) return one(*plans[0]);
  std::vector<std::unique_ptr<Worker>> workers;
  for (const Plan* plan : plans) workers.push_back(one(*plan));
  return std::make_unique<SequentialWorker>(std::move(workers));
}

std::uint64_t sequential_worker_bytes(Plans plans,
                                      const std::function<std::uint64_t(const Plan&)>& one) {
  std::uint64_t sum = 0;
  for (const Plan* plan : plans) sum += one(*plan);
  return sum;
}

}  // namespace headlab
