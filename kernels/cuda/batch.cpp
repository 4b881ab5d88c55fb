// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/batch.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "kernels/cuda/draw_arguments.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sizes.h"
#include "kernels/design_point.h"
#include "kernels/statistics/safe_sums.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Kernel values of a batch, about: a millisecond of work or more, to which a dozen launches add
/// little. Not timed on a GPU yet.
constexpr std::int64_t batch_weights = std::int64_t{1} << 31;
/// Maximum memory of a batch, where its size is free: bytes, and the share of a device's memory.
/// Two workers have a batch each.
constexpr std::uint64_t batch_memory = std::uint64_t{1} << 31;
constexpr std::uint64_t memory_share = 16;

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

template <class Put>
void Batch::each_array(std::int64_t replicates, Arrays& arrays, const Put& put) const {
  const std::int64_t tokens = replicates * launch_.padded_n;
  const std::int64_t points = replicates * launch_.padded_points;
  const std::int64_t rows = replicates * plan_.queries;
  put(arrays.x, tokens * token_rows());
  put(arrays.keys, tokens * key_rows());
  put(arrays.values, tokens);
  put(arrays.scales, tokens);
  put(arrays.partials, rows * partials_of_query());
  put(arrays.totals, rows * launch_.totals.size());
  put(arrays.fallback, rows);
  put(arrays.row_scratch, row_scratch_bytes(rows));
  put(arrays.drawn_x, points * point_buffer(plan_.d));
  put(arrays.drawn_values, points);
  put(arrays.drawn_scales, points);
  put(arrays.pooled, replicates * key_rows() * pooled_blocks());
  put(arrays.kept, rows * plan_.heads * kept_words());
}

std::int64_t Batch::good_replicates() const {
  const std::int64_t weights = launch_.padded_n * plan_.heads * plan_.queries;
  const std::uint64_t memory = std::min(batch_memory, total_memory() / memory_share);
  // What a replicate adds: a batch of one also has what every batch needs.
  const std::uint64_t each = (bytes(1 + 64) - bytes(1)) / 64;
  const std::uint64_t beside = std::min(memory, bytes(1));
  std::uint64_t replicates = 1 + (memory - beside) / std::max<std::uint64_t>(each, 1);
  while (replicates > 1 && bytes(static_cast<std::int64_t>(replicates)) > memory) --replicates;
  return std::max<std::int64_t>(
      1, std::min(batch_weights / weights, static_cast<std::int64_t>(replicates)));
}

std::uint64_t Batch::bytes(std::int64_t replicates) const {
  Arrays unused;
  std::uint64_t sum = 0;
  each_array(replicates, unused, [&]<class T>(T*&, std::int64_t count) {
    if (count > 0) sum += Arena::room(static_cast<std::uint64_t>(count) * sizeof(T));
  });
  return sum;
}

void Batch::place(std::int64_t replicates) {
  count_of("queries of a batch",
           {static_cast<std::uint64_t>(replicates), static_cast<std::uint64_t>(plan_.queries)});
  arrays_ = {.replicates = replicates};
  each_array(replicates, arrays_, [&]<class T>(T*& array, std::int64_t count) {
    if (count > 0) array = stream_.work.take<T>(static_cast<std::uint64_t>(count));
  });
}

TrainingSets Batch::sets() const {
  return {.n = launch_.tokens.tokens,
          .padded_n = launch_.padded_n,
          .d = plan_.d,
          .draw_rows = static_cast<int>(token_rows()),
          .key_rows = key_rows(),
          .x = arrays_.x,
          .keys = arrays_.keys,
          .values = arrays_.values,
          .scales = arrays_.scales};
}

TrainingSets Batch::drawn_sets() const {
  if (!launch_.tokens.separate) return sets();
  return {.n = launch_.tokens.points,
          .padded_n = launch_.padded_points,
          .d = plan_.d,
          .draw_rows = point_buffer(plan_.d),
          .x = arrays_.drawn_x,
          .values = arrays_.drawn_values,
          .scales = arrays_.drawn_scales};
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
          .design = DeviceVariant<DesignSampler::variant>(*plan_.design),
          .regression = DeviceVariant<RegressionFunction::variant>(*plan_.regression),
          .noise = DeviceVariant<NoiseSampler::variant>(*plan_.noise),
          .table = constants_.table.data(),
          .design_table =
              plan_.table.rows().empty() ? constants_.table.data() : constants_.file_rows.data(),
          .value_centre = constants_.value_centre,
          .scale_factor = static_cast<float>(1 / constants_.noise_unit)};
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
      .projections = constants_.projections_of_tiles,
      .projects = launch_.projects,
      .queries = constants_.queries,
      .tiling = launch_.weigh,
      .totals = launch_.totals,
      .padded_k = launch_.padded_k,
      .exponent = !norm_coefficient        ? Exponent::law
                  : *norm_coefficient == 0 ? Exponent::product
                                           : Exponent::minus_distance,
      .norm_factor = norms_are_masks ? 0.0f : static_cast<float>(norm_coefficient.value_or(-1.0)),
      .mask_row = launch_.extra_row == ExtraRow::mask ? plan_.k : -1,
      .kernel = DeviceVariant<KernelLaws>(*plan_.kernel),
      .bounds_squares = launch_.bounds_squares,
      .partials = arrays_.partials};
}

ProjectArguments Batch::project_arguments(std::int64_t replicates) const {
  // Tokens that are kept apart from points have the centre subtracted.
  return {.sets = sets(),
          .projections = constants_.projections.data(),
          .centre = launch_.tokens.separate ? nullptr : constants_.centre.data(),
          .replicates = replicates,
          .queries = plan_.queries};
}

/// Keys of the tokens that are stored, from their X.
void Batch::make_keys(std::int64_t replicates) {
  project(stream_, project_arguments(replicates));
  const Mechanism& mechanism = plan_.mechanism;
  KeyArguments keys = {.sets = sets(),
                       .heads = plan_.heads,
                       .k = plan_.k,
                       .padded_k = launch_.padded_k,
                       .extra_row = launch_.extra_row,
                       .seen = constants_.seen.data(),
                       .block = mechanism.keep.block,
                       .pooled = arrays_.pooled,
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
               .pooled = arrays_.pooled,
               .pooled_stride = pooled_blocks(),
               .shared = keep.shared,
               .cached = numbers <= max_cached ? numbers : 0,
               .kept = kept(),
               .rows = replicates * plan_.queries});
}

KeptTokens Batch::kept() const {
  return {.bits = arrays_.kept, .words = kept_words()};
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
  if (steps.project && !launch_.projects) make_keys(count);
  const TotalsLayout& layout = launch_.totals;
  const WeighArguments weigh = weigh_arguments();
  CollectArguments sums = {.partials = weigh.partials,
                           .panels = launch_.weigh.panels,
                           .queries = plan_.queries,
                           .row = layout.row(),
                           .count = layout.row(),
                           .totals = arrays_.totals,
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
        .taken = arrays_.fallback,
        .scratch = {arrays_.row_scratch, row_scratch_bytes(count * plan_.queries)},
        .min_sum = min_safe_sum(plan_.estimator, launch_.tokens.tokens, Underflow::gradual),
        .counts_empty =
            std::visit([](const auto& law) { return law.counts_empty_windows; }, *plan_.kernel),
        .windows = windows};
    RowList list;
    if (!launch_.fallback_only) list = list_unsafe(stream_, fallback, count * plan_.queries);
    if (launch_.projects) {
      ProjectArguments projected = project_arguments(count);
      projected.needed = list;
      project(stream_, projected);
    }
    sum_fallback(stream_, fallback, list, count);
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
                    .keep = arrays_.fallback,
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
    stream_.copy_to_host(row.data(), drawn.x + static_cast<std::int64_t>(c) * drawn.padded_n,
                         n * sizeof(float));
    stream_.synchronise();
    for (std::size_t i = 0; i < n; ++i) x[i * d + c] = row[i];
  }
  return x;
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
