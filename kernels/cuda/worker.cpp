// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/worker.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "kernels/cuda/kernels.h"

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

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

}  // namespace

CudaWorker::CudaWorker(const Plan& plan, int device, const Options& options, const Note& note,
                       std::shared_ptr<StreamPool> streams)
    : plan_(plan),
      device_(device),
      streams_(std::move(streams)),
      stream_((use_device(device), streams_->take(device))),
      layout_(plan.layout()),
      fallback_queries_(options.fallback_queries),
      launch_(plan_launch(plan, options.limits)),
      constants_(plan, launch_, *stream_),
      segment_replicates_(segment_of(layout_, options.statistics_bytes)),
      batch_(plan_, launch_, constants_, *stream_) {
  allocate(options.batch_replicates > 0 ? options.batch_replicates : batch_.good_replicates(),
           note);
}

/// Takes the memory of a segment, and of a batch of `wanted` replicates or a half, a quarter ... of
/// them.
void CudaWorker::allocate(std::int64_t wanted, const Note& note) {
  const std::string device = "cuda device " + std::to_string(device_);
  const auto segment = static_cast<std::uint64_t>(segment_replicates_);
  statistics_ = Memory(8 * segment * layout_.statistics());
  nodes_ = Memory(8 * segment / leaf_replicates * (layout_.statistics() + layout_.comoments()));
  windows_ = Memory(8 * window_counters * segment);
  const std::int64_t largest = std::min<std::int64_t>(wanted, segment_replicates_);
  std::int64_t replicates = largest;
  bool enough = !statistics_.empty() && !nodes_.empty() && !windows_.empty();
  // The smallest batch is tried however little it leaves.
  while (enough && !(batch_.allocate(replicates) &&
                     (replicates == largest || replicates == 1 || free_memory() >= reserve))) {
    batch_.release();
    enough = replicates > 1;
    replicates /= 2;
  }
  if (!enough) {
    throw DeviceError(device + ": out of memory: " + mebibytes(batch_.bytes(1)) +
                      " needed for the smallest batch, " + mebibytes(free_memory()) +
                      " free - lower data.n or the number of queries, or use --backend cpu");
  }
  if (replicates < largest) {
    note(device + ": out of memory for batches of " + std::to_string(largest) +
         " replicates, continues with " + std::to_string(replicates) + " (same results)");
  }
}

void CudaWorker::run(const Block& block, std::span<Moments> out) {
  use_device(device_);
  // A node larger than a segment is merged here from the nodes of several.
  const auto segment = static_cast<std::uint64_t>(segment_replicates_);
  const auto node = std::min(static_cast<std::uint64_t>(block.node), segment);
  std::vector<Moments> nodes;
  for (std::uint64_t done = 0; done < block.count; done += segment) {
    run_segment(block.first + done, std::min(segment, block.count - done), node, nodes);
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

  std::vector<unsigned long long> counts(window_counters * nodes);
  stream_->copy_to_host(counts.data(), windows_.as<void>(), 8 * window_counters * nodes);
  const std::size_t first_out = out.size();
  out.resize(first_out + nodes);
  const std::span<Moments> moments = std::span(out).subspan(first_out);
  if (node == 1) {
    copy_replicates(moments);
  } else {
    copy_nodes(count, node, moments);
  }
  for (std::uint64_t i = 0; i < nodes; ++i) {
    moments[i].count = std::min(node, count - i * node);
    const unsigned long long* of_node = &counts[window_counters * i];
    moments[i].windows = {.empty = of_node[0], .narrow = of_node[1]};
    if (fallback_queries_ != nullptr) *fallback_queries_ += of_node[2];
  }
}

void CudaWorker::clear_windows(std::uint64_t nodes) {
  stream_->clear(windows_.as<void>(), 8 * window_counters * nodes);
}

WindowCounters CudaWorker::windows(std::uint64_t done, std::uint64_t node) const {
  return {.counts = windows_.as<unsigned long long>(),
          .first = static_cast<std::int64_t>(done),
          .node_replicates = static_cast<int>(node)};
}

void CudaWorker::take_statistics(std::int64_t count, const WindowCounters& counters) {
  const double unit = constants_.noise_unit;
  const Merge& merge = plan_.mechanism.merge;
  const double of_token = merge.weight(merge.stride) * merge.group_weight();
  const double noise_factor =
      has_constant_noise(plan_)
          ? std::visit([](const auto& noise) { return noise.sd * noise.sd; }, plan_.noise) *
                of_token
          : unit * unit;
  const auto done = static_cast<std::size_t>(counters.first);
  statistics(*stream_, {.totals = launch_.totals,
                        .layout = layout_,
                        .sums = batch_.totals(),
                        .head_weights = constants_.head_weights.data(),
                        .centre = constants_.token_centre,
                        .noise_factor = noise_factor,
                        .statistics = statistics_.as<double>() + done * layout_.statistics(),
                        .replicates = count});
}

MomentArguments CudaWorker::take_leaves(std::uint64_t count) {
  const MomentArguments arguments = {
      .queries = layout_.queries,
      .components = static_cast<int>(layout_.components()),
      .pairs = static_cast<int>(layout_.pairs()),
      .per_query = static_cast<int>(layout_.per_query()),
      .pairwise = layout_.pairwise(),
      .statistics = statistics_.as<double>(),
      .nodes = nodes_.as<double>(),
      .leaves = static_cast<std::int64_t>((count + leaf_replicates - 1) / leaf_replicates),
      .replicates = static_cast<std::int64_t>(count)};
  leaves(*stream_, arguments);
  return arguments;
}

void CudaWorker::copy_replicates(std::span<Moments> out) {
  const std::size_t size = layout_.statistics();
  std::vector<double> all(out.size() * size);
  stream_->copy_to_host(all.data(), statistics_.as<double>(), 8 * all.size());
  stream_->synchronise();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double* from = &all[i * size];
    out[i].mean.assign(from, from + size);
    out[i].comoment.assign(layout_.comoments(), 0.0);
  }
}

void CudaWorker::copy_nodes(std::uint64_t count, std::uint64_t node, std::span<Moments> out) {
  const std::size_t queries = static_cast<std::size_t>(layout_.queries);
  const std::size_t per_query = layout_.per_query();
  const std::size_t pairs = layout_.pairs();
  MomentArguments arguments = take_leaves(count);
  const std::uint64_t node_leaves = node / leaf_replicates;
  for (; static_cast<std::uint64_t>(arguments.stride) < node_leaves; arguments.stride *= 2) {
    merge_leaves(*stream_, arguments);
  }
  const std::size_t size = queries * (per_query + pairs);
  std::vector<double> numbers(size);
  for (std::size_t i = 0; i < out.size(); ++i) {
    stream_->copy_to_host(numbers.data(), nodes_.as<double>() + i * node_leaves * size, 8 * size);
    stream_->synchronise();
    out[i].mean.resize(layout_.statistics());
    out[i].comoment.resize(layout_.comoments());
    for (std::size_t q = 0; q < queries; ++q) {
      const double* from = &numbers[q * (per_query + pairs)];
      std::copy_n(from, per_query, &out[i].mean[q * per_query]);
      std::copy_n(from + per_query, pairs, &out[i].comoment[q * pairs]);
    }
  }
}

std::vector<float> draw_design(const Plan& plan, std::uint64_t replicate, const Options& options) {
  CudaWorker worker(
      plan, usable_devices().front().number, options, [](const std::string&) {},
      std::make_shared<StreamPool>());
  return worker.batch().design(replicate);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
