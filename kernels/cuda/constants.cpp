// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/constants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "kernels/cuda/projection.h"
#include "kernels/design_point.h"
#include "kernels/laws.h"
#include "kernels/plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// The first points of replicate 0 and m there, typical of all points.
struct DeviceTrainingSets {
  std::vector<std::vector<float>> x;
  std::vector<float> m;
};
DeviceTrainingSets first_points(const Plan& plan) {
  DeviceTrainingSets points;
  const std::uint64_t seed = plan.fixed_design_seed.value_or(plan.seed);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(plan.n, 32); ++i) {
    std::vector<float> x(static_cast<std::size_t>(point_buffer(plan.d)));
    const std::uint32_t row =
        draw_design_point(*plan.design, plan.table.design(), plan.d, seed, plan.streams.design,
                          plan.streams.design_choice, 0, i, x.data());
    points.m.push_back(std::visit(
        [&](const auto& m) {
          return static_cast<float>(m(plan.table.rounded(), x.data(), 1, row));
        },
        *plan.regression));
    points.x.push_back(std::move(x));
  }
  return points;
}

float median(std::vector<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The first tokens, typical of all: sums of points that are drawn for them. `levels` only bring
/// tokens nearer to their mean.
std::vector<std::vector<float>> first_tokens(const Plan& plan, const DeviceTrainingSets& some) {
  const Merge& merge = plan.mechanism.merge;
  if (merge.off()) return some.x;
  // Of a large group some points show where it is.
  constexpr std::uint64_t max_points = 4096;
  const std::uint64_t points = std::min({merge.stride, plan.n, max_points});
  const std::uint64_t tokens = std::min<std::uint64_t>(32, max_points / points);
  const auto d = static_cast<std::size_t>(plan.d);
  std::vector<std::vector<float>> result;
  std::vector<float> x(static_cast<std::size_t>(point_buffer(plan.d)));
  for (std::uint64_t token = 0; token < tokens && (token + 1) * points <= plan.n; ++token) {
    std::vector<double> sum(d);
    for (std::uint64_t i = token * points; i < (token + 1) * points; ++i) {
      draw_design_point(*plan.design, plan.table.design(), plan.d,
                        plan.fixed_design_seed.value_or(plan.seed), plan.streams.design,
                        plan.streams.design_choice, 0, i, x.data());
      for (std::size_t c = 0; c < d; ++c) sum[c] += static_cast<double>(x[c]);
    }
    const double share = merge.group_weight() / static_cast<double>(points);
    result.emplace_back();
    for (const double of_points : sum)
      result.back().push_back(static_cast<float>(share * of_points));
  }
  return result;
}

/// See Constants::noise_unit.
double noise_unit_of(const Plan& plan, const DeviceTrainingSets& some) {
  if (plan.estimator == Estimator::plain || has_constant_noise(plan)) return 1;
  return std::visit(
      [&](const auto& noise) {
        std::vector<float> scales;
        for (const std::vector<float>& x : some.x) {
          scales.push_back(noise.scale(plan.table.rounded(), x.data(), 1));
        }
        const double typical = static_cast<double>(median(scales));
        if (!(typical > 0)) return 1.0;
        return std::exp2(std::clamp(std::floor(std::log2(typical)), -120.0, 120.0));
      },
      *plan.noise);
}

/// Projections in the units of the keys [H padded_k][d], rows of padding zero.
std::vector<float> key_projections(const Plan& plan, int padded_k) {
  const double unit = key_unit(*plan.kernel);
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
QueryArrays query_arrays(const Plan& plan, const LaunchPlan& launch,
                         std::optional<double> norm_coefficient,
                         const std::vector<std::vector<float>>& some,
                         const std::vector<float>& projections, const std::vector<double>& centre) {
  QueryArrays arrays;
  const auto heads = static_cast<std::size_t>(plan.heads);
  const auto k = static_cast<std::size_t>(plan.k);
  const auto padded_k = static_cast<std::size_t>(launch.padded_k);
  const auto d = static_cast<std::size_t>(plan.d);
  const auto count = static_cast<std::size_t>(plan.queries);
  // A group of queries may reach past the last one.
  const int largest = std::max(launch.weigh.block_queries * launch.weigh.query_groups,
                               launch.ensemble.block_queries * launch.ensemble.query_groups);
  arrays.padded = std::max(plan.queries, largest);
  const auto padded = static_cast<std::size_t>(arrays.padded);
  arrays.points.resize(heads * padded_k * padded);
  arrays.shifts.resize(heads * padded);
  const std::vector<double> projected = projected_queries(plan);
  for (std::size_t h = 0; h < heads; ++h) {
    // Some keys of the head, which show how large its products are.
    std::vector<std::vector<double>> keys(some.size(), std::vector<double>(k));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      for (std::size_t j = 0; j < k; ++j) {
        for (std::size_t c = 0; c < d; ++c) {
          keys[i][j] += static_cast<double>(projections[(h * padded_k + j) * d + c]) *
                        (static_cast<double>(some[i][c]) - centre[c]);
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
      if (norm_coefficient != 0.0) shift = norm_coefficient.value_or(-1.0) * norm2;
      if (norm_coefficient && *norm_coefficient == 0) shift = -*std::ranges::max_element(product);
      arrays.shifts[h * padded + q] = static_cast<float>(shift);
    }
  }
  arrays.products = arrays.points;
  for (float& x : arrays.products) x *= 2;
  for (std::size_t h = 0; launch.extra_row == ExtraRow::mask && h < heads; ++h) {
    std::fill_n(&arrays.products[(h * padded_k + k) * padded], padded, 1.0f);
  }
  return arrays;
}

/// See Constants::left_out.
std::vector<double> left_out_exponents(const Plan& plan, const LaunchPlan& launch,
                                       std::optional<double> norm_coefficient,
                                       const QueryArrays& arrays,
                                       const std::vector<double>& centre) {
  const auto heads = static_cast<std::size_t>(plan.heads);
  const auto k = static_cast<std::size_t>(plan.k);
  const auto d = static_cast<std::size_t>(plan.d);
  const auto count = static_cast<std::size_t>(plan.queries);
  const auto padded = static_cast<std::size_t>(arrays.padded);
  std::vector<double> left_out(2 * count * heads);
  if (!norm_coefficient) return left_out;
  const bool only_products = *norm_coefficient == 0;
  const Microkernel m = launch.microkernel;
  const bool multiplies = m >= Microkernel::dots1 && m <= Microkernel::tensor64;
  if (!only_products && !multiplies) return left_out;
  const bool shifts = m >= Microkernel::shifted1;
  const double unit = key_unit(*plan.kernel);
  const std::vector<double> projected = projected_queries(plan);
  for (std::size_t h = 0; h < heads; ++h) {
    // The centre as a key, which the others are measured from.
    std::vector<double> key(k);
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t c = 0; c < d; ++c) {
        key[j] += plan.projections[(h * d + c) * k + j] * unit * centre[c];
      }
    }
    for (std::size_t q = 0; q < count; ++q) {
      double product = 0, norm2 = 0;
      for (std::size_t j = 0; j < k; ++j) {
        product += 2 * projected[(h * k + j) * count + q] * key[j];
        // Of the query as it is on the device, so that exponents are distances from that.
        const auto rounded = static_cast<double>(
            arrays.points[(h * static_cast<std::size_t>(launch.padded_k) + j) * padded + q]);
        norm2 += rounded * rounded;
      }
      const double shift = shifts ? static_cast<double>(arrays.shifts[h * padded + q]) : 0.0;
      left_out[q * heads + h] = (only_products ? product : -norm2) - shift;
      left_out[(count + q) * heads + h] = only_products ? product : 0.0;
    }
  }
  return left_out;
}

/// Two neighbouring numbers number(0), number(1) in float16: their upper or their lower parts; 0 in
/// place of the latter without `lower_parts`.
template <class Number>
std::uint32_t split_word(const Number& number, bool low, bool lower_parts) {
  if (low && !lower_parts) return 0;
  std::uint32_t packed = 0;
  for (int i = 0; i < 2; ++i) {
    const float x = number(i);
    const auto high = static_cast<_Float16>(x);
    const auto half = low ? static_cast<_Float16>(x - static_cast<float>(high)) : high;
    packed |= std::uint32_t{std::bit_cast<std::uint16_t>(half)} << 16 * i;
  }
  return packed;
}

/// See Projections::units. \param rows projections [H padded_k][d]
std::vector<CoordinateUnit> coordinate_units(const std::vector<float>& rows,
                                             const std::vector<float>& centre) {
  std::vector<CoordinateUnit> units;
  for (std::size_t c = 0; c < centre.size(); ++c) {
    float largest = 0;
    for (std::size_t at = c; at < rows.size(); at += centre.size()) {
      largest = std::max(largest, std::abs(rows[at]));
    }
    const float scale =
        largest > 0 ? std::exp2(std::clamp(std::round(std::log2(largest)), -100.0f, 100.0f)) : 0;
    units.push_back({scale, -centre[c] * scale});
  }
  return units;
}

/// See Projections::fragments.
std::vector<FourWords> projection_fragments(const std::vector<float>& rows, int heads, int padded_k,
                                            const std::vector<CoordinateUnit>& units,
                                            bool lower_parts) {
  const auto d = static_cast<int>(units.size());
  std::vector<FourWords> fragments;
  constexpr int side = 16;
  for (int head = 0; head < heads; ++head) {
    for (int chunk = 0; chunk < projection_chunks(d); ++chunk) {
      for (int block = 0; block < padded_k; block += side) {
        for (const bool low : {false, true}) {
          for (int lane = 0; lane < 32; ++lane) {
            FourWords& words = fragments.emplace_back();
            for (int e = 0; e < 4; ++e) {
              const int row = block + lane / 4 + e % 2 * 8;
              const int first = chunk * chunk_coordinates + e / 2 * 8 + lane % 4 * 2;
              const auto number = [&](int i) {
                if (row >= padded_k || first + i >= d) return 0.0f;
                const float scale = units[static_cast<std::size_t>(first + i)].scale;
                const auto at = static_cast<std::size_t>((head * padded_k + row) * d + first + i);
                return scale == 0 ? 0.0f : rows[at] / scale;
              };
              words.v[e] = split_word(number, low, lower_parts);
            }
          }
        }
      }
    }
  }
  return fragments;
}

/// See Queries::fragments.
std::vector<FourWords> query_fragments(const QueryArrays& arrays, int heads, int padded_k,
                                       bool lower_parts) {
  std::vector<FourWords> fragments;
  const auto word = [&](const float* rows, int coordinate, int query, bool low) {
    return split_word([&](int i) { return rows[(coordinate + i) * arrays.padded + query]; }, low,
                      lower_parts);
  };
  for (int first = 0; first < arrays.padded; first += fragment_queries) {
    for (int head = 0; head < fragment_heads(heads); ++head) {
      const int real = std::min(head, heads - 1);
      const float* rows =
          &arrays.products[static_cast<std::size_t>(real * padded_k * arrays.padded)];
      const float* shifts = &arrays.shifts[static_cast<std::size_t>(real * arrays.padded)];
      for (int quad = 0; quad < fragment_quads(padded_k); ++quad) {
        for (int lane = 0; lane < 32; ++lane) {
          FourWords& words = fragments.emplace_back();
          for (int e = 0; e < 4; ++e) {
            if (quad == padded_k / 8) {
              words.v[e] = std::bit_cast<std::uint32_t>(shifts[first + lane / 4 + 8 * (e / 2)]);
              continue;
            }
            const bool low = padded_k == 8 ? e / 2 == 1 : quad % 2 == 1;
            const int chunk = padded_k == 8 ? 0 : 16 * (quad / 2) + 8 * (e / 2);
            words.v[e] = word(rows, chunk + 2 * (lane % 4), first + lane / 4 + 8 * (e % 2), low);
          }
        }
      }
    }
  }
  return fragments;
}

}  // namespace

Constants::Constants(const Plan& plan, const LaunchPlan& launch, Stream& stream, bool lower_parts)
    : norm_coefficient(norm_coefficient_of(*plan.kernel)) {
  const DeviceTrainingSets some = first_points(plan);
  value_centre = median(some.m);
  const Mechanism& mechanism = plan.mechanism;
  token_centre = static_cast<double>(value_centre) * mechanism.merge.group_weight();
  noise_unit = noise_unit_of(plan, some);
  const std::vector<double> exact_centre = centre_of(plan);
  const std::vector<float> rows = key_projections(plan, launch.padded_k);
  const QueryArrays arrays =
      query_arrays(plan, launch, norm_coefficient, first_tokens(plan, some), rows, exact_centre);
  // Copies read these until the stream is synchronised.
  const std::vector<float> by_coordinate = projection_columns(rows, plan.d);
  const float* rounded = plan.table.rounded();
  const std::vector<float> numbers(rounded, rounded + plan.table.size());
  const std::vector<float> rounded_centre(exact_centre.begin(), exact_centre.end());
  const std::vector<FourWords> fragments =
      launch.on_tensor_cores() ? query_fragments(arrays, plan.heads, launch.padded_k, lower_parts)
                               : std::vector<FourWords>();
  const int tile_keys = projected_tile_keys(launch.padded_k, launch.totals.pairs);
  const int heads_of_tile = launch.weigh.group_heads;
  projections_of_tiles = {
      .chunks = projection_chunks(plan.d),
      .head_words = (launch.padded_k + 15) / 16 * projection_chunks(plan.d) * 64,
      .split_at = split_points_at(heads_of_tile, launch.padded_k, tile_keys),
      .copied_at = copied_points_at(heads_of_tile, launch.padded_k, tile_keys, plan.d)};
  std::vector<CoordinateUnit> units;
  std::vector<FourWords> of_projections;
  if (launch.projects) {
    // Tokens that are kept apart from points have the centre subtracted.
    units = coordinate_units(
        rows, launch.tokens.separate ? std::vector<float>(rounded_centre.size()) : rounded_centre);
    of_projections = projection_fragments(rows, plan.heads, launch.padded_k, units, lower_parts);
  }
  const std::vector<double> left_out_numbers =
      plan.controls ? left_out_exponents(plan, launch, norm_coefficient, arrays, exact_centre)
                    : std::vector<double>();
  std::vector<SeenTokens> views = launch.tokens.seen;
  if (views.empty() && !mechanism.keep.off()) {
    views.assign(static_cast<std::size_t>(plan.heads), {.end = launch.tokens.tokens});
  }
  std::span<const float> query_points, query_products, query_shifts;
  std::span<const FourWords> on_device_fragments, projections_on_device;
  std::span<const CoordinateUnit> on_device_units;
  std::span<const double> log_scales, control_estimates, means_of_estimates, means_of_noise;
  std::span<const double> of_estimates, of_noise;
  std::span<const std::uint32_t> alike;
  const auto each = [&](const auto& put) {
    put(table, std::span(numbers));
    put(file_rows, plan.table.rows().numbers());
    put(centre, std::span(rounded_centre));
    put(projections, std::span(by_coordinate));
    put(head_weights, std::span(plan.head_weights));
    put(query_points, std::span(arrays.points));
    put(query_products, std::span(arrays.products));
    put(query_shifts, std::span(arrays.shifts));
    put(on_device_fragments, std::span(fragments));
    put(projections_on_device, std::span(of_projections));
    put(on_device_units, std::span(units));
    // Their kernels see by a null pointer that there are none.
    if (!views.empty()) put(seen, std::span(views));
    if (!mechanism.keep.top.empty()) put(top, std::span(mechanism.keep.top));
    if (!launch.tokens.ranges.empty()) put(ranges, std::span(launch.tokens.ranges));
    if (!plan.controls) return;
    const ControlMeans& means = plan.controls->means;
    put(left_out, std::span(left_out_numbers));
    put(log_scales, std::span(means.log_scale));
    put(control_estimates, std::span(means.estimate));
    put(means_of_estimates, std::span(means.of_estimates));
    put(means_of_noise, std::span(means.of_noise));
    put(of_estimates, std::span(plan.controls->of_estimates));
    put(of_noise, std::span(plan.controls->of_noise));
    if (!plan.controls->alike.empty()) put(alike, std::span(plan.controls->alike));
  };
  std::uint64_t bytes = 0;
  each([&](const auto&, const auto& values) { bytes += Arena::room(values.size_bytes()); });
  if (!stream.constants.reserve(bytes)) {
    throw OutOfMemory("cuda: out of memory for the constants of a scenario (" +
                      std::to_string(bytes) + " bytes)");
  }
  each([&]<class T>(std::span<const T>& to, const auto& values) {
    T* const at = stream.constants.take<T>(values.size());
    if (!values.empty()) stream.copy_to_device(at, values.data(), values.size_bytes());
    to = {at, values.size()};
  });
  projections_of_tiles.fragments = projections_on_device.data();
  projections_of_tiles.matrix = projections.data();
  projections_of_tiles.units = on_device_units.data();
  queries = {.count = plan.queries,
             .padded = arrays.padded,
             .points = query_points.data(),
             .products = query_products.data(),
             .shifts = query_shifts.data(),
             .fragments = on_device_fragments.data(),
             .weights = head_weights.data()};
  controls = {.log_scale = log_scales.data(),
              .estimate = control_estimates.data(),
              .means_of_estimates = means_of_estimates.data(),
              .means_of_noise = means_of_noise.data(),
              .of_estimates = of_estimates.data(),
              .of_noise = of_noise.data(),
              .alike = alike.data()};
  stream.synchronise();
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
