// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/batch.h"

#include <algorithm>
#include <variant>

#include "kernels/cuda/kernels.h"
#include "kernels/design_point.h"
#include "kernels/safe_sums.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Kernel values of a batch, about: a fraction of a millisecond of work, to which a dozen launches
/// add little. Not timed on a GPU yet.
constexpr std::int64_t batch_weights = std::int64_t{1} << 29;
/// Memory for the points and keys of a batch, where its size is free [bytes].
constexpr std::int64_t batch_memory = std::int64_t{1} << 29;

}  // namespace

std::int64_t Batch::partials_of_query() const {
  if (launch_.fallback_only) return 0;
  return std::max(launch_.weigh.panels * launch_.totals.row(),
                  launch_.totals.ensemble ? launch_.ensemble.panels : 0);
}

std::int64_t Batch::good_replicates() const {
  const std::int64_t weights = launch_.padded_n * plan_.heads * plan_.queries;
  const std::int64_t bytes = 4 * launch_.padded_n * (point_buffer(plan_.d) + key_rows() + 2);
  return std::max<std::int64_t>(1, std::min(batch_weights / weights, batch_memory / bytes));
}

std::uint64_t Batch::bytes(std::int64_t replicates) const {
  const auto points = static_cast<std::uint64_t>(slices_of(replicates) * launch_.slice_points);
  const auto rows = static_cast<std::uint64_t>(replicates * plan_.queries);
  return points * 4 * (static_cast<std::uint64_t>(point_buffer(plan_.d) + key_rows()) + 2) +
         rows * (8 * static_cast<std::uint64_t>(partials_of_query() + launch_.totals.size()) + 4);
}

bool Batch::allocate(std::int64_t replicates) {
  release();
  const std::uint64_t points =
      4 * static_cast<std::uint64_t>(slices_of(replicates) * launch_.slice_points);
  const auto rows = static_cast<std::uint64_t>(replicates * plan_.queries);
  auto take = [](Memory& memory, std::uint64_t bytes) {
    memory = Memory(std::max<std::uint64_t>(bytes, 16));
    return !memory.empty();
  };
  if (take(arrays_.x, points * static_cast<std::uint64_t>(point_buffer(plan_.d))) &&
      take(arrays_.keys, points * static_cast<std::uint64_t>(key_rows())) &&
      take(arrays_.values, points) && take(arrays_.scales, points) &&
      take(arrays_.partials, 8 * rows * static_cast<std::uint64_t>(partials_of_query())) &&
      take(arrays_.totals, 8 * rows * static_cast<std::uint64_t>(launch_.totals.size())) &&
      take(arrays_.fallback, 4 * rows)) {
    arrays_.replicates = replicates;
    return true;
  }
  release();
  return false;
}

TrainingSets Batch::sets() const {
  return {.n = plan_.n,
          .padded_n = launch_.padded_n,
          .slice_replicates = launch_.slice_replicates,
          .slice_points = launch_.slice_points,
          .d = plan_.d,
          .draw_rows = point_buffer(plan_.d),
          .key_rows = key_rows(),
          .x = arrays_.x.as<float>(),
          .keys = arrays_.keys.as<float>(),
          .values = arrays_.values.as<float>(),
          .scales = arrays_.scales.as<float>()};
}

DrawArguments Batch::draw_arguments(std::uint64_t first, std::int64_t count) const {
  return {.sets = sets(),
          .seed = plan_.seed,
          .design_seed = plan_.fixed_design_seed.value_or(plan_.seed),
          .fixed_design = plan_.fixed_design_seed.has_value(),
          .design_purpose = plan_.streams.design,
          .choice_purpose = plan_.streams.design_choice,
          .noise_purpose = plan_.streams.noise,
          .draws_noise = plan_.estimator == Estimator::plain,
          .first_replicate = first,
          .replicates = count,
          .design = DeviceVariant<DesignSampler>(plan_.design),
          .regression = DeviceVariant<RegressionFunction>(plan_.regression),
          .noise = DeviceVariant<NoiseSampler>(plan_.noise),
          .table = constants_.table.data(),
          .design_table =
              plan_.table.rows().empty() ? constants_.table.data() : constants_.file_rows.data(),
          .value_centre = constants_.value_centre,
          .scale_factor = static_cast<float>(1 / constants_.noise_unit),
          .centre = constants_.centre.data()};
}

WeighArguments Batch::weigh_arguments() const {
  const std::optional<double>& norm_coefficient = constants_.norm_coefficient;
  const bool norms_are_masks = launch_.microkernel == Microkernel::any;
  return {
      .sets = sets(),
      .queries = constants_.queries,
      .tiling = launch_.weigh,
      .totals = launch_.totals,
      .padded_k = launch_.padded_k,
      .exponent = !norm_coefficient        ? Exponent::law
                  : *norm_coefficient == 0 ? Exponent::product
                                           : Exponent::minus_distance,
      .norm_factor = norms_are_masks ? 0.0f : static_cast<float>(norm_coefficient.value_or(0.0)),
      .kernel = DeviceVariant<KernelLaw>(plan_.kernel),
      .partials = arrays_.partials.as<double>()};
}

void Batch::weigh_all(const WeighArguments& arguments, std::int64_t replicates) {
  if (launch_.totals.pairs) {
    sum_pairs(stream_, launch_.microkernel, launch_.pair_tile, arguments, replicates);
  } else {
    sum_weights(stream_, launch_.microkernel, arguments, replicates);
  }
}

void Batch::compute(std::uint64_t first, std::int64_t count, const WindowCounters& windows,
                    const Steps& steps) {
  if (steps.draw) draw(stream_, draw_arguments(first, count));
  const TrainingSets all = sets();
  for (std::int64_t slice = 0; steps.project && slice < slices_of(count); ++slice) {
    stream_.multiply(
        constants_.projections.data(), all.x + slice * all.draw_rows * all.slice_points,
        all.keys + slice * all.key_rows * all.slice_points, all.key_rows, all.d, all.slice_points);
  }
  const TotalsLayout& layout = launch_.totals;
  const WeighArguments weigh = weigh_arguments();
  CollectArguments sums = {.partials = weigh.partials,
                           .panels = launch_.weigh.panels,
                           .queries = plan_.queries,
                           .row = layout.row(),
                           .count = layout.row(),
                           .totals = arrays_.totals.as<double>(),
                           .size = layout.size(),
                           .rows = count * plan_.queries};
  if (!launch_.fallback_only) {
    if (steps.weigh) weigh_all(weigh, count);
    if (steps.sum) collect(stream_, sums);
    if (layout.scaled) {
      WeighArguments scaled = weigh;
      scaled.scaled = true;
      if (steps.weigh) weigh_all(scaled, count);
      sums.from = 2 * layout.heads;
      sums.count = layout.squares();
      sums.to = 2 * layout.heads + layout.squares();
      if (steps.sum) collect(stream_, sums);
    }
  }
  if (steps.sum) {
    sum_fallback(stream_,
                 {.weigh = weigh,
                  .totals = sums.totals,
                  .taken = arrays_.fallback.as<std::uint32_t>(),
                  .all = launch_.fallback_only,
                  .min_sum = min_safe_sum(plan_.estimator, plan_.n, Underflow::gradual),
                  .counts_empty = std::visit(
                      [](const auto& law) { return law.counts_empty_windows; }, plan_.kernel),
                  .windows = windows},
                 count);
  }
  if (!layout.ensemble || launch_.fallback_only) return;
  WeighArguments second = weigh;
  second.tiling = launch_.ensemble;
  second.sums = sums.totals;
  if (steps.weigh) sum_ensemble(stream_, launch_.microkernel, second, count);
  if (!steps.sum) return;
  collect(stream_, {.partials = weigh.partials,
                    .panels = launch_.ensemble.panels,
                    .queries = plan_.queries,
                    .to = layout.ensemble_noise(),
                    .totals = sums.totals,
                    .size = layout.size(),
                    .keep = arrays_.fallback.as<std::uint32_t>(),
                    .rows = count * plan_.queries});
}

std::vector<float> Batch::design(std::uint64_t replicate) {
  draw(stream_, draw_arguments(replicate, 1));
  const auto n = static_cast<std::size_t>(plan_.n);
  const auto d = static_cast<std::size_t>(plan_.d);
  std::vector<float> row(n);
  std::vector<float> x(n * d);
  for (std::size_t c = 0; c < d; ++c) {
    stream_.copy_to_host(
        row.data(), arrays_.x.as<float>() + static_cast<std::int64_t>(c) * launch_.slice_points,
        n * sizeof(float));
    stream_.synchronise();
    for (std::size_t i = 0; i < n; ++i) x[i * d + c] = row[i];
  }
  return x;
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
