// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/moments.h"

#include <cmath>
#include <limits>
#include <utility>

namespace headlab {
namespace {

/// Adds scale * delta_g delta_l, delta = x - centre, to the comoments of one query.
void add_outer(const MomentLayout& layout, const double* x, const double* centre, double scale,
               double* comoment) {
  const std::size_t components = layout.components();
  if (!layout.pairwise()) {
    for (std::size_t g = 0; g < components; ++g) {
      const double delta = x[g] - centre[g];
      comoment[g] += scale * delta * delta;
    }
    return;
  }
  for (std::size_t g = 0; g < components; ++g) {
    const double factor = scale * (x[g] - centre[g]);
    for (std::size_t l = g; l < components; ++l) *comoment++ += factor * (x[l] - centre[l]);
  }
  if (layout.controlled()) {
    const std::size_t ensemble = layout.controlled_ensemble();
    const double delta = x[ensemble] - centre[ensemble];
    *comoment += scale * delta * delta;
  }
}

/// Gives undefined statistics one NaN, whatever NaN they were made of; those beyond float64 too.
void unite_nans(const MomentLayout& layout, Moments& moments) {
  if (layout.mode != MomentMode::separate) return;
  for (std::vector<double>* numbers : {&moments.mean, &moments.comoment}) {
    for (double& x : *numbers) x = std::isfinite(x) ? x : std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

void leaf_moments(const MomentLayout& layout, std::span<const double> statistics, int count,
                  Moments& out) {
  const std::size_t size = layout.statistics();
  const double* first = statistics.data();
  out.count = static_cast<std::uint64_t>(count);
  out.comoment.assign(layout.comoments(), 0.0);
  if (count == 1) {
    out.mean.assign(first, first + size);
    unite_nans(layout, out);
    return;
  }

  // Mean as the first replicate plus the mean difference to it: exact for constants.
  out.mean.assign(size, 0.0);
  for (int r = 1; r < count; ++r) {
    const double* replicate = first + static_cast<std::size_t>(r) * size;
    for (std::size_t i = 0; i < size; ++i) out.mean[i] += replicate[i] - first[i];
  }
  for (std::size_t i = 0; i < size; ++i) out.mean[i] = first[i] + out.mean[i] / count;
  for (std::size_t q = 0; q < static_cast<std::size_t>(layout.queries); ++q) {
    const std::size_t at = q * layout.per_query();
    for (int r = 0; r < count; ++r) {
      add_outer(layout, first + static_cast<std::size_t>(r) * size + at, &out.mean[at], 1.0,
                &out.comoment[q * layout.comoments_per_query()]);
    }
  }
  unite_nans(layout, out);
}

Moments merge_siblings(const MomentLayout& layout, std::span<Moments> nodes) {
  for (std::size_t step = 1; step < nodes.size(); step *= 2) {
    for (std::size_t i = 0; i + step < nodes.size(); i += 2 * step) {
      merge_moments(layout, nodes[i], nodes[i + step]);
    }
  }
  return std::move(nodes[0]);
}

void merge_moments(const MomentLayout& layout, Moments& a, const Moments& b) {
  if (b.count == 0) return;
  if (a.count == 0) {
    a = b;
    return;
  }
  const auto na = static_cast<double>(a.count);
  const auto nb = static_cast<double>(b.count);
  const std::size_t queries = layout.per_draw ? 0 : static_cast<std::size_t>(layout.queries);
  for (std::size_t q = 0; q < queries; ++q) {
    const std::size_t at = q * layout.per_query();
    add_outer(layout, &b.mean[at], &a.mean[at], na * nb / (na + nb),
              &a.comoment[q * layout.comoments_per_query()]);
  }
  for (std::size_t i = 0; i < a.mean.size(); ++i) {
    a.mean[i] += (b.mean[i] - a.mean[i]) * (nb / (na + nb));
  }
  for (std::size_t i = 0; i < a.comoment.size(); ++i) a.comoment[i] += b.comoment[i];
  unite_nans(layout, a);
  a.count += b.count;
  a.windows.add(b.windows);
  if (a.extremes && b.extremes) {
    Extremes both = *a.extremes;
    both.merge(*b.extremes);
    a.extremes = std::make_shared<const Extremes>(std::move(both));
  } else {
    a.extremes.reset();
  }
}

}  // namespace headlab
