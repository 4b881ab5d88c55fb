// SPDX-License-Identifier: Apache-2.0
#include "kernels/moments.h"

#include <utility>

namespace headlab {
namespace {

/// Adds scale * delta_g delta_l to the comoments of one query.
void add_outer(const MomentLayout& layout, const double* delta, double scale, double* comoment) {
  const std::size_t components = layout.components();
  if (!layout.pairwise()) {
    for (std::size_t g = 0; g < components; ++g) comoment[g] += scale * delta[g] * delta[g];
    return;
  }
  for (std::size_t g = 0; g < components; ++g) {
    const double factor = scale * delta[g];
    for (std::size_t l = g; l < components; ++l) *comoment++ += factor * delta[l];
  }
}

}  // namespace

void leaf_moments(const MomentLayout& layout, std::span<const double> statistics, int count,
                  Moments& out) {
  const std::size_t size = layout.statistics();
  out.count = static_cast<std::uint64_t>(count);
  out.mean.assign(statistics.begin(), statistics.begin() + static_cast<std::ptrdiff_t>(size));
  out.comoment.assign(layout.comoments(), 0.0);
  if (count == 1) return;

  // Mean as the first replicate plus the mean difference to it: exact for constants.
  for (std::size_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int r = 1; r < count; ++r) {
      sum += statistics[static_cast<std::size_t>(r) * size + i] - statistics[i];
    }
    out.mean[i] += sum / count;
  }
  std::vector<double> delta(layout.components());
  for (int r = 0; r < count; ++r) {
    for (int q = 0; q < layout.queries; ++q) {
      const std::size_t at = static_cast<std::size_t>(q) * layout.per_query();
      const double* replicate = &statistics[static_cast<std::size_t>(r) * size + at];
      for (std::size_t g = 0; g < delta.size(); ++g) delta[g] = replicate[g] - out.mean[at + g];
      add_outer(layout, delta.data(), 1.0,
                &out.comoment[static_cast<std::size_t>(q) * layout.pairs()]);
    }
  }
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
  std::vector<double> delta(layout.components());
  for (int q = 0; q < layout.queries; ++q) {
    const std::size_t at = static_cast<std::size_t>(q) * layout.per_query();
    for (std::size_t g = 0; g < delta.size(); ++g) delta[g] = b.mean[at + g] - a.mean[at + g];
    add_outer(layout, delta.data(), na * nb / (na + nb),
              &a.comoment[static_cast<std::size_t>(q) * layout.pairs()]);
  }
  for (std::size_t i = 0; i < a.mean.size(); ++i) {
    a.mean[i] += (b.mean[i] - a.mean[i]) * (nb / (na + nb));
  }
  for (std::size_t i = 0; i < a.comoment.size(); ++i) a.comoment[i] += b.comoment[i];
  a.count += b.count;
  a.windows.add(b.windows);
}

}  // namespace headlab
