// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/extremes.h"

#include <algorithm>
#include <cmath>

namespace headlab {

void ExtremeList::add(const Extreme& extreme, std::size_t most) {
  if (!std::isfinite(extreme.key)) return;
  if (all_.size() >= most && !before(extreme, all_[most - 1])) return;
  const auto place =
      std::ranges::find_if(all_, [&](const Extreme& other) { return before(extreme, other); });
  all_.insert(place, extreme);
  truncate(most);
}

void ExtremeList::merge(const ExtremeList& other, std::size_t most) {
  for (const Extreme& extreme : other.all_) add(extreme, most);
}

void ExtremeList::remove_from(std::uint64_t first) {
  std::erase_if(all_, [&](const Extreme& extreme) { return extreme.replicate >= first; });
}

void ExtremeList::remove_before(std::uint64_t first) {
  std::erase_if(all_, [&](const Extreme& extreme) { return extreme.replicate < first; });
}

void ExtremeList::truncate(std::size_t most) {
  if (all_.size() > most) all_.resize(most);
}

void Extremes::merge(const Extremes& other, std::size_t most) {
  max_error.merge(other.max_error, most);
  if (min_sample_size && other.min_sample_size) {
    min_sample_size->merge(*other.min_sample_size, most);
  } else {
    min_sample_size.reset();
  }
}

}  // namespace headlab
