// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/head_gradients.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/sizes.h"
#include "kernels/learning/units.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Maximum sums of panels of keys that are kept at a time, unless one panel has more.
constexpr std::int64_t max_partials = std::int64_t{1} << 25;
/// Coordinates of the training set that are transposed and copied at a time: a cache line.
constexpr std::size_t copied_rows = 16;

template <class Integer>
Integer divide_rounding_up(Integer a, Integer b) {
  return (a + b - 1) / b;
}

/// An array on the device that grows.
template <class T>
class Array {
 public:
  /// Makes room for `size` numbers; the content is lost.
  void reserve(std::int64_t size, int device) {
    if (size <= size_) return;
    // The old array first, so that both are never needed together.
    memory_ = {};
    size_ = 0;
    const std::uint64_t bytes = static_cast<std::uint64_t>(size) * sizeof(T);
    memory_ = Memory(bytes);
    if (memory_.empty()) {
      throw DeviceError("cuda device " + std::to_string(device) + ": out of memory: an array of " +
                        std::to_string(bytes >> 20) + " MiB for a fit does not fit into the " +
                        std::to_string(free_memory() >> 20) +
                        " MiB that are free - lower data.n or the number of heads, or use "
                        "--backend cpu");
    }
    size_ = size;
  }
  T* data() const { return memory_.template as<T>(); }

  /// Makes room for `values` and copies them; they must stay until the stream is synchronised.
  void copy(Stream& stream, const std::vector<T>& values, int device) {
    reserve(static_cast<std::int64_t>(values.size()), device);
    stream.copy_to_device(data(), values.data(), values.size() * sizeof(T));
  }

 private:
  Memory memory_;
  std::int64_t size_ = 0;
};

class CudaGradients : public HeadGradients {
 public:
  CudaGradients(const KernelLaw& kernel, int device, const Options& options,
                std::shared_ptr<StreamPool> streams)
      : device_(device),
        units_(kernel),
        wanted_blocks_(options.fit_blocks),
        streams_(std::move(streams)) {
    a_.distances = units_.norm_coefficient != 0;
    a_.key_factor = units_.key_factor;
    a_.query_factor = units_.query_factor;
    use_device(device);
    streams_->release_idle(device);
    stream_ = streams_->take(device);
    stream_->start_products();
  }
  ~CudaGradients() override { streams_->give_back(device_, std::move(stream_)); }
  CudaGradients(const CudaGradients&) = delete;
  CudaGradients& operator=(const CudaGradients&) = delete;

  void load(const FitPoints& points, std::size_t count) override {
    use_device(device_);
    a_.d = points.d;
    a_.n = static_cast<std::int64_t>(count);
    a_.padded_n = divide_rounding_up<std::int64_t>(a_.n, fit_tile_keys) * fit_tile_keys;
    const auto padded = static_cast<std::size_t>(a_.padded_n);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += points.y[i];
    centre_ = sum / static_cast<double>(count);
    std::vector<float> values(padded);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(points.y[i] - centre_);
    values_.copy(*stream_, values, device_);

    const auto d = static_cast<std::size_t>(points.d);
    x_centre_ = headlab::centre_of(points, count);
    x_.reserve(a_.d * a_.padded_n, device_);
    std::vector<float> rows(std::min(copied_rows, d) * padded);
    for (std::size_t first = 0; first < d; first += copied_rows) {
      const std::size_t some = std::min(copied_rows, d - first);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t c = 0; c < some; ++c) {
          rows[c * padded + i] = points.x[i * d + first + c] - x_centre_[first + c];
        }
      }
      stream_->copy_to_device(x_.data() + first * padded, rows.data(),
                              some * padded * sizeof(float));
      stream_->synchronise();
    }
    a_.values = values_.data();
    a_.x = x_.data();
  }

  void estimate(const HeadParameters& heads, const FitQueries& queries,
                std::span<double> f) override {
    use_device(device_);
    resize(heads, queries);
    const auto count = static_cast<std::size_t>(a_.queries);
    const auto padded = static_cast<std::size_t>(a_.padded_queries);
    const auto d = static_cast<std::size_t>(a_.d);
    const std::vector<float> key_rows = rows_of(heads.keys, units_.key_unit);
    const std::vector<float> query_rows =
        rows_of(a_.separate ? heads.queries : heads.keys, units_.query_unit);
    std::vector<float> points(d * padded);
    for (std::size_t q = 0; q < count; ++q) {
      for (std::size_t c = 0; c < d; ++c) {
        points[c * padded + q] = queries.x[q * d + c] - (a_.distances ? x_centre_[c] : 0.0f);
      }
    }
    std::vector<std::int64_t> own(padded, -1);
    std::ranges::copy(queries.own, own.begin());

    key_rows_.copy(*stream_, key_rows, device_);
    query_rows_.copy(*stream_, query_rows, device_);
    query_points_.copy(*stream_, points, device_);
    own_.copy(*stream_, own, device_);
    a_.query_points = query_points_.data();
    a_.own = own_.data();
    const int rows = a_.heads * a_.k;
    stream_->multiply(key_rows_.data(), x_.data(), keys_.data(), rows, a_.d, a_.padded_n);
    stream_->multiply(query_rows_.data(), query_points_.data(), projected_.data(), rows, a_.d,
                      a_.padded_queries);
    estimate_heads(*stream_, a_);

    std::vector<double> estimates(static_cast<std::size_t>(a_.heads) * padded);
    stream_->copy_to_host(estimates.data(), a_.estimates, estimates.size() * sizeof(double));
    stream_->synchronise();
    const auto columns = static_cast<std::size_t>(a_.heads);
    for (std::size_t q = 0; q < count; ++q) {
      for (std::size_t h = 0; h < columns; ++h) {
        f[q * columns + h] = centre_ + estimates[h * padded + q];
      }
    }
  }

  void gradient(std::span<const double> s, HeadParameters& out) override {
    use_device(device_);
    const auto heads = static_cast<std::size_t>(a_.heads);
    const auto padded = static_cast<std::size_t>(a_.padded_queries);
    std::vector<float> scales(heads * padded);
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t q = 0; q < static_cast<std::size_t>(a_.queries); ++q) {
        scales[h * padded + q] = static_cast<float>(s[q * heads + h]);
      }
    }
    scales_.copy(*stream_, scales, device_);
    const std::int64_t rows = std::int64_t{a_.heads} * a_.k;
    const std::int64_t of_queries = rows * a_.padded_queries;
    a_.scales = scales_.data();
    a_.pulls = reserved(pulls_, rows * a_.padded_n);
    a_.query_partials = reserved(query_partials_, of_queries * a_.of_gradient.count);
    a_.query_sums = reserved(query_sums_, of_queries);
    a_.key_partials = reserved(key_partials_, rows * a_.d * a_.of_product.count);
    a_.of_keys = reserved(of_keys_, rows * a_.d);
    if (a_.separate) a_.of_queries = reserved(of_queries_, rows * a_.d);
    gradient_of_heads(*stream_, a_);

    const auto size = static_cast<std::size_t>(rows * a_.d);
    out.heads = a_.heads;
    out.d = a_.d;
    out.k = a_.k;
    out.keys.resize(size);
    out.queries.resize(a_.separate ? size : 0);
    out.weights.assign(heads, 0.0);
    stream_->copy_to_host(out.keys.data(), a_.of_keys, size * sizeof(double));
    if (a_.separate) {
      stream_->copy_to_host(out.queries.data(), a_.of_queries, size * sizeof(double));
    }
    stream_->synchronise();
  }

 private:
  /// Takes the sizes of heads and queries, and makes room for the results of estimate().
  void resize(const HeadParameters& heads, const FitQueries& queries) {
    a_.heads = heads.heads;
    a_.k = heads.k;
    count_of("numbers of projections (heads, d_k, d)",
             {static_cast<std::uint64_t>(a_.heads), static_cast<std::uint64_t>(a_.k),
              static_cast<std::uint64_t>(a_.d)});
    a_.separate = !heads.queries.empty();
    a_.queries = count_of("queries of a step", {queries.size()});
    const int query_tiles = divide_rounding_up(a_.queries, fit_tile_queries);
    a_.padded_queries = query_tiles * fit_tile_queries;
    const std::int64_t rows = std::int64_t{a_.heads} * a_.k;
    const std::int64_t of_heads = std::int64_t{a_.heads} * a_.padded_queries;
    const std::int64_t products = std::int64_t{divide_rounding_up(a_.d, fit_tile_coordinates)} *
                                  divide_rounding_up(a_.k, fit_tile_coordinates);
    a_.of_estimate = panels_for(std::int64_t{a_.heads} * query_tiles, of_heads);
    a_.of_gradient = panels_for(a_.heads, rows * a_.padded_queries);
    a_.of_product = panels_for(a_.heads * products, rows * a_.d);
    a_.keys = reserved(keys_, rows * a_.padded_n);
    a_.projected = reserved(projected_, rows * a_.padded_queries);
    a_.windows = reserved(windows_, of_heads * a_.of_estimate.count);
    a_.normalisers = reserved(normalisers_, of_heads);
    a_.estimates = reserved(estimates_, of_heads);
  }

  /// Panels of keys for a kernel that has `blocks` thread blocks per panel and writes `numbers`
  /// sums per panel. Depends on sizes only, and so do the bits.
  KeyPanels panels_for(std::int64_t blocks, std::int64_t numbers) const {
    const std::int64_t tiles = a_.padded_n / fit_tile_keys;
    const std::int64_t wanted = std::clamp<std::int64_t>(
        std::min(wanted_blocks_ / blocks, max_partials / numbers), 1, tiles);
    KeyPanels panels;
    panels.tiles = divide_rounding_up(tiles, wanted);
    panels.count = divide_rounding_up(tiles, panels.tiles);
    return panels;
  }

  template <class T>
  T* reserved(Array<T>& array, std::int64_t size) const {
    array.reserve(size, device_);
    return array.data();
  }

  /// Matrices [H][d][k] as rows [H][k][d] in a unit.
  std::vector<float> rows_of(const std::vector<double>& matrices, double unit) const {
    const auto d = static_cast<std::size_t>(a_.d);
    const auto k = static_cast<std::size_t>(a_.k);
    std::vector<float> rows(matrices.size());
    for (std::size_t h = 0; h < static_cast<std::size_t>(a_.heads); ++h) {
      for (std::size_t c = 0; c < d; ++c) {
        for (std::size_t j = 0; j < k; ++j) {
          rows[(h * k + j) * d + c] = static_cast<float>(matrices[(h * d + c) * k + j] * unit);
        }
      }
    }
    return rows;
  }

  int device_;
  FitUnits units_;
  std::int64_t wanted_blocks_;
  std::shared_ptr<StreamPool> streams_;
  std::unique_ptr<Stream> stream_;
  double centre_ = 0;  ///< subtracted from the values
  std::vector<float>
      x_centre_;    ///< [d], subtracted from the points; from the queries for distances
  FitArguments a_;  ///< of the last estimate

  Array<float> x_, values_;
  Array<float> key_rows_, query_rows_;  ///< [H][k][d]
  Array<float> keys_, query_points_, projected_, scales_;
  Array<std::int64_t> own_;
  Array<FitWindow> windows_;
  Array<FitNormaliser> normalisers_;
  Array<float> pulls_;
  Array<double> estimates_, query_partials_, query_sums_, key_partials_, of_keys_, of_queries_;
};

}  // namespace

std::unique_ptr<HeadGradients> make_cuda_gradients(const KernelLaw& kernel, int device,
                                                   const Options& options,
                                                   std::shared_ptr<StreamPool> streams) {
  return std::make_unique<CudaGradients>(kernel, device, options, std::move(streams));
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
