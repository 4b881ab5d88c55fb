// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/worker.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sizes.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Memory that a smaller batch leaves for what the driver loads at first use [bytes].
constexpr std::uint64_t reserve = 256 << 20;

/// The largest segment whose statistics fit, in leaves times a power of two.
int segment_of(const MomentLayout& layout, std::uint64_t bytes) {
  const std::uint64_t leaf_bytes = 8 * leaf_replicates * layout.statistics();
  int replicates = leaf_replicates;
  while (2 * leaf_bytes * static_cast<std::uint64_t>(replicates / leaf_replicates) <= bytes &&
         replicates < 1 << 16) {
    replicates *= 2;
  }
  return replicates;
}

/// Throws std::invalid_argument where a size does not fit in an int.
LaunchPlan checked_launch(const Plan& plan, const LaunchLimits& limits) {
  check_sizes(plan);
  LaunchPlan launch = plan_launch(plan, limits);
  count_of("tokens of a training set", {static_cast<std::uint64_t>(launch.padded_n)});
  return launch;
}

}  // namespace

CudaWorker::CudaWorker(const Plan& plan, int device, const Options& options, const Note& note,
                       std::shared_ptr<StreamPool> streams)
    : plan_(plan),
      device_(device),
      note_(note),
      streams_(std::move(streams)),
      stream_((use_device(device), streams_->take(device))),
      layout_(plan.layout()),
      fallback_queries_(options.fallback_queries),
      launch_(checked_launch(plan, options.limits)),
      constants_(plan, launch_, *stream_, !options.no_lower_parts),
      segment_replicates_(segment_of(layout_, options.statistics_bytes)),
      batch_(plan_, launch_, constants_, *stream_) {
  allocate(options.batch_replicates > 0 ? options.batch_replicates : batch_.good_replicates());
}

/// Memory of a segment and of a batch.
std::uint64_t CudaWorker::bytes(std::int64_t replicates) const {
  const auto segment = static_cast<std::uint64_t>(segment_replicates_);
  return Arena::room(8 * segment * layout_.statistics()) +
         Arena::room(8 * segment / leaf_replicates * (layout_.statistics() + layout_.comoments())) +
         Arena::room(8 * window_counters * segment) + batch_.bytes(replicates);
}

void CudaWorker::place(std::int64_t replicates) {
  const auto segment = static_cast<std::uint64_t>(segment_replicates_);
  Arena& memory = stream_->work;
  statistics_ = memory.take<double>(segment * layout_.statistics());
  nodes_ =
      memory.take<double>(segment / leaf_replicates * (layout_.statistics() + layout_.comoments()));
  windows_ = memory.take<unsigned long long>(window_counters * segment);
  batch_.place(replicates);
}

/// Takes the memory of a segment, and of a batch of `wanted` replicates or a half, a quarter ... of
/// them.
void CudaWorker::allocate(std::int64_t wanted) {
  const std::string device = "cuda device " + std::to_string(device_);
  std::int64_t largest = std::min<std::int64_t>(wanted, segment_replicates_);
  // What the last condition left is enough where it has half of the batch.
  const std::int64_t half = (largest + 1) / 2;
  const std::uint64_t kept = stream_->work.capacity();
  if (bytes(largest) > kept && bytes(half) <= kept) largest = half;
  std::int64_t replicates = largest;
  // The smallest batch is tried however little it leaves.
  const auto fits = [&] {
    return stream_->work.reserve(bytes(replicates)) &&
           (replicates == largest || replicates == 1 || free_memory() >= reserve);
  };
  while (!fits()) {
    stream_->work.release();
    if (streams_->release_idle(device_)) continue;
    if (replicates == 1) {
      throw OutOfMemory(device + ": out of memory: " + mebibytes(bytes(1)) +
                        " needed for the smallest batch, " + mebibytes(free_memory()) +
                        " free - lower data.n or the number of queries, or use --backend cpu");
    }
    replicates /= 2;
  }
  place(replicates);
  if (replicates < largest) {
    note_(device + ": out of memory for batches of " + std::to_string(largest) +
          " replicates, continues with " + std::to_string(replicates) + " (same results)");
  }
}

/// Takes the memory for batches of half the size. False where there are none.
bool CudaWorker::halve(const std::string& why) {
  const std::int64_t half = batch_.replicates() / 2;
  if (half == 0) return false;
  stream_->synchronise();
  // Where memory was missing it may not have been for an array.
  stream_->work.release();
  streams_->release_idle(device_);
  if (!stream_->work.reserve(bytes(half))) return false;
  place(half);
  note_(why + "; continued with batches of " + std::to_string(half) + " replicates (same results)");
  return true;
}

void CudaWorker::run(const Block& block, std::span<Moments> out) {
  use_device(device_);
  // A node larger than a segment is merged here from the nodes of several.
  const auto segment = static_cast<std::uint64_t>(segment_replicates_);
  const auto node = std::min(static_cast<std::uint64_t>(block.node), segment);
  std::vector<Moments> nodes;
  for (std::uint64_t done = 0; done < block.count; done += segment) {
    stop_point();  // nothing of the last one is under way
    const std::uint64_t count = std::min(segment, block.count - done);
    std::string failure;
    try {
      run_segment(block.first + done, count, node, nodes);
      continue;
    } catch (const OutOfMemory& error) {
      if (batch_.replicates() == 1) throw;
      failure = error.what();
    }
    if (!halve(failure)) throw OutOfMemory(failure);
    run_segment(block.first + done, count, node, nodes);
  }
  const std::size_t merged = static_cast<std::uint64_t>(block.node) / node;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t left = std::min(merged, nodes.size() - i * merged);
    out[i] = merge_siblings(layout_, std::span(nodes).subspan(i * merged, left));
  }
}

/// Appends the moments of replicates first .. first + count - 1 to `out`, in nodes of `node`.
void CudaWorker::run_segment(std::uint64_t first, std::uint64_t count, std::uint64_t node,
                             std::vector<Moments>& out) {
  const std::uint64_t nodes = (count + node - 1) / node;
  clear_windows(nodes);
  for (std::uint64_t done = 0; done < count;) {
    const auto replicates = static_cast<std::int64_t>(
        std::min(static_cast<std::uint64_t>(batch_.replicates()), count - done));
    const WindowCounters counters = windows(done, node);
    batch_.compute(first + done, replicates, counters);
    take_statistics(replicates, counters);
    done += static_cast<std::uint64_t>(replicates);
  }

  const auto queries = static_cast<std::size_t>(layout_.queries);
  const std::size_t per_query = layout_.per_query();
  const std::size_t pairs = node == 1 ? 0 : layout_.comoments_per_query();
  const std::size_t size = queries * (per_query + pairs);
  auto* const numbers = static_cast<double*>(
      stream_->host_buffer(nodes * (8 * size + window_counters * sizeof(*windows_))));
  auto* const counts = reinterpret_cast<unsigned long long*>(numbers + nodes * size);
  stream_->copy_to_host(counts, windows_, 8 * window_counters * nodes);
  if (node == 1) {
    stream_->copy_to_host(numbers, statistics_, 8 * nodes * size);
  } else {
    copy_nodes(count, node, numbers);
  }
  stream_->synchronise();
  for (std::uint64_t i = 0; i < nodes; ++i) {
    Moments& moments = out.emplace_back();
    moments.count = std::min(node, count - i * node);
    moments.mean.resize(layout_.statistics());
    moments.comoment.resize(layout_.comoments());
    for (std::size_t q = 0; q < queries; ++q) {
      const double* from = numbers + i * size + q * (per_query + pairs);
      std::copy_n(from, per_query, &moments.mean[q * per_query]);
      std::copy_n(from + per_query, pairs, moments.comoment.data() + q * pairs);
    }
    const unsigned long long* of_node = counts + window_counters * i;
    moments.windows = {.empty = of_node[0], .narrow = of_node[1]};
    if (fallback_queries_ != nullptr) *fallback_queries_ += of_node[2];
  }
}

void CudaWorker::clear_windows(std::uint64_t nodes) {
  stream_->clear(windows_, 8 * window_counters * nodes);
}

WindowCounters CudaWorker::windows(std::uint64_t done, std::uint64_t node) const {
  return {.counts = windows_,
          .first = static_cast<std::int64_t>(done),
          .node_replicates = static_cast<int>(node)};
}

void CudaWorker::take_statistics(std::int64_t count, const WindowCounters& counters) {
  const double unit = constants_.noise_unit;
  const Merge& merge = plan_.mechanism.merge;
  const double of_token = merge.weight(merge.stride) * merge.group_weight();
  const double noise_factor = has_constant_noise(plan_)
                                  ? std::visit(
                                        [](const auto& noise) {
                                          if constexpr (requires { noise.sd; })
                                            return noise.sd * noise.sd;
                                          return 0.0;
                                        },
                                        *plan_.noise) *
                                        of_token
                                  : unit * unit;
  const auto done = static_cast<std::size_t>(counters.first);
  statistics(*stream_, {.totals = launch_.totals,
                        .layout = layout_,
                        .sums = batch_.totals(),
                        .head_weights = constants_.head_weights.data(),
                        .centre = constants_.token_centre,
                        .noise_factor = noise_factor,
                        .aligns_noise = plan_.mechanism.merge.last_share(plan_.n) != 1,
                        .statistics = statistics_ + done * layout_.statistics(),
                        .replicates = count});
  if (!plan_.controls) return;
  control_statistics(*stream_, {.totals = launch_.totals,
                                .layout = layout_,
                                .controls = constants_.controls,
                                .sums = batch_.totals(),
                                .taken = batch_.taken(),
                                .left_out = constants_.left_out.data(),
                                .head_weights = constants_.head_weights.data(),
                                .statistics = statistics_ + done * layout_.statistics(),
                                .replicates = count});
}

MomentArguments CudaWorker::take_leaves(std::uint64_t count) {
  const MomentArguments arguments = {
      .queries = layout_.queries,
      .components = static_cast<int>(layout_.components()),
      .pairs = count_of("pairs of statistics of a query", {layout_.comoments_per_query()}),
      .ensemble = layout_.controlled() ? static_cast<int>(layout_.controlled_ensemble()) : -1,
      .per_query = static_cast<int>(layout_.per_query()),
      .pairwise = layout_.pairwise(),
      .statistics = statistics_,
      .nodes = nodes_,
      .leaves = static_cast<std::int64_t>((count + leaf_replicates - 1) / leaf_replicates),
      .replicates = static_cast<std::int64_t>(count)};
  leaves(*stream_, arguments);
  return arguments;
}

/// Starts to copy the nodes of a segment.
void CudaWorker::copy_nodes(std::uint64_t count, std::uint64_t node, double* numbers) {
  MomentArguments arguments = take_leaves(count);
  const std::uint64_t node_leaves = node / leaf_replicates;
  for (; static_cast<std::uint64_t>(arguments.stride) < node_leaves; arguments.stride *= 2) {
    merge_leaves(*stream_, arguments);
  }
  const std::uint64_t bytes = 8 * (layout_.statistics() + layout_.comoments());
  stream_->copy_rows_to_host(numbers, nodes_, bytes, bytes * node_leaves,
                             (count + node - 1) / node);
}

std::vector<float> draw_design(const Plan& plan, std::uint64_t replicate, const Options& options) {
  CudaWorker worker(
      plan, usable_devices().front().number, options, [](const std::string&) {},
      std::make_shared<StreamPool>());
  return worker.batch().design(replicate);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
