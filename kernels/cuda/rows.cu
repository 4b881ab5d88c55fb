// SPDX-License-Identifier: Apache-2.0
// Selections and counts over all rows of a batch, by Thrust; a row is a query of a replicate. On
// the host, where the tests run it, the same calls take Thrust's sequential system.
//
// Both are scans that leave their totals on the device. thrust::copy_if and thrust::reduce_by_key
// return the end of what they wrote, for which the host waits, and the stream would run empty once
// a batch. With the scan of the flags a row knows its place in the list, and whoever reads the list
// finds its length after the last row. Rows of a node follow one another, so that its counts are
// differences of a scan, without an atomic addition per window. Sums are of integers and lists are
// in order of the rows, so neither depends on the size of a batch or on the machine.
//
// Thrust's temporary memory is a part of the batch's own, as much as the scan asks for. Where it
// asks for more in the end, the stream takes that for the batch.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/system_error.h>
#include <thrust/transform.h>
#include <utility>
#if defined(__CUDACC__)
#include <cub/device/device_scan.cuh>
#endif

#include "kernels/cuda/kernels.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Largest safe sum of kernel values, and of their squares, far from overflow; see
/// kernels/statistics/safe_sums.h for the smallest.
constexpr double max_safe_sum = 0x1p+90;
constexpr double max_safe_square = 0x1p+120;

/// What a row adds to the counters of its node.
struct RowCounts {
  std::uint32_t empty = 0, narrow = 0, fallback = 0;
};

constexpr std::int64_t whole(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/// Takes memory from a piece that it does not own, and where that is used up from the stream; takes
/// none back.
class Scratch {
 public:
  using value_type = char;

  Scratch(Stream& stream, const RowScratch& scratch)
      : stream_(stream), at_(static_cast<char*>(scratch.memory)), end_(at_ + scratch.bytes) {}

  char* allocate(std::ptrdiff_t bytes) {
    const std::ptrdiff_t taken = whole(bytes);
    if (taken <= end_ - at_) return std::exchange(at_, at_ + taken);
    Memory more(static_cast<std::uint64_t>(taken));
    if (more.empty()) {
      throw OutOfMemory("cuda: out of memory for a selection of rows (" + std::to_string(taken) +
                        " bytes)");
    }
    return stream_.unplanned.emplace_back(std::move(more)).as<char>();
  }
  void deallocate(char*, std::size_t) {}

 private:
  Stream& stream_;
  char* at_;
  char* end_;
};

/// Temporary memory of Thrust's inclusive scan [bytes]: what its implementation answers when it is
/// given none.
template <class In, class Out, class Add>
std::int64_t scan_bytes(In in, Out out, Add sum, std::int64_t rows) {
#if defined(__CUDACC__)
  std::size_t bytes = 0;
  if (cub::DeviceScan::InclusiveScan(nullptr, bytes, in, out, sum, static_cast<int>(rows)) !=
      cudaSuccess) {
    throw DeviceError("cuda: a scan of " + std::to_string(rows) + " rows cannot be planned");
  }
  return static_cast<std::int64_t>(bytes);
#else
  static_cast<void>(in), static_cast<void>(out), static_cast<void>(sum), static_cast<void>(rows);
  return 0;
#endif
}

/// Where and how Thrust's algorithms run: behind the work of the stream, not waiting for them.
auto policy(Stream& stream, Scratch& scratch) {
#if defined(__CUDACC__)
  return thrust::cuda::par_nosync(scratch).on(static_cast<cudaStream_t>(stream.handle()));
#else
  static_cast<void>(stream);
  return thrust::cpp::par(scratch);
#endif
}

/// Calls Thrust; a failed launch is an error of the device.
template <class Call>
void run_thrust(Stream& stream, const char* name, const Call& call) {
  try {
    call();
  } catch (const thrust::system_error& error) {
    throw DeviceError(std::string("cuda: ") + name + ": " + error.what());
  }
  stream.check_launch(name);
}

thrust::counting_iterator<std::int64_t> row(std::int64_t number) {
  return thrust::counting_iterator<std::int64_t>(number);
}

/// 1 where the sums of a row cannot be used as they are: with bounds, where a window may be narrow.
struct IsUnsafe {
  TotalsLayout layout;
  const double* totals;
  double min_sum;
  bool bounds_squares;

  HEADLAB_HD std::uint32_t operator()(std::int64_t row) const {
    const double* sums = totals + row * layout.size();
    for (int h = 0; h < layout.heads; ++h) {
      const double sum = sums[layout.weight(h)];
      const double square = sums[layout.square(h, h)];
      // NaN fails each of these.
      if (!(sum >= min_sum && sum <= max_safe_sum)) return 1;
      if (bounds_squares ? !(sum * sum >= 2 * square) : !(square > 0 && square < max_safe_square)) {
        return 1;
      }
    }
    return 0;
  }
};

struct OneLess {
  HEADLAB_HD std::uint32_t operator()(std::uint32_t x) const { return x - 1; }
};

struct CountRow {
  TotalsLayout layout;
  const double* totals;
  const std::uint32_t* taken;

  HEADLAB_HD RowCounts operator()(std::int64_t row) const {
    const double* sums = totals + row * layout.size();
    RowCounts counts;
    for (int h = 0; h < layout.heads; ++h) {
      const double weight = sums[layout.weight(h)];
      counts.narrow += weight * weight < 2 * sums[layout.square(h, h)] ? 1 : 0;
    }
    counts.fallback = taken[row] != 0 ? 1 : 0;
    counts.empty = taken[row] - counts.fallback;
    return counts;
  }
};

auto counts_of_rows(const CountRow& count) {
  return thrust::make_transform_iterator(row(0), count);
}

struct AddCounts {
  HEADLAB_HD RowCounts operator()(const RowCounts& a, const RowCounts& b) const {
    return {a.empty + b.empty, a.narrow + b.narrow, a.fallback + b.fallback};
  }
};

/// Adds the rows of a batch that belong to a node to its counters.
struct AddNode {
  const RowCounts* sums;  ///< of the rows up to and with each
  WindowCounters windows;
  std::int64_t replicates;
  int queries;

  HEADLAB_HD RowCounts before(std::int64_t replicate) const {
    const std::int64_t within = replicate < 0 ? 0 : replicate > replicates ? replicates : replicate;
    return within == 0 ? RowCounts() : sums[within * queries - 1];
  }
  HEADLAB_HD void operator()(std::int64_t node) const {
    const std::int64_t first = node * windows.node_replicates - windows.first;
    const RowCounts from = before(first);
    const RowCounts to = before(first + windows.node_replicates);
    unsigned long long* counts = windows.counts + node * window_counters;
    counts[0] += to.empty - from.empty;
    counts[1] += to.narrow - from.narrow;
    counts[2] += to.fallback - from.fallback;
  }
};

}  // namespace

std::int64_t row_scratch_bytes(std::int64_t rows) {
  std::uint32_t* flags = nullptr;
  RowCounts* sums = nullptr;
  const auto list = 2 * whole(rows * static_cast<std::int64_t>(sizeof(std::uint32_t))) +
                    whole(scan_bytes(flags, flags, thrust::plus<>(), rows));
  const auto windows = whole(rows * static_cast<std::int64_t>(sizeof(RowCounts))) +
                       whole(scan_bytes(counts_of_rows({}), sums, AddCounts(), rows));
  return std::max(list, windows);
}

RowList list_unsafe(Stream& stream, const FallbackArguments& a, std::int64_t rows) {
  stream.unplanned.clear();
  Scratch scratch(stream, a.scratch);
  const auto bytes = rows * static_cast<std::int64_t>(sizeof(std::uint32_t));
  auto* ends = reinterpret_cast<std::uint32_t*>(scratch.allocate(bytes));
  auto* list = reinterpret_cast<std::uint32_t*>(scratch.allocate(bytes));
  const IsUnsafe is_unsafe = {a.weigh.totals, a.totals, a.min_sum, a.weigh.bounds_squares};
  run_thrust(stream, "list of rows", [&] {
    const auto where = policy(stream, scratch);
    thrust::transform(where, row(0), row(rows), a.taken, is_unsafe);
    thrust::inclusive_scan(where, a.taken, a.taken + rows, ends, thrust::plus<>());
    thrust::scatter_if(where, row(0), row(rows), thrust::make_transform_iterator(ends, OneLess()),
                       a.taken, list);
  });
  return {.rows = list, .counts = ends, .looked_at = rows};
}

void count_windows(Stream& stream, const FallbackArguments& a, std::int64_t replicates) {
  Scratch scratch(stream, a.scratch);
  const int queries = a.weigh.queries.count;
  const std::int64_t rows = replicates * queries;
  auto* sums = reinterpret_cast<RowCounts*>(
      scratch.allocate(rows * static_cast<std::int64_t>(sizeof(RowCounts))));
  const std::int64_t node = a.windows.node_replicates;
  const std::int64_t first = a.windows.first / node;
  const std::int64_t last = (a.windows.first + replicates - 1) / node;
  run_thrust(stream, "counts of windows", [&] {
    const auto where = policy(stream, scratch);
    const auto counts = counts_of_rows({a.weigh.totals, a.totals, a.taken});
    thrust::inclusive_scan(where, counts, counts + rows, sums, AddCounts());
    thrust::for_each(where, row(first), row(last + 1),
                     AddNode{sums, a.windows, replicates, queries});
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
