// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/batch.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "kernels/cuda/kernels.h"
#include "kernels/design_point.h"
#include "kernels/safe_sums.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Kernel values of a batch, about: a fraction of a millisecond of work, to which a dozen launches
/// add little. Not timed on a GPU yet.
constexpr std::int64_t batch_weights = std::int64_t{1} << 29;
/// Memory of a batch, where its size is free [bytes].
constexpr std::int64_t batch_memory = std::int64_t{1} << 29;

}  // namespace

std::int64_t Batch::partials_of_query() const {
  if (launch_.fallback_only) return 0;
  return std::max(launch_.weigh.panels * launch_.totals.row(),
                  launch_.totals.ensemble ? launch_.ensemble.panels : 0);
}

std::int64_t Batch::pooled_blocks() const {
  const Keep& keep = plan_.mechanism.keep;
  if (!keep.pooled) return 0;
  std::uint64_t most = 0;
  for (int h = 0; h < plan_.heads; ++h) most = std::max(most, launch_.tokens.seen_by(h));
  return static_cast<std::int64_t>((most + keep.block - 1) / keep.block);
}

std::int64_t Batch::kept_words() const {
  return plan_.mechanism.keep.off() ? 0 : launch_.padded_n / 32;
}

std::int64_t Batch::token_rows() const {
  return launch_.tokens.separate ? plan_.d : point_buffer(plan_.d);
}

std::vector<Batch::Array> Batch::arrays_of(std::int64_t replicates, std::int64_t stored,
                                           Arrays& arrays) const {
  const std::int64_t tokens = 4 * stored * launch_.padded_n;
  const std::int64_t points = 4 * stored * launch_.padded_points;
  const std::int64_t rows = replicates * plan_.queries;
  return {{&arrays.x, tokens * token_rows()},
          {&arrays.keys, tokens * key_rows()},
          {&arrays.values, tokens},
          {&arrays.scales, tokens},
          {&arrays.partials, std::max<std::int64_t>(8 * rows * partials_of_query(), 16)},
          {&arrays.totals, 8 * rows * launch_.totals.size()},
          {&arrays.fallback, 4 * rows},
          {&arrays.row_scratch, row_scratch_bytes(rows)},
          {&arrays.drawn_x, points * point_buffer(plan_.d)},
          {&arrays.drawn_values, points},
          {&arrays.drawn_scales, points},
          {&arrays.pooled, 4 * replicates * key_rows() * pooled_blocks()},
          {&arrays.kept, 4 * rows * plan_.heads * kept_words()}};
}

std::int64_t Batch::bytes_of(std::int64_t replicates, std::int64_t stored) const {
  Arrays unused;
  std::int64_t sum = 0;
  for (const Array& array : arrays_of(replicates, stored, unused)) sum += array.bytes;
  return sum;
}

std::int64_t Batch::good_replicates() const {
  const std::int64_t weights = launch_.padded_n * plan_.heads * plan_.queries;
  return std::max<std::int64_t>(1,
                                std::min(batch_weights / weights, batch_memory / bytes_of(1, 1)));
}

std::uint64_t Batch::bytes(std::int64_t replicates) const {
  return static_cast<std::uint64_t>(bytes_of(replicates, stored_replicates(replicates)));
}

bool Batch::allocate(std::int64_t replicates) {
  release();
  for (const Array& array : arrays_of(replicates, stored_replicates(replicates), arrays_)) {
    if (array.bytes == 0) continue;
    *array.memory = Memory(static_cast<std::uint64_t>(array.bytes));
    if (array.memory->empty()) {
      release();
      return false;
    }
  }
  arrays_.replicates = replicates;
  return true;
}

TrainingSets Batch::sets() const {
  return {.n = launch_.tokens.tokens,
          .padded_n = launch_.padded_n,
          .slice_replicates = launch_.slice_replicates,
          .slice_points = launch_.slice_points,
          .d = plan_.d,
          .draw_rows = static_cast<int>(token_rows()),
          .key_rows = key_rows(),
          .x = arrays_.x.as<float>(),
          .keys = arrays_.keys.as<float>(),
          .values = arrays_.values.as<float>(),
          .scales = arrays_.scales.as<float>()};
}

TrainingSets Batch::drawn_sets() const {
  if (!launch_.tokens.separate) return sets();
  return {.n = launch_.tokens.points,
          .padded_n = launch_.padded_points,
          .slice_replicates = launch_.slice_replicates,
          .slice_points = launch_.slice_replicates * launch_.padded_points,
          .d = plan_.d,
          .draw_rows = point_buffer(plan_.d),
          .x = arrays_.drawn_x.as<float>(),
          .values = arrays_.drawn_values.as<float>(),
          .scales = arrays_.drawn_scales.as<float>()};
}

TokenNumbers Batch::numbers() const {
  const std::vector<TokenRange>& ranges = launch_.tokens.ranges;
  return {.ranges = ranges.empty() ? nullptr : constants_.ranges.data(),
          .count = static_cast<int>(ranges.size())};
}

DrawArguments Batch::draw_arguments(std::uint64_t first, std::int64_t count) const {
  // A sequence is drawn from its first point on.
  return {.sets = drawn_sets(),
          .tokens = plan_.ar1 ? TokenNumbers{} : numbers(),
          .stride = plan_.mechanism.merge.stride,
          .seed = plan_.seed,
          .design_seed = plan_.fixed_design_seed.value_or(plan_.seed),
          .fixed_design = plan_.fixed_design_seed.has_value(),
          .sequence = plan_.ar1.has_value(),
          .ar1 = plan_.ar1.value_or(Ar1()),
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

/// Draws points and makes tokens of them.
void Batch::draw_tokens(std::uint64_t first, std::int64_t count) {
  draw(stream_, draw_arguments(first, count));
  if (!launch_.tokens.separate) return;
  const Merge& merge = plan_.mechanism.merge;
  make_tokens(stream_, {.points = drawn_sets(),
                        .tokens = sets(),
                        .numbers = numbers(),
                        .sequence = plan_.ar1.has_value(),
                        .n = plan_.n,
                        .stride = merge.stride,
                        .gate = merge.gate.value_or(0.0),
                        .group_weight = merge.group_weight(),
                        .value_centre = constants_.value_centre,
                        .centre = constants_.centre.data(),
                        .replicates = count});
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
      .norm_factor = norms_are_masks ? 0.0f : static_cast<float>(norm_coefficient.value_or(-1.0)),
      .mask_row = launch_.extra_row == ExtraRow::mask ? plan_.k : -1,
      .kernel = DeviceVariant<KernelLaw>(plan_.kernel),
      .bounds_squares = launch_.bounds_squares,
      .partials = arrays_.partials.as<double>()};
}

/// Keys of the tokens that are stored, from their X.
void Batch::make_keys(std::int64_t replicates) {
  const TrainingSets all = sets();
  for (std::int64_t slice = 0; slice < slices_of(replicates); ++slice) {
    stream_.multiply(
        constants_.projections.data(), all.x + slice * all.draw_rows * all.slice_points,
        all.keys + slice * all.key_rows * all.slice_points, all.key_rows, all.d, all.slice_points);
  }
  const Mechanism& mechanism = plan_.mechanism;
  KeyArguments keys = {.sets = all,
                       .heads = plan_.heads,
                       .k = plan_.k,
                       .padded_k = launch_.padded_k,
                       .extra_row = launch_.extra_row,
                       .seen = constants_.seen.data(),
                       .block = mechanism.keep.block,
                       .pooled = arrays_.pooled.as<float>(),
                       .pooled_stride = pooled_blocks(),
                       .replicates = replicates};
  if (!mechanism.levels.off()) {
    keys.levels = static_cast<int>(mechanism.levels.weights.size());
    std::ranges::transform(mechanism.levels.weights, keys.level_weights,
                           [](double weight) { return static_cast<float>(weight); });
  }
  if (mechanism.keep.pooled) pool_keys(stream_, keys);
  if (!mechanism.levels.off()) average_keys(stream_, keys);
  if (launch_.masks) hide_tokens(stream_, keys);
}

/// Marks the tokens that are kept.
void Batch::select(const WeighArguments& arguments, std::int64_t replicates) {
  // Without asking for more shared memory than every device gives.
  constexpr std::uint64_t max_cached = 8192;
  const Keep& keep = plan_.mechanism.keep;
  std::uint64_t numbers = launch_.tokens.tokens;
  if (keep.rule == Keep::Rule::block) numbers = (numbers + keep.block - 1) / keep.block;
  if (keep.rule == Keep::Rule::ratio) numbers = 0;
  select_kept(stream_,
              {.weigh = arguments,
               .seen = constants_.seen.data(),
               .top = constants_.top.data(),
               .rule = keep.rule,
               .log_ratio = keep.ratio > 0 ? static_cast<float>(std::log2(keep.ratio)) : 0.0f,
               .block = keep.block,
               .pooled = arrays_.pooled.as<float>(),
               .pooled_stride = pooled_blocks(),
               .shared = keep.shared,
               .cached = numbers <= max_cached ? numbers : 0,
               .kept = kept(),
               .rows = replicates * plan_.queries});
}

KeptTokens Batch::kept() const {
  return {.bits = arrays_.kept.as<std::uint32_t>(), .words = kept_words()};
}

void Batch::weigh_all(const WeighArguments& arguments, std::int64_t replicates) {
  if (launch_.register_heads > 0) {
    sum_register_pairs(stream_, launch_.microkernel, launch_.register_heads, arguments, replicates);
  } else if (launch_.totals.pairs) {
    sum_pairs(stream_, launch_.microkernel, arguments, replicates);
  } else {
    sum_weights(stream_, launch_.microkernel, arguments, replicates);
  }
}

void Batch::compute(std::uint64_t first, std::int64_t count, const WindowCounters& windows,
                    const Steps& steps) {
  if (steps.draw) draw_tokens(first, count);
  if (steps.project) make_keys(count);
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
  if (!plan_.mechanism.keep.off() && steps.weigh) select(weigh, count);
  if (!launch_.fallback_only) {
    if (steps.weigh) weigh_all(weigh, count);
    if (steps.collect) collect(stream_, sums);
    if (layout.scaled) {
      WeighArguments scaled = weigh;
      scaled.scaled = scaled.reads_scales = true;
      if (steps.weigh) weigh_all(scaled, count);
      sums.from = 2 * layout.heads;
      sums.count = layout.squares();
      sums.to = 2 * layout.heads + layout.squares();
      if (steps.collect) collect(stream_, sums);
    }
  }
  if (steps.fallback) {
    const FallbackArguments fallback = {
        .weigh = weigh,
        .seen = constants_.seen.data(),
        .kept = kept(),
        .totals = sums.totals,
        .taken = arrays_.fallback.as<std::uint32_t>(),
        .scratch = {arrays_.row_scratch.as<void>(), row_scratch_bytes(count * plan_.queries)},
        .all = launch_.fallback_only,
        .min_sum = min_safe_sum(plan_.estimator, launch_.tokens.tokens, Underflow::gradual),
        .counts_empty =
            std::visit([](const auto& law) { return law.counts_empty_windows; }, plan_.kernel),
        .windows = windows};
    sum_fallback(stream_, fallback, count);
    count_windows(stream_, fallback, count);
  }
  if (!layout.ensemble || launch_.fallback_only) return;
  WeighArguments second = weigh;
  second.tiling = launch_.ensemble;
  second.sums = sums.totals;
  second.reads_scales = layout.scaled;
  if (steps.weigh) sum_ensemble(stream_, launch_.microkernel, second, count);
  if (!steps.collect) return;
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
  const TrainingSets drawn = drawn_sets();
  const auto n = static_cast<std::size_t>(drawn.n);
  const auto d = static_cast<std::size_t>(plan_.d);
  std::vector<float> row(n);
  std::vector<float> x(n * d);
  for (std::size_t c = 0; c < d; ++c) {
    stream_.copy_to_host(row.data(), drawn.x + static_cast<std::int64_t>(c) * drawn.slice_points,
                         n * sizeof(float));
    stream_.synchronise();
    for (std::size_t i = 0; i < n; ++i) x[i * d + c] = row[i];
  }
  return x;
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
