// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/worker.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/runtime.h"
#include "kernels/design_point.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Kernel values of a batch, about: a fraction of a millisecond of work, to which a dozen launches
/// add little. Not timed on a GPU yet.
constexpr std::int64_t batch_weights = std::int64_t{1} << 29;
/// Memory for the points and keys of a batch, where its size is free [bytes].
constexpr std::int64_t batch_memory = std::int64_t{1} << 29;
/// What a smaller batch leaves for what the driver loads when it is first used [bytes].
constexpr std::uint64_t reserve = 256 << 20;

/// Data on the device, copied there once.
template <class T>
class Constant {
 public:
  Constant() = default;
  Constant(Stream& stream, const std::vector<T>& values)
      : memory_(std::max<std::size_t>(1, values.size()) * sizeof(T)) {
    if (memory_.empty()) {
      throw DeviceError("cuda: out of memory for the constants of a scenario (" +
                        std::to_string(values.size() * sizeof(T)) + " bytes)");
    }
    if (!values.empty()) {
      stream.copy_to_device(memory_.as<T>(), values.data(), values.size() * sizeof(T));
    }
  }
  const T* data() const { return memory_.as<T>(); }

 private:
  Memory memory_;
};

template <class T, class Number>
std::vector<T> converted(const std::vector<Number>& values) {
  std::vector<T> result;
  for (const Number value : values) result.push_back(static_cast<T>(value));
  return result;
}

/// The first points of replicate 0 and m there: what is typical of the others.
struct FirstPoints {
  std::vector<std::vector<float>> x;
  std::vector<float> m;
};
FirstPoints first_points(const Plan& plan) {
  FirstPoints points;
  const std::uint64_t seed = plan.fixed_design_seed.value_or(plan.seed);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(plan.n, 32); ++i) {
    std::vector<float> x(static_cast<std::size_t>(point_buffer(plan.d)));
    const std::uint32_t row =
        draw_design_point(plan.design, plan.table.rounded(), plan.d, seed, plan.streams.design,
                          plan.streams.design_choice, 0, i, x.data());
    points.m.push_back(std::visit(
        [&](const auto& m) {
          return static_cast<float>(m(plan.table.rounded(), x.data(), 1, row));
        },
        plan.regression));
    points.x.push_back(std::move(x));
  }
  return points;
}

template <class Number>
Number median(std::vector<Number> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Projections in the units of the keys [H padded_k][d], rows of padding zero.
std::vector<float> key_projections(const Plan& plan, int padded_k) {
  const double unit = key_unit(plan.kernel);
  const auto d = static_cast<std::size_t>(plan.d);
  const auto k = static_cast<std::size_t>(plan.k);
  std::vector<float> w(static_cast<std::size_t>(plan.heads * padded_k) * d);
  for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t c = 0; c < d; ++c) {
        w[(h * static_cast<std::size_t>(padded_k) + j) * d + c] =
            static_cast<float>(plan.projections[(h * d + c) * k + j] * unit);
      }
    }
  }
  return w;
}

/// The arrays of struct Queries.
struct QueryArrays {
  int padded = 1;
  std::vector<float> points, products, shifts;
};
QueryArrays query_arrays(const Plan& plan, const Shape& shape, std::optional<double> norm_share,
                         const FirstPoints& first, const std::vector<float>& projections,
                         const std::vector<double>& centre) {
  QueryArrays arrays;
  const auto heads = static_cast<std::size_t>(plan.heads);
  const auto k = static_cast<std::size_t>(plan.k);
  const auto padded_k = static_cast<std::size_t>(shape.padded_k);
  const auto d = static_cast<std::size_t>(plan.d);
  const auto count = static_cast<std::size_t>(plan.queries);
  // A group of queries may reach past the last one.
  const int largest = std::max(shape.weigh.block_queries * shape.weigh.query_groups,
                               shape.ensemble.block_queries * shape.ensemble.query_groups);
  arrays.padded = std::max(plan.queries, largest);
  const auto padded = static_cast<std::size_t>(arrays.padded);
  arrays.points.resize(heads * padded_k * padded);
  arrays.shifts.resize(heads * padded);
  const std::vector<double> projected = projected_queries(plan);
  for (std::size_t h = 0; h < heads; ++h) {
    // Some keys of the head, to tell how large its products are.
    std::vector<std::vector<double>> keys(first.x.size(), std::vector<double>(k));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      for (std::size_t j = 0; j < k; ++j) {
        for (std::size_t c = 0; c < d; ++c) {
          keys[i][j] += static_cast<double>(projections[(h * padded_k + j) * d + c]) *
                        (static_cast<double>(first.x[i][c]) - centre[c]);
        }
      }
    }
    for (std::size_t q = 0; q < count; ++q) {
      double norm2 = 0;
      std::vector<double> product(keys.size());
      for (std::size_t j = 0; j < k; ++j) {
        const double x = projected[(h * k + j) * count + q];
        arrays.points[(h * padded_k + j) * padded + q] = static_cast<float>(x);
        norm2 += x * x;
        for (std::size_t i = 0; i < keys.size(); ++i) product[i] += 2 * x * keys[i][j];
      }
      // Gaussian: the exponent becomes -|query - key|^2. Softmax: the largest becomes about 0.
      double shift = 0;
      if (norm_share && *norm_share != 0) shift = *norm_share * norm2;
      if (norm_share && *norm_share == 0) shift = -*std::ranges::max_element(product);
      arrays.shifts[h * padded + q] = static_cast<float>(shift);
    }
  }
  arrays.products = arrays.points;
  for (float& x : arrays.products) x *= 2;
  return arrays;
}

/// Arrays of a batch on the device.
struct Batch {
  std::int64_t replicates = 0;
  Memory x, keys, values, scales, partials, totals, robust;
};

class CudaWorker : public Worker {
 public:
  CudaWorker(const Plan& plan, int device, const Options& options, const Note& note,
             std::shared_ptr<StreamPool> streams)
      : plan_(plan),
        device_(device),
        streams_(std::move(streams)),
        layout_(plan.layout()),
        robust_queries_(options.robust_queries) {
    use_device(device);
    stream_ = streams_->take(device);
    shape_ = choose_shape(plan, options.shape);
    norm_share_ = norm_share_of(plan.kernel);
    const FirstPoints first = first_points(plan);
    value_centre_ = median(first.m);
    copy_constants(first);
    unit_replicates_ = leaf_replicates;
    const std::uint64_t leaf_bytes = 8 * leaf_replicates * layout_.statistics();
    while (2 * leaf_bytes * static_cast<std::uint64_t>(unit_replicates_ / leaf_replicates) <=
               options.statistics_bytes &&
           unit_replicates_ < 1 << 16) {
      unit_replicates_ *= 2;
    }
    allocate(options.batch_replicates > 0 ? options.batch_replicates : good_batch(), note);
  }
  ~CudaWorker() override { streams_->give_back(device_, std::move(stream_)); }
  CudaWorker(const CudaWorker&) = delete;
  CudaWorker& operator=(const CudaWorker&) = delete;

  void run(const Block& block, std::span<Moments> out) override {
    use_device(device_);
    // A node larger than what is kept on the device is merged here from its parts.
    const auto node = static_cast<std::uint64_t>(block.node);
    const auto unit = std::min<std::uint64_t>(node, unit_replicates_);
    std::vector<Moments> units;
    for (std::uint64_t done = 0; done < block.count; done += unit_replicates_) {
      const std::uint64_t count = std::min<std::uint64_t>(unit_replicates_, block.count - done);
      piece(block.first + done, count, unit, units);
    }
    const std::size_t per_node = node / unit;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t left = std::min(per_node, units.size() - i * per_node);
      out[i] = merge_siblings(layout_, std::span(units).subspan(i * per_node, left));
    }
  }

  /// x [n][d] of one replicate, for tests.
  std::vector<float> design(std::uint64_t replicate) {
    draw(*stream_, draw_arguments(replicate, 1));
    const auto n = static_cast<std::size_t>(plan_.n);
    const auto d = static_cast<std::size_t>(plan_.d);
    std::vector<float> row(n);
    std::vector<float> x(n * d);
    for (std::size_t c = 0; c < d; ++c) {
      stream_->copy_to_host(
          row.data(), batch_.x.as<float>() + static_cast<std::int64_t>(c) * shape_.slice_points,
          n * sizeof(float));
      stream_->synchronise();
      for (std::size_t i = 0; i < n; ++i) x[i * d + c] = row[i];
    }
    return x;
  }

  KernelTimes time(int repeats) {
    use_device(device_);
    const std::int64_t count = batch_.replicates;
    const WindowCounters windows = {.counts = windows_.as<unsigned long long>(),
                                    .node_replicates = unit_replicates_};
    stream_->clear(windows_.as<void>(), 8 * window_counters);
    auto moments = [&] {
      totals(0, count, windows, {.sum = true});
      statistics(*stream_, statistics_arguments(0, count, windows));
      leaves(*stream_, moment_arguments(static_cast<std::uint64_t>(count)));
    };
    totals(0, count, windows);
    moments();
    stream_->synchronise();
    return {
        .replicates = count,
        .weights =
            static_cast<double>(count) * static_cast<double>(plan_.n) * plan_.heads * plan_.queries,
        .draw = median_seconds(repeats, [&] { totals(0, count, windows, {.draw = true}); }),
        .project = median_seconds(repeats, [&] { totals(0, count, windows, {.project = true}); }),
        .weigh = median_seconds(repeats, [&] { totals(0, count, windows, {.weigh = true}); }),
        .moments = median_seconds(repeats, moments)};
  }

  std::uint64_t batch_bytes(std::int64_t replicates) const {
    const std::int64_t slices = slices_of(replicates);
    const auto points = static_cast<std::uint64_t>(slices * shape_.slice_points);
    const auto rows = static_cast<std::uint64_t>(replicates * plan_.queries);
    return points * 4 * (static_cast<std::uint64_t>(point_buffer(plan_.d) + key_rows()) + 2) +
           rows * (8 * static_cast<std::uint64_t>(partials_of_query() + shape_.totals.size()) + 4);
  }

 private:
  /// Median time of a step [s]. It is queued many times between two marks, so that what is measured
  /// is the device's time and not the host's.
  template <class Step>
  double median_seconds(int repeats, const Step& step) {
    constexpr int queued = 20;
    std::vector<double> seconds;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const Mark before(*stream_);
      for (int i = 0; i < queued; ++i) step();
      const Mark after(*stream_);
      seconds.push_back(after.seconds_since(before) / queued);
    }
    return median(std::move(seconds));
  }

  int key_rows() const { return plan_.heads * shape_.padded_k; }
  std::int64_t slices_of(std::int64_t replicates) const {
    return (replicates + shape_.slice_replicates - 1) / shape_.slice_replicates;
  }
  std::int64_t partials_of_query() const {
    return shape_.robust_only ? 0
                              : std::max(shape_.weigh.chunks * shape_.totals.row(),
                                         shape_.totals.ensemble ? shape_.ensemble.chunks : 0);
  }

  void copy_constants(const FirstPoints& first) {
    Stream& stream = *stream_;
    const std::vector<double> centre = centre_of(plan_);
    const std::vector<float> projections = key_projections(plan_, shape_.padded_k);
    const QueryArrays queries =
        query_arrays(plan_, shape_, norm_share_, first, projections, centre);
    const float* table = plan_.table.rounded();
    // Copies read these until the stream is synchronised.
    const std::vector<float> numbers(table, table + plan_.table.size());
    const std::vector<float> rounded_centre = converted<float>(centre);
    table_ = Constant<float>(stream, numbers);
    centre_ = Constant<float>(stream, rounded_centre);
    projections_ = Constant<float>(stream, projections);
    head_weights_ = Constant<double>(stream, plan_.head_weights);
    query_points_ = Constant<float>(stream, queries.points);
    query_products_ = Constant<float>(stream, queries.products);
    query_shifts_ = Constant<float>(stream, queries.shifts);
    queries_ = {.count = plan_.queries,
                .padded = queries.padded,
                .points = query_points_.data(),
                .products = query_products_.data(),
                .shifts = query_shifts_.data(),
                .weights = head_weights_.data()};
    stream.synchronise();
  }

  std::int64_t good_batch() const {
    const std::int64_t weights = shape_.padded_n * plan_.heads * plan_.queries;
    const std::int64_t bytes = 4 * shape_.padded_n * (point_buffer(plan_.d) + key_rows() + 2);
    return std::max<std::int64_t>(1, std::min(batch_weights / weights, batch_memory / bytes));
  }

  /// Takes memory for a batch of `wanted` replicates, or for a half, a quarter ... of them.
  void allocate(std::int64_t wanted, const Note& note) {
    const auto unit = static_cast<std::uint64_t>(unit_replicates_);
    const std::uint64_t leaves = unit / leaf_replicates;
    statistics_ = Memory(8 * unit * layout_.statistics());
    nodes_ = Memory(8 * leaves * (layout_.statistics() + layout_.comoments()));
    windows_ = Memory(8 * window_counters * unit);
    std::int64_t replicates = std::min<std::int64_t>(wanted, unit_replicates_);
    bool enough = !statistics_.empty() && !nodes_.empty() && !windows_.empty();
    const std::int64_t largest = replicates;
    while (enough && !try_allocate(replicates, replicates == largest)) {
      if (replicates == 1) {
        enough = false;
      } else {
        replicates /= 2;
      }
    }
    if (!enough) {
      throw DeviceError("cuda device " + std::to_string(device_) +
                        ": out of memory: " + std::to_string(batch_bytes(1) >> 20) +
                        " MiB needed for the smallest batch, " +
                        std::to_string(free_memory() >> 20) +
                        " MiB free - lower data.n or the number of queries, or use --backend cpu");
    }
    if (replicates < largest) {
      note("cuda device " + std::to_string(device_) + ": out of memory for batches of " +
           std::to_string(largest) + " replicates, going on with " + std::to_string(replicates) +
           " (same results)");
    }
  }

  bool try_allocate(std::int64_t replicates, bool first) {
    batch_ = {};
    const std::int64_t slices = slices_of(replicates);
    const auto points = static_cast<std::uint64_t>(slices * shape_.slice_points) * sizeof(float);
    const auto rows = static_cast<std::uint64_t>(replicates * plan_.queries);
    const auto totals = static_cast<std::uint64_t>(shape_.totals.size());
    auto take = [](Memory& memory, std::uint64_t bytes) {
      memory = Memory(std::max<std::uint64_t>(bytes, 16));
      return !memory.empty();
    };
    const bool all =
        take(batch_.x, points * static_cast<std::uint64_t>(point_buffer(plan_.d))) &&
        take(batch_.keys, points * static_cast<std::uint64_t>(key_rows())) &&
        take(batch_.values, points) && take(batch_.scales, points) &&
        take(batch_.partials, 8 * rows * static_cast<std::uint64_t>(partials_of_query())) &&
        take(batch_.totals, 8 * rows * totals) && take(batch_.robust, 4 * rows);
    // The smallest batch is tried however little it leaves.
    if (all && (first || replicates == 1 || free_memory() >= reserve)) {
      batch_.replicates = replicates;
      return true;
    }
    batch_ = {};
    return false;
  }

  Points points() const {
    return {.n = plan_.n,
            .padded_n = shape_.padded_n,
            .slice_replicates = shape_.slice_replicates,
            .slice_points = shape_.slice_points,
            .d = plan_.d,
            .draw_rows = point_buffer(plan_.d),
            .key_rows = key_rows(),
            .x = batch_.x.as<float>(),
            .keys = batch_.keys.as<float>(),
            .values = batch_.values.as<float>(),
            .scales = batch_.scales.as<float>()};
  }

  DrawArguments draw_arguments(std::uint64_t first, std::int64_t count) const {
    return {.points = points(),
            .seed = plan_.seed,
            .design_seed = plan_.fixed_design_seed.value_or(plan_.seed),
            .fixed_design = plan_.fixed_design_seed.has_value(),
            .design_purpose = plan_.streams.design,
            .choice_purpose = plan_.streams.design_choice,
            .noise_purpose = plan_.streams.noise,
            .draws_noise = plan_.estimator == Estimator::plain,
            .first_replicate = first,
            .replicates = count,
            .design = Choice<DesignSampler>(plan_.design),
            .regression = Choice<RegressionFunction>(plan_.regression),
            .noise = Choice<NoiseSampler>(plan_.noise),
            .table = table_.data(),
            .value_centre = value_centre_,
            .centre = centre_.data()};
  }

  WeighArguments weigh_arguments() const {
    const bool masks_only = shape_.form == Form::any;
    return {.points = points(),
            .queries = queries_,
            .tiling = shape_.weigh,
            .totals = shape_.totals,
            .padded_k = shape_.padded_k,
            .exponent = !norm_share_        ? Exponent::law
                        : *norm_share_ == 0 ? Exponent::product
                                            : Exponent::minus_distance,
            .norm_factor = masks_only ? 0.0f : static_cast<float>(norm_share_.value_or(0.0)),
            .kernel = Choice<KernelLaw>(plan_.kernel),
            .partials = batch_.partials.as<double>()};
  }

  /// What `totals` does; those who measure ask for one at a time.
  struct Steps {
    bool draw = false, project = false, weigh = false, sum = false;
  };

  /// Totals of one batch, from the draws on.
  void totals(std::uint64_t first, std::int64_t count, const WindowCounters& windows,
              const Steps& steps = {true, true, true, true}) {
    Stream& stream = *stream_;
    if (steps.draw) draw(stream, draw_arguments(first, count));
    const Points all = points();
    for (std::int64_t slice = 0; steps.project && slice < slices_of(count); ++slice) {
      stream.multiply(projections_.data(), all.x + slice * all.draw_rows * all.slice_points,
                      all.keys + slice * all.key_rows * all.slice_points, all.key_rows, all.d,
                      all.slice_points);
    }
    const TotalsLayout& layout = shape_.totals;
    const WeighArguments weigh = weigh_arguments();
    CollectArguments sums = {.partials = weigh.partials,
                             .chunks = shape_.weigh.chunks,
                             .queries = plan_.queries,
                             .row = layout.row(),
                             .count = layout.row(),
                             .totals = batch_.totals.as<double>(),
                             .size = layout.size(),
                             .rows = count * plan_.queries};
    if (!shape_.robust_only) {
      if (steps.weigh) weigh_all(weigh, count);
      if (steps.sum) collect(stream, sums);
      if (layout.scaled) {
        WeighArguments scaled = weigh;
        scaled.scaled = true;
        if (steps.weigh) weigh_all(scaled, count);
        sums.from = 2 * layout.heads;
        sums.count = layout.squares();
        sums.to = 2 * layout.heads + layout.squares();
        if (steps.sum) collect(stream, sums);
      }
    }
    if (steps.sum) {
      weigh_robust(stream,
                   {.weigh = weigh,
                    .totals = batch_.totals.as<double>(),
                    .robust = batch_.robust.as<std::uint32_t>(),
                    .everything = shape_.robust_only,
                    .counts_empty = std::visit(
                        [](const auto& law) { return law.counts_empty_windows; }, plan_.kernel),
                    .windows = windows},
                   count);
    }
    if (layout.ensemble && !shape_.robust_only) {
      WeighArguments second = weigh;
      second.tiling = shape_.ensemble;
      second.sums = batch_.totals.as<double>();
      if (steps.weigh) weigh_ensemble(stream, shape_.form, second, count);
      if (!steps.sum) return;
      collect(stream, {.partials = weigh.partials,
                       .chunks = shape_.ensemble.chunks,
                       .queries = plan_.queries,
                       .to = layout.ensemble_noise(),
                       .totals = batch_.totals.as<double>(),
                       .size = layout.size(),
                       .keep = batch_.robust.as<std::uint32_t>(),
                       .rows = count * plan_.queries});
    }
  }

  void weigh_all(const WeighArguments& arguments, std::int64_t replicates) {
    if (shape_.totals.pairs) {
      weigh_pairs(*stream_, shape_.form, shape_.pair_tile, arguments, replicates);
    } else {
      weigh_sums(*stream_, shape_.form, arguments, replicates);
    }
  }

  StatisticsArguments statistics_arguments(std::uint64_t done, std::int64_t replicates,
                                           const WindowCounters& windows) const {
    const double noise_factor = std::visit(
        [](const auto& noise) { return noise.constant_scale ? noise.sd * noise.sd : 1.0; },
        plan_.noise);
    return {.totals = shape_.totals,
            .layout = layout_,
            .sums = batch_.totals.as<double>(),
            .head_weights = head_weights_.data(),
            .centre = static_cast<double>(value_centre_),
            .noise_factor = noise_factor,
            .statistics = statistics_.as<double>() + done * layout_.statistics(),
            .replicates = replicates,
            .windows = windows};
  }

  MomentArguments moment_arguments(std::uint64_t count) const {
    return {.queries = layout_.queries,
            .components = static_cast<int>(layout_.components()),
            .pairs = static_cast<int>(layout_.pairs()),
            .per_query = static_cast<int>(layout_.per_query()),
            .pairwise = layout_.pairwise(),
            .statistics = statistics_.as<double>(),
            .nodes = nodes_.as<double>(),
            .leaves = static_cast<std::int64_t>((count + leaf_replicates - 1) / leaf_replicates),
            .replicates = static_cast<std::int64_t>(count)};
  }

  /// Appends the moments of replicates first .. first + count - 1 to `out`, `unit` of them each.
  void piece(std::uint64_t first, std::uint64_t count, std::uint64_t unit,
             std::vector<Moments>& out) {
    Stream& stream = *stream_;
    const std::uint64_t units = (count + unit - 1) / unit;
    stream.clear(windows_.as<void>(), 8 * window_counters * units);
    for (std::uint64_t done = 0; done < count;) {
      const auto part = static_cast<std::int64_t>(
          std::min(static_cast<std::uint64_t>(batch_.replicates), count - done));
      const WindowCounters windows = {.counts = windows_.as<unsigned long long>(),
                                      .first = static_cast<std::int64_t>(done),
                                      .node_replicates = static_cast<int>(unit)};
      totals(first + done, part, windows);
      statistics(stream, statistics_arguments(done, part, windows));
      done += static_cast<std::uint64_t>(part);
    }

    std::vector<unsigned long long> counts(window_counters * units);
    stream.copy_to_host(counts.data(), windows_.as<void>(), 8 * window_counters * units);
    const std::size_t first_out = out.size();
    out.resize(first_out + units);
    const std::span<Moments> moments = std::span(out).subspan(first_out);
    if (unit == 1) {
      copy_replicates(moments);
    } else {
      copy_nodes(count, unit, moments);
    }
    for (std::uint64_t i = 0; i < units; ++i) {
      moments[i].count = std::min(unit, count - i * unit);
      const unsigned long long* of_unit = &counts[window_counters * i];
      moments[i].windows = {.empty = of_unit[0], .narrow = of_unit[1]};
      if (robust_queries_ != nullptr) *robust_queries_ += of_unit[2];
    }
  }

  void copy_replicates(std::span<Moments> out) {
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

  void copy_nodes(std::uint64_t count, std::uint64_t unit, std::span<Moments> out) {
    Stream& stream = *stream_;
    const std::size_t queries = static_cast<std::size_t>(layout_.queries);
    const std::size_t per_query = layout_.per_query();
    const std::size_t pairs = layout_.pairs();
    MomentArguments arguments = moment_arguments(count);
    leaves(stream, arguments);
    const std::uint64_t leaves_of_unit = unit / leaf_replicates;
    for (; static_cast<std::uint64_t>(arguments.stride) < leaves_of_unit; arguments.stride *= 2) {
      merge_leaves(stream, arguments);
    }
    const std::size_t size = queries * (per_query + pairs);
    std::vector<double> node(size);
    for (std::size_t i = 0; i < out.size(); ++i) {
      stream.copy_to_host(node.data(), nodes_.as<double>() + i * leaves_of_unit * size, 8 * size);
      stream.synchronise();
      out[i].mean.resize(layout_.statistics());
      out[i].comoment.resize(layout_.comoments());
      for (std::size_t q = 0; q < queries; ++q) {
        const double* from = &node[q * (per_query + pairs)];
        std::copy_n(from, per_query, &out[i].mean[q * per_query]);
        std::copy_n(from + per_query, pairs, &out[i].comoment[q * pairs]);
      }
    }
  }

  const Plan& plan_;
  int device_;
  std::shared_ptr<StreamPool> streams_;
  MomentLayout layout_;
  std::atomic<std::uint64_t>* robust_queries_;
  std::unique_ptr<Stream> stream_;
  Shape shape_;
  std::optional<double> norm_share_;  ///< of the kernel law, where it has a product form
  float value_centre_ = 0;            ///< subtracted from the values: what is left has the digits
  int unit_replicates_ = leaf_replicates;  ///< of the statistics on the device, a power of two

  Constant<float> table_, centre_, projections_;
  Constant<float> query_points_, query_products_, query_shifts_;
  Constant<double> head_weights_;
  Queries queries_;
  Batch batch_;
  Memory statistics_, nodes_, windows_;
};

}  // namespace

StreamPool::~StreamPool() {
  for (auto& [device, stream] : idle_) {
    try {
      use_device(device);
    } catch (const std::exception&) {
      // A device that was lost has nothing to clean up.
    }
    stream.reset();
  }
}

std::unique_ptr<Stream> StreamPool::take(int device) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(idle_, [&](const auto& entry) { return entry.first == device; });
  if (found == idle_.end()) return std::make_unique<Stream>();
  std::unique_ptr<Stream> stream = std::move(found->second);
  idle_.erase(found);
  return stream;
}

void StreamPool::give_back(int device, std::unique_ptr<Stream> stream) {
  const std::lock_guard lock(mutex_);
  idle_.emplace_back(device, std::move(stream));
}

std::unique_ptr<Worker> make_worker(const Plan& plan, int device, const Options& options,
                                    const Note& note, std::shared_ptr<StreamPool> streams) {
  return std::make_unique<CudaWorker>(plan, device, options, note, std::move(streams));
}

std::vector<float> draw_design(const Plan& plan, std::uint64_t replicate, const Options& options) {
  const auto streams = std::make_shared<StreamPool>();
  CudaWorker worker(
      plan, usable_devices().front().number, options, [](const std::string&) {}, streams);
  return worker.design(replicate);
}

KernelTimes time_kernels(const Plan& plan, int device, const Options& options, int repeats) {
  const auto streams = std::make_shared<StreamPool>();
  return CudaWorker(
             plan, device, options, [](const std::string&) {}, streams)
      .time(repeats);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
